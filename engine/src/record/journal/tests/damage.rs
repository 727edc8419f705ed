//! Files cut and damaged everywhere.

use super::super::entry::{HEAD_BYTES, START_BYTES, read_frame};
use super::*;

/// Where each frame of a file begins, and where the last one ends.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![START_BYTES as usize];
    while borders[borders.len() - 1] < bytes.len() {
        let begin = borders[borders.len() - 1];
        let (_, length) = read_frame(&bytes[begin..], begin as u64).unwrap();
        borders.push(begin + length);
    }
    borders
}

/// A file with two short games, all of it flushed, and a frame at its end that says so.
fn small_file() -> Vec<u8> {
    let root = run();
    let (journal, _) = open(root.path(), 3);
    play(&journal, &game(3, 0, 2));
    play(&journal, &game(3, 1, 1));
    journal.sync().unwrap();
    begin(&journal, &game(3, 2, 1));
    fs::read(current_file(&journal)).unwrap()
}

#[test]
fn a_cut_anywhere_leaves_every_whole_frame() {
    let bytes = small_file();
    let borders = borders(&bytes);
    // Header, synced; begin, evaluator, turn, turn; begin, evaluator, turn; synced, begin, evaluator.
    assert_eq!(borders.len(), 13);
    let turns_at = [0, 0, 0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 3];
    for end in 0..bytes.len() {
        let games = read(&bytes[..end]);
        if end < borders[1] {
            let error = games.err().unwrap();
            assert!(error.to_string().contains("the.journal"), "{error}");
            continue;
        }
        let games = games.unwrap();
        let whole = borders.iter().rposition(|&border| border <= end).unwrap();
        let turns: usize = games
            .found
            .values()
            .map(|found| found.game.turns.len())
            .sum();
        assert_eq!(turns, turns_at[whole], "cut at {end}");
        match &games.dropped[..] {
            [] => assert_eq!(borders[whole], end),
            [dropped] => {
                assert_eq!(dropped.offset as usize, borders[whole]);
                assert_eq!(dropped.offset + dropped.bytes, end as u64);
            }
            more => panic!("{more:?}"),
        }
        // A torn write may leave anything in place of the rest.
        let missing = &bytes[end..borders[whole + 1]];
        for garbage in [[0; 40], [255; 40]] {
            if garbage.starts_with(missing) {
                // The very bytes that were cut off.
                continue;
            }
            let torn = read(&[&bytes[..end], &garbage[..]].concat()).unwrap();
            assert_eq!(torn.found.len(), games.found.len());
            assert_eq!(torn.dropped[0].offset as usize, borders[whole]);
        }
    }
}

#[test]
fn every_flipped_bit_is_found_or_behind_the_last_flush() {
    let bytes = small_file();
    let borders = borders(&bytes);
    let flushed = borders[9];
    let whole = read(&bytes).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let begin = borders.iter().rfind(|&&border| border <= bit / 8);
        match read(&flipped) {
            Err(error) => {
                assert!(bit / 8 < flushed, "bit {bit}: {error}");
                let place = error.offset.unwrap_or(0) as usize;
                assert!(
                    place == begin.copied().unwrap_or(0) || place <= 8,
                    "{error}"
                );
            }
            Ok(games) => {
                assert!(bit / 8 >= flushed, "bit {bit} was not found");
                assert_eq!(games.dropped[0].offset as usize, *begin.unwrap());
                for (id, found) in &games.found {
                    assert_eq!(found.game.turns, whole.found[id].game.turns);
                }
            }
        }
    }
}

#[test]
fn a_frame_is_good_only_where_it_was_written() {
    let bytes = small_file();
    let borders = borders(&bytes);
    let (begin, end) = (borders[2], borders[3]);
    let moved = [&bytes[..end], &bytes[begin..end]].concat();
    assert_eq!(read(&moved).unwrap().dropped[0].offset as usize, end);
    assert!(end - begin > HEAD_BYTES);
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = small_file();
    assert_eq!(&bytes[..12], b"TuskerJ\n\x02\0\0\0");
    assert_eq!(&bytes[12..20], b"\xf7TJ\n\x18\0\0\0");
    let mut checked = 12u64.to_le_bytes().to_vec();
    checked.extend(&bytes[16..20]);
    checked.extend(&bytes[24..48]);
    assert_eq!(bytes[20..24], crc32c::crc32c(&checked).to_le_bytes());
    let encoding = crate::encoding::ENCODING_VERSION.to_le_bytes();
    let header = [&[0, 0, 0, 0, 3, 0, 0, 0], &encoding[..], &[0; 12]].concat();
    assert_eq!(bytes[24..48], header);
    let mut future = bytes.clone();
    future[8] = 9;
    let message = read(&future).err().unwrap().to_string();
    assert!(message.contains("format version 9"), "{message}");
}

