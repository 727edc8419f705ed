use super::*;
use crate::record::samples::random_game;
use crate::record::{
    EvaluatorId, GameId, GameRecord, Header, MAX_FRAME_BYTES, ShardName, ShardWriter, digest,
};
use proptest::prelude::*;
use std::ops::Range;

const GAMES: usize = 6;

fn header() -> Header {
    Header {
        encoding_version: 2,
        program_version: "0.1.0".into(),
        evaluator: EvaluatorId::default(),
        config_digest: digest(b""),
        generator: 0,
    }
}

fn games(count: usize) -> Vec<GameRecord> {
    (0..count as u64)
        .map(|counter| {
            let id = GameId {
                generator: 0,
                counter,
            };
            random_game(id, 5, 1 + counter as usize % 3)
        })
        .collect()
}

/// A shard's bytes, and where its games' frames and its end are in them.
fn shard(games: &[GameRecord]) -> (Vec<u8>, Vec<Range<usize>>) {
    let folder = tempfile::tempdir().unwrap();
    let name = ShardName {
        generator: 0,
        sequence: 0,
    };
    let mut writer = ShardWriter::create(folder.path(), name, &header()).unwrap();
    games.iter().for_each(|game| writer.push(game).unwrap());
    let path = writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut begins = ShardReader::open(&path).unwrap().frame_offsets().unwrap();
    let last = begins.last().copied().unwrap() as usize;
    let length = u32::from_le_bytes(bytes[last..last + 4].try_into().unwrap());
    begins.push(last as u64 + FRAME_HEAD_BYTES + u64::from(length));
    begins.push(bytes.len() as u64);
    let frames = begins
        .windows(2)
        .map(|ends| ends[0] as usize..ends[1] as usize);
    (bytes, frames.collect())
}

/// What reading with [`ShardReader::resync`] behind every error gives. Bounded, so that a reader that stays where it is fails.
fn salvage(bytes: &[u8]) -> (Vec<GameRecord>, Vec<ShardError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000-000000.shard");
    std::fs::write(&path, bytes).unwrap();
    let mut reader = ShardReader::open(&path).unwrap();
    let (mut games, mut errors) = (Vec::new(), Vec::new());
    for _ in 0..bytes.len() {
        match reader.next() {
            None => return (games, errors),
            Some(Ok(game)) => games.push(game),
            Some(Err(error)) => {
                errors.push(error);
                reader.resync().unwrap();
            }
        }
    }
    panic!("more frames than bytes: {errors:?}");
}

/// Checks that exactly the games outside the damage are found.
fn check(damaged: &[u8], kept: &[&GameRecord], what: &str) {
    let (found, errors) = salvage(damaged);
    assert!(!errors.is_empty(), "{what}: damage is named");
    assert_eq!(found.iter().collect::<Vec<_>>(), kept, "{what}: {errors:?}");
}

#[test]
fn every_flipped_bit_costs_no_more_than_its_game() {
    let games = games(3);
    let (bytes, frames) = shard(&games);
    for bit in frames[0].start * 8..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let untouched = games
            .iter()
            .zip(&frames)
            .filter(|(_, frame)| !frame.contains(&(bit / 8)));
        let kept: Vec<_> = untouched.map(|(game, _)| game).collect();
        check(&flipped, &kept, &format!("bit {bit}"));
    }
}

#[test]
fn every_cut_leaves_the_games_before_it() {
    let games = games(3);
    let (bytes, frames) = shard(&games);
    for end in frames[0].start..bytes.len() {
        let kept: Vec<_> = games
            .iter()
            .zip(&frames)
            .filter(|(_, frame)| frame.end <= end)
            .map(|(game, _)| game)
            .collect();
        check(&bytes[..end], &kept, &format!("cut at {end}"));
    }
}

