//! What the fuzz target `shards` does with its bytes: damaged shards, and shards that are sound but for what their games say.

use engine::record::samples::{content_of, random_game, shard_with};
use engine::record::{GameId, GameRecord, ShardReader, replay};

/// A few turns of a game, with rows.
pub(crate) fn sample() -> GameRecord {
    let id = GameId {
        generator: 3,
        counter: 1,
    };
    random_game(id, 8, 4)
}

/// Reads a shard that has been changed by the bytes. The first one says how: 0, it is nothing but the rest; odd, bytes of a sound shard
/// are replaced; even, bytes of a game's content are, under right lengths and checksums.
///
/// Nothing may panic, what is read must be written as it was, and a shard that was changed anywhere under its checksums must not
/// pass as sound.
pub(crate) fn shards(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    if *kind == 0 {
        read(rest);
        return;
    }
    let content = content_of(&sample());
    if kind % 2 == 1 {
        let sound = shard_with(&[&content]);
        let mut damaged = sound.clone();
        replace(&mut damaged, rest);
        let (games, faults) = read(&damaged);
        assert!(damaged == sound || faults > 0, "{} games", games.len());
        return;
    }
    let mut changed = content.clone();
    replace(&mut changed, rest);
    let (games, faults) = read(&shard_with(&[&changed, &content]));
    assert_eq!(games.last(), Some(&sample()), "the sound game behind it");
    assert_eq!(games.len() + faults, 2);
    if faults == 0 {
        assert_eq!(content_of(&games[0]), changed);
        // Illegal turns, impossible values and rows that don't fit are errors.
        let _ = replay(&games[0]);
    }
}

/// Replaces bytes: each four of the changes are a place (three of them) and what stands there from now on.
fn replace(bytes: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(4) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let place = place % bytes.len();
        bytes[place] = change[3];
    }
}

/// The games that can be read of a file, and how many faults are found in it.
fn read(bytes: &[u8]) -> (Vec<GameRecord>, usize) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let path = folder.path().join("000-000000.shard");
    std::fs::write(&path, bytes).expect("there is room for temporary files");
    let Ok(mut reader) = ShardReader::open(&path) else {
        return (Vec::new(), 1);
    };
    let (mut games, mut faults) = (Vec::new(), 0);
    for game in reader.by_ref() {
        match game {
            Ok(game) => games.push(game),
            Err(_) => faults += 1,
        }
    }
    if faults > 0 {
        // Whatever there is behind a bad length.
        while let Ok(Some(_)) = reader.resync() {
            for game in reader.by_ref().flatten() {
                let _ = replay(&game);
            }
        }
    }
    (games, faults)
}