#[test]
fn a_hole_that_a_power_cut_left_is_no_damage() {
    let bytes = small_file();
    let borders = borders(&bytes);
    // Without the frame that says that all this was on the disk.
    let mut torn = bytes[..borders[9]].to_vec();
    torn[borders[5]..borders[5] + 30].fill(0);
    let games = read(&torn).unwrap();
    assert_eq!(games.dropped[0].offset as usize, borders[5]);
    assert_eq!(
        games
            .found
            .values()
            .map(|found| found.game.turns.len())
            .sum::<usize>(),
        1
    );
    // What was on the disk when the file began is damage.
    torn[borders[0] + 20] ^= 1;
    assert!(read(&torn).is_err());
}

/// A run with two games in a shard, and four in flight. All but the last entry has been flushed.
fn damageable() -> (TempDir, Vec<GameRecord>, PathBuf) {
    let root = run();
    let records: Vec<GameRecord> = (0..6).map(|counter| game(3, counter, 4)).collect();
    let (journal, _) = open(root.path(), 3);
    records[..4]
        .iter()
        .for_each(|record| play(&journal, record));
    let (shard, writer) = begin_shard(root.path(), 0, &records[..2]);
    journal
        .closing(shard, &[records[0].id, records[1].id])
        .unwrap();
    writer.finish().unwrap();
    journal.closed(shard).unwrap();
    play(&journal, &records[4]);
    journal.sync().unwrap();
    begin(&journal, &records[5]);
    let file = current_file(&journal);
    (root, records, file)
}

/// The ids of the games in a run's shards.
fn in_shards(root: &Path) -> Vec<GameId> {
    let shards = list_shards(&root.join("shards")).unwrap();
    let readers = shards.values().map(|path| ShardReader::open(path).unwrap());
    readers.flatten().map(|record| record.unwrap().id).collect()
}

/// Every game is in a shard, in flight with its turns before the damage, or named as lost: none in two places.
#[test]
fn damage_takes_no_more_than_it_must() {
    let (root, records, file) = damageable();
    let bytes = fs::read(&file).unwrap();
    let borders = borders(&bytes);
    let name = file.file_name().unwrap();
    let whole = [4, 4, 4, 0];
    let (mut cut, mut lost) = (0, 0);
    for (place, &at) in borders.iter().enumerate() {
        // Not the header, which is read below, nor what was not flushed: the frame that says what was, and the last two.
        if !(1..borders.len() - 4).contains(&place) {
            continue;
        }
        for width in [1, 100] {
            let damaged = copy(root.path());
            let path = damaged.path().join("journal").join(name);
            let mut bytes = bytes.clone();
            let end = (at + HEAD_BYTES + width).min(borders[borders.len() - 4]);
            bytes[at + HEAD_BYTES - 1..end]
                .iter_mut()
                .for_each(|byte| *byte ^= 1);
            fs::write(&path, &bytes).unwrap();
            let (journal, recovery) = open(damaged.path(), 3);
            assert!(
                recovery
                    .dropped
                    .iter()
                    .all(|part| part.is_damage && part.path == path)
            );
            assert!(recovery.dropped[0].offset == at as u64);
            let mut kept = path.clone().into_os_string();
            kept.push(".damaged");
            assert!(fs::read(kept).unwrap() == bytes);
            let found = offered(&recovery, &records);
            let mut ids = in_shards(damaged.path());
            ids.extend(found.iter().map(|&(id, _)| id));
            ids.extend(&recovery.lost);
            ids.sort();
            let all: Vec<GameId> = records.iter().map(|record| record.id).collect();
            assert_eq!(ids, all, "damage at {at}");
            assert_eq!((recovery.next_counter, recovery.next_shard), (6, 1));
            for (id, turns) in found {
                // Nothing tells of a game's last turn.
                let missing = whole[id.counter as usize - 2] - turns;
                let is_cut = recovery.cut.contains(&id);
                assert!(
                    is_cut == (missing > 0) || missing == 1,
                    "damage at {at}: {id}"
                );
            }
            cut += recovery.cut.len();
            lost += recovery.lost.len();
            // The next start finds the same, and no damage.
            let turns = |recovery: &Recovery| {
                let games = recovery.games.iter();
                games.map(|game| game.turns.len()).collect::<Vec<_>>()
            };
            drop(journal);
            let (_journal, again) = open(damaged.path(), 3);
            assert_eq!(turns(&again), turns(&recovery));
            assert!(again.dropped.is_empty());
        }
    }
    assert!(cut > 5 && lost > 2, "{cut} cut, {lost} lost");
}

#[test]
fn a_damaged_beginning_of_a_file_is_an_error_and_touches_nothing() {
    let (root, _, file) = damageable();
    let mut bytes = fs::read(&file).unwrap();
    bytes[30] ^= 1;
    fs::write(&file, &bytes).unwrap();
    for generator in [3, 4] {
        match Journal::open(place(root.path(), generator)) {
            Err(error) => assert!(generator == 3 && error.path == file, "{error}"),
            Ok((_, recovery)) => assert_eq!(recovery.left[0].path, file),
        }
        assert!(fs::read(&file).unwrap() == bytes);
    }
}