/// What may happen to a part of a file.
#[derive(Debug, Clone)]
enum Damage {
    Overwritten(Vec<u8>),
    Removed,
    Inserted(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || prop::collection::vec(any::<u8>(), 1..700);
    let zeros = (1..9_000usize).prop_map(|count| vec![0; count]);
    prop_oneof![
        bytes().prop_map(Damage::Overwritten),
        zeros.prop_map(Damage::Inserted),
        bytes().prop_map(Damage::Inserted),
        Just(Damage::Removed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_to_a_part_of_a_shard_the_games_outside_it_are_found(
        damage in damage(),
        place in 0.0..1.0,
        removed in 1..600usize,
    ) {
        let games = games(GAMES);
        let (bytes, frames) = shard(&games);
        let begin = frames[0].start + ((bytes.len() - frames[0].start) as f64 * place) as usize;
        let (length, new) = match &damage {
            Damage::Overwritten(new) => (new.len(), new.clone()),
            Damage::Removed => (removed, Vec::new()),
            Damage::Inserted(new) => (0, new.clone()),
        };
        let end = (begin + length).min(bytes.len());
        let mut damaged = bytes.clone();
        damaged.splice(begin..end, new);
        prop_assume!(damaged != bytes);
        let untouched = |frame: &&Range<usize>| frame.end <= begin || frame.start >= end;
        let expected: Vec<_> = games
            .iter()
            .zip(&frames)
            .filter(|(_, frame)| untouched(frame))
            .map(|(game, _)| game)
            .collect();
        let (found, errors) = salvage(&damaged);
        // Some damage to whole frames leaves a frame as it was.
        let found: Vec<_> = found.iter().filter(|game| expected.contains(game)).collect();
        prop_assert_eq!(found, expected, "{:?}", errors);
        prop_assert!(!errors.is_empty());
    }
}

#[test]
fn a_magic_number_across_the_windows_border_is_found() {
    let games = games(2);
    let (bytes, frames) = shard(&games);
    for gap in WINDOW_BYTES - 40..WINDOW_BYTES + 40 {
        let mut damaged = bytes.clone();
        damaged.splice(frames[1].start..frames[1].start, vec![0xFF; gap]);
        check(
            &damaged,
            &[&games[0], &games[1]],
            &format!("{gap} bytes between"),
        );
    }
}

#[test]
fn after_an_error_without_damage_nothing_moves() {
    let games = games(2);
    let (mut bytes, _) = shard(&games);
    bytes.extend([0; 3]);
    let (found, errors) = salvage(&bytes);
    assert_eq!(found, games);
    assert!(matches!(
        errors[..],
        [ShardError {
            fault: ShardFault::Trailing { bytes: 3 },
            ..
        }]
    ));
    // Games behind the end are another shard's: they are named as left over, and not taken.
    let (found, errors) = salvage(&bytes[..bytes.len() - 3].repeat(2));
    assert_eq!(found, games);
    assert!(matches!(
        errors[..],
        [ShardError {
            fault: ShardFault::Trailing { .. },
            ..
        }]
    ));
}

#[test]
fn frames_are_counted_on_from_the_last_and_a_missing_end_is_named() {
    let games = games(4);
    let (mut bytes, frames) = shard(&games);
    bytes[frames[1].start + 3] = 0xFF;
    let (found, errors) = salvage(&bytes);
    assert_eq!(
        found,
        [games[0].clone(), games[2].clone(), games[3].clone()]
    );
    assert_eq!((errors.len(), errors[0].frame), (1, Some(2)), "{errors:?}");
    assert_eq!(errors[0].offset, frames[1].start as u64);
    let (found, errors) = salvage(&bytes[..frames[4].start]);
    assert_eq!((found.len(), errors.len()), (3, 2));
    assert_eq!(errors[1].frame, Some(5));
    assert!(matches!(errors[1].fault, ShardFault::CutOff), "{errors:?}");
}

#[test]
fn a_file_full_of_decoys_is_given_up_by_name() {
    let games = games(1);
    let (bytes, frames) = shard(&games);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000-000000.shard");
    // Each claims all the bytes that a frame may have, and is checked in vain.
    let decoy = [&MAX_FRAME_BYTES.to_le_bytes()[..], &[0; 4], &PAYLOAD_MAGIC].concat();
    let mut decoys = bytes[..frames[0].start].to_vec();
    decoys.extend(decoy.repeat(DECOY_BYTES as usize / MAX_FRAME_BYTES as usize + 2));
    decoys.resize(decoys.len() + MAX_FRAME_BYTES as usize, 0);
    std::fs::write(&path, &decoys).unwrap();
    let mut reader = ShardReader::open(&path).unwrap();
    assert!(reader.next().unwrap().is_err());
    let error = reader.resync().unwrap_err();
    assert!(matches!(error.fault, ShardFault::Decoys { .. }), "{error}");
    assert_eq!(error.offset, frames[0].start as u64);
    assert!(reader.next().is_none());
}