/// A disk that has lost what it had confirmed: the file ends anywhere before the shard was announced, and the shard is there.
#[test]
fn shards_that_the_file_does_not_know_are_looked_for() {
    let (root, records, file) = damageable();
    let bytes = fs::read(&file).unwrap();
    let borders = borders(&bytes);
    for &end in &borders[1..] {
        let crashed = copy(root.path());
        let path = crashed
            .path()
            .join("journal")
            .join(file.file_name().unwrap());
        fs::write(&path, &bytes[..end]).unwrap();
        let (_journal, recovery) = open(crashed.path(), 3);
        let mut ids = in_shards(crashed.path());
        assert_eq!(recovery.next_shard, 1);
        ids.extend(offered(&recovery, &records).iter().map(|&(id, _)| id));
        ids.sort();
        let next = recovery.next_counter;
        let begun: Vec<GameId> = records.iter().map(|record| record.id).collect();
        assert!(next >= 2 && ids == begun[..next as usize], "{ids:?}");
    }
}

/// The shards that `scripts/cluster/sync` removes here once they are elsewhere: those before the `next_shard` of the file's header
/// that have a successor.
fn removable(root: &Path, file: &[u8]) -> Vec<PathBuf> {
    let next_shard = u32::from_le_bytes(file[44..48].try_into().unwrap());
    let shards = list_shards(&root.join("shards")).unwrap();
    let newest = *shards.keys().last().unwrap();
    let old = shards
        .into_iter()
        .filter(|(name, _)| name.sequence < next_shard && *name < newest);
    old.map(|(_, path)| path).collect()
}

#[test]
fn games_of_removed_shards_are_never_played_again() {
    let root = run();
    let records: Vec<GameRecord> = (0..12).map(|counter| game(3, counter, 3)).collect();
    let (journal, _) = open(root.path(), 3);
    let write = |sequence, counters: [usize; 2], is_closed: bool| {
        let games = counters.map(|counter| records[counter].clone());
        let (shard, writer) = begin_shard(root.path(), sequence, &games);
        journal
            .closing(shard, &games.each_ref().map(|game| game.id))
            .unwrap();
        writer.finish().unwrap();
        if is_closed {
            journal.closed(shard).unwrap();
        }
    };
    let play_all = |counters: std::ops::Range<usize>| {
        for record in &records[counters] {
            play(&journal, record);
        }
    };
    play_all(0..4);
    write(0, [0, 1], true);
    assert_eq!(
        removable(root.path(), &fs::read(current_file(&journal)).unwrap()),
        [] as [PathBuf; 0]
    );
    write(1, [2, 3], true);
    play_all(4..6);
    begin_file(&journal);
    play_all(6..11);
    write(2, [4, 6], true);
    write(3, [5, 7], true);
    write(4, [8, 9], false);
    journal.sync().unwrap();
    begin(&journal, &records[11]);
    let file = current_file(&journal);
    let bytes = fs::read(&file).unwrap();
    let borders = borders(&bytes);

    // The games that are found in shards, resume or begin again, after damage at a frame; and how many are so twice.
    let outcome = |gone: &[PathBuf], damaged_at: Option<usize>| {
        let crashed = copy(root.path());
        let mut bytes = bytes.clone();
        if let Some(at) = damaged_at {
            bytes[at + HEAD_BYTES] ^= 1;
        }
        let name = file.file_name().unwrap();
        fs::write(crashed.path().join("journal").join(name), bytes).unwrap();
        let mut ids = in_shards(crashed.path());
        for path in gone {
            let name = path.file_name().unwrap();
            fs::remove_file(crashed.path().join("shards").join(name)).unwrap();
        }
        let (_journal, recovery) = open(crashed.path(), 3);
        assert_eq!((recovery.next_counter, recovery.next_shard), (12, 5));
        ids.extend(offered(&recovery, &records).iter().map(|&(id, _)| id));
        ids.extend(&recovery.lost);
        ids.sort();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), 12, "a game is missing");
        count - ids.len()
    };
    let removed = removable(root.path(), &bytes);
    assert_eq!(removed.len(), 2);
    let damage = || {
        let places = borders[1..borders.len() - 4].iter();
        places.map(|&at| Some(at)).chain([None])
    };
    for at in damage() {
        assert_eq!(outcome(&removed, at), 0, "damage at {at:?}");
    }
    // Of the others, one that was announced and not closed is needed at once, and any after damage.
    let shard = |sequence: usize| {
        list_shards(&root.path().join("shards"))
            .unwrap()
            .into_values()
            .nth(sequence)
            .unwrap()
    };
    assert_eq!(outcome(&[shard(4)], None), 2);
    assert_eq!(outcome(&[shard(3)], None), 0);
    assert!(damage().any(|at| outcome(&[shard(3)], at) > 0));
}
