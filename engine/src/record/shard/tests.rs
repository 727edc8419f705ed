//! Whole shards, good and broken.

mod properties;

use super::frame::{Content, ContentToWrite, Packer, START_BYTES, frame_of};
use super::*;
use crate::record::codec::MAX_CONTENT_BYTES;
use crate::record::game::*;
use crate::record::samples;
use arimaa::rules::{Outcome, Reason, Side};
use std::path::{Path, PathBuf};

const NAME: ShardName = ShardName {
    generator: 3,
    sequence: 14,
};

fn header() -> Header {
    Header {
        encoding_version: 7,
        program_version: "0.1.0".into(),
        evaluator: EvaluatorId {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: digest(b"[search]\nvisits = 3\n"),
        generator: 3,
    }
}

fn game(counter: u64, max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 3,
        counter,
    };
    samples::random_game(id, 5, max_turns)
}

/// Writes games as a shard in a folder, and gives its path.
fn write_shard(folder: &Path, games: &[GameRecord]) -> PathBuf {
    let mut writer = ShardWriter::create(folder, NAME, &header()).unwrap();
    for game in games {
        writer.push(game).unwrap();
    }
    assert_eq!(writer.len(), games.len());
    assert_eq!(writer.is_empty(), games.is_empty());
    writer.finish().unwrap()
}

/// The bytes of a shard of these games.
fn shard_bytes(games: &[GameRecord]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::read(write_shard(folder.path(), games)).unwrap()
}

/// Everything that reading some bytes as a shard gives: the games, and the errors.
fn read_bytes(bytes: &[u8]) -> (Vec<GameRecord>, Vec<ShardError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME.to_string());
    std::fs::write(&path, bytes).unwrap();
    let (mut games, mut errors) = (Vec::new(), Vec::new());
    match ShardReader::open(&path) {
        Ok(reader) => {
            for game in reader {
                match game {
                    Ok(game) => games.push(game),
                    Err(error) => errors.push(error),
                }
            }
        }
        Err(error) => errors.push(error),
    }
    assert!(errors.iter().all(|error| error.path == path));
    (games, errors)
}

/// The one error in some bytes.
fn error_of(bytes: &[u8]) -> ShardError {
    let (_, mut errors) = read_bytes(bytes);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// Where each frame begins, and where the file ends.
fn frame_begins(bytes: &[u8]) -> Vec<usize> {
    let mut begins = vec![START_BYTES as usize];
    while begins[begins.len() - 1] < bytes.len() {
        let begin = begins[begins.len() - 1];
        let length = u32::from_le_bytes(bytes[begin..begin + 4].try_into().unwrap());
        begins.push(begin + 8 + length as usize);
    }
    begins
}

#[test]
fn the_layout_is_the_documented_one() {
    let search = SearchRecord {
        evaluator: 1,
        kind: SearchKind::Fast,
        budget: 4,
        evaluations: 3,
        visits: 2,
        value: 1.0,
        network_value: 0.5,
    };
    let policy = TurnOrigin::Policy {
        evaluator: 7,
        network_value: 2.0,
    };
    let turn = |origin| TurnRecord {
        actions: vec![256, 320],
        origin,
        rows: Vec::new(),
    };
    let record = GameRecord {
        id: GameId {
            generator: 1,
            counter: 2,
        },
        seed: 3,
        start: Start::Fork {
            game: GameId {
                generator: 4,
                counter: 5,
            },
        },
        evaluators: vec![EvaluatorId {
            name: "a".into(),
            identity: "bc".into(),
        }],
        turns: vec![
            turn(TurnOrigin::Given),
            turn(policy),
            TurnRecord {
                rows: vec![RowRecord {
                    step: 5,
                    visits: 6,
                    policy: vec![65_535],
                    surprise: 0.5,
                    weight: 2.0,
                }],
                ..turn(TurnOrigin::Search(search))
            },
        ],
        ending: Ending::Won(Outcome {
            winner: Side::Silver,
            reason: Reason::Elimination,
        }),
        resignation_waived: Some(WaivedResignation {
            turn: 9,
            loser: Side::Silver,
        }),
    };
    let bytes = shard_bytes(&[record]);
    assert_eq!(&bytes[..12], b"Tusker\r\n\x03\x00\x00\x00");
    let begins = frame_begins(&bytes);
    assert_eq!(begins.len(), 4, "header, game, end, and nothing more");
    let contents: Vec<Vec<u8>> = begins
        .windows(2)
        .map(|ends| {
            let frame = &bytes[ends[0]..ends[1]];
            let payload = &frame[8..];
            assert_eq!(frame[..4], (payload.len() as u32).to_le_bytes());
            assert_eq!(frame[4..8], crc32c::crc32c(payload).to_le_bytes());
            zstd::stream::decode_all(payload).unwrap()
        })
        .collect();
    let mut header = vec![0, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0];
    header.extend(b"\x05\0\0\0\0\0\0\x000.1.0");
    header.extend(b"\x07\0\0\0\0\0\0\0uniform\x07\0\0\0\0\0\0\0uniform");
    header.extend(b"\x40\0\0\0\0\0\0\0");
    header.extend(digest(b"[search]\nvisits = 3\n").bytes());
    header.extend([3, 0, 0, 0]);
    assert_eq!(contents[0], header);
    #[rustfmt::skip]
    let game = [
        1, 0, 0, 0, // a game
        1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // id
        3, 0, 0, 0, 0, 0, 0, 0, // seed
        1, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, // a fork of game 4-5
        1, 0, 0, 0, 0, 0, 0, 0, // evaluators
        1, 0, 0, 0, 0, 0, 0, 0, b'a', 2, 0, 0, 0, 0, 0, 0, 0, b'b', b'c',
        3, 0, 0, 0, 0, 0, 0, 0, // turns
        2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 64, 1, // actions
        0, 0, 0, 0, // given
        0, 0, 0, 0, 0, 0, 0, 0, // rows
        2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 64, 1, // actions
        1, 0, 0, 0, 7, 0, 0, 0, 0, 64, // policy of evaluator 7
        0, 0, 0, 0, 0, 0, 0, 0, // rows
        2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 64, 1, // actions
        2, 0, 0, 0, 1, 0, 1, 0, 0, 0, // search by evaluator 1, fast
        4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, // budget, evaluations, visits
        0, 0, 128, 63, 0, 0, 0, 63, // values
        1, 0, 0, 0, 0, 0, 0, 0, // rows
        5, 6, 0, 0, 0, // step, visits
        1, 0, 0, 0, 0, 0, 0, 0, 255, 255, // policy
        0, 0, 0, 63, 0, 0, 0, 64, // surprise, weight
        0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, // won, Silver, elimination
        1, 9, 0, 0, 0, 1, 0, 0, 0, // a waived resignation
    ];
    assert_eq!(contents[1], game);
    assert_eq!(contents[2], [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = shard_bytes(&[game(0, 2), game(1, 2)]);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (_, errors) = read_bytes(&flipped);
        assert!(!errors.is_empty(), "bit {} of byte {}", bit % 8, bit / 8);
        // Nothing is at fault before the frame that was changed.
        let first = errors[0].offset as usize;
        let begins = frame_begins(&bytes);
        let begin = begins.iter().rfind(|&&begin| begin <= bit / 8);
        assert!(first >= begin.copied().unwrap_or(0) && first <= bytes.len());
    }
}

#[test]
fn every_cut_is_noticed() {
    let bytes = shard_bytes(&[game(0, 2), game(1, 3)]);
    let begins = frame_begins(&bytes);
    for end in 0..bytes.len() {
        let (games, errors) = read_bytes(&bytes[..end]);
        assert_eq!(errors.len(), 1, "cut at {end}: {errors:?}");
        let whole = begins[2..4].iter().filter(|&&begin| begin <= end).count();
        assert_eq!(games.len(), whole, "games before a cut at {end} are read");
    }
    let at_frame = error_of(&bytes[..begins[2]]);
    assert!(matches!(at_frame.fault, ShardFault::CutOff), "{at_frame}");
}

#[test]
fn bytes_behind_the_end_are_noticed() {
    let mut bytes = shard_bytes(&[game(0, 2)]);
    bytes.extend([0; 3]);
    let error = error_of(&bytes);
    assert!(
        matches!(error.fault, ShardFault::Trailing { bytes: 3 }),
        "{error}"
    );
    // Another whole shard behind the first one is no more welcome.
    let twice = shard_bytes(&[game(0, 2)]).repeat(2);
    assert!(matches!(
        error_of(&twice).fault,
        ShardFault::Trailing { .. }
    ));
}

#[test]
fn a_bad_frame_is_named_and_the_next_ones_are_read() {
    let games = [game(0, 9), game(1, 9), game(2, 9)];
    let mut bytes = shard_bytes(&games);
    let begins = frame_begins(&bytes);
    bytes[begins[2] + 20] ^= 4;
    let (read, errors) = read_bytes(&bytes);
    assert_eq!(read, [games[0].clone(), games[2].clone()]);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].frame, Some(2));
    assert_eq!(errors[0].offset, begins[2] as u64);
    assert!(matches!(errors[0].fault, ShardFault::Checksum { .. }));
    let message = errors[0].to_string();
    assert!(
        message.contains(&format!(
            "003-000014.shard: frame 2 at byte {}: the checksum",
            begins[2]
        )),
        "{message}"
    );
}

#[test]
fn a_length_beyond_belief_stops_the_reading() {
    let mut bytes = shard_bytes(&[game(0, 9), game(1, 9), game(2, 9)]);
    let begins = frame_begins(&bytes);
    bytes[begins[2] + 3] = 1;
    let (read, errors) = read_bytes(&bytes);
    assert_eq!((read.len(), errors.len()), (1, 1));
    assert!(matches!(errors[0].fault, ShardFault::Length { .. }));
}

#[test]
fn other_files_and_other_versions_are_refused_by_name() {
    let bytes = shard_bytes(&[]);
    let mut magic = bytes.clone();
    magic[6] = b'\n';
    assert!(matches!(error_of(&magic).fault, ShardFault::NotAShard));
    assert!(matches!(error_of(b"").fault, ShardFault::NotAShard));
    let other_versions = (0..=u8::MAX).filter(|&version| u32::from(version) != FORMAT_VERSION);
    for version in other_versions {
        let mut other = bytes.clone();
        other[8] = version;
        let error = error_of(&other);
        assert!(
            matches!(error.fault, ShardFault::Version { found } if found == u32::from(version)),
            "{error}"
        );
        let both = format!("format version {version}; this program reads version {FORMAT_VERSION}");
        assert!(error.to_string().contains(&both), "{error}");
    }
    // The version under the checksum counts as well.
    let mut packer = Packer::new().unwrap();
    let lying = ContentToWrite::Header {
        format_version: FORMAT_VERSION + 1,
        header: &header(),
    };
    let mut lie = bytes[..12].to_vec();
    lie.extend(packer.pack(&lying).unwrap());
    assert!(matches!(
        error_of(&lie).fault,
        ShardFault::Versions {
            start: FORMAT_VERSION,
            header: 4
        }
    ));
}

#[test]
fn paths_that_are_no_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let fault_of = |path: &Path| ShardReader::open(path).err().unwrap().fault;
    assert!(matches!(fault_of(folder.path()), ShardFault::NotAShard));
    let missing = folder.path().join("missing.shard");
    assert!(matches!(fault_of(&missing), ShardFault::Io(_)));
}

#[test]
fn frames_in_a_wrong_order_or_number_are_noticed() {
    let mut packer = Packer::new().unwrap();
    let header = header();
    let games = [game(0, 2), game(1, 2)];
    let mut shard = |contents: &[ContentToWrite]| {
        let mut bytes = [&MAGIC[..], &FORMAT_VERSION.to_le_bytes()].concat();
        for content in contents {
            bytes.extend(packer.pack(content).unwrap());
        }
        bytes
    };
    let first = Content::Game(&games[0]);
    let no_header = error_of(&shard(&[first, Content::End { games: 1 }]));
    assert!(
        matches!(
            no_header.fault,
            ShardFault::Kind {
                found: "game",
                expected: "header"
            }
        ),
        "{no_header}"
    );
    let lost = error_of(&shard(&[
        ContentToWrite::header(&header),
        Content::Game(&games[1]),
        Content::End { games: 2 },
    ]));
    assert!(
        matches!(
            lost.fault,
            ShardFault::Count {
                stated: 2,
                found: 1
            }
        ),
        "{lost}"
    );
    let two_headers = error_of(&shard(&[
        ContentToWrite::header(&header),
        ContentToWrite::header(&header),
        Content::End { games: 1 },
    ]));
    assert!(
        matches!(
            two_headers.fault,
            ShardFault::Kind {
                found: "header",
                expected: "game"
            }
        ),
        "{two_headers}"
    );
}

#[test]
fn a_bomb_in_a_shard_is_an_error_and_no_more() {
    let bomb = zstd::bulk::compress(&vec![0; MAX_CONTENT_BYTES * 4], 19).unwrap();
    let bytes = shard_bytes(&[game(0, 2)]);
    let begins = frame_begins(&bytes);
    let with_bomb = [
        &bytes[..begins[1]],
        &frame_of(&bomb).unwrap(),
        &bytes[begins[2]..],
    ]
    .concat();
    let error = error_of(&with_bomb);
    assert!(
        matches!(error.fault, ShardFault::TooLarge { .. }),
        "{error}"
    );
    assert_eq!(error.frame, Some(1));
}

#[test]
fn an_index_needs_a_whole_shard() {
    let games = [game(0, 9), game(1, 9)];
    let bytes = shard_bytes(&games);
    let begins = frame_begins(&bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000-000000.shard");
    let offsets_of = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        ShardReader::open(&path).unwrap().frame_offsets()
    };
    assert_eq!(
        offsets_of(&bytes).unwrap(),
        [begins[1] as u64, begins[2] as u64]
    );
    for end in begins[1]..bytes.len() {
        assert!(offsets_of(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(offsets_of(&[&bytes[..], &[0; 9]].concat()).is_err());

    std::fs::write(&path, &bytes).unwrap();
    let mut reader = ShardReader::open(&path).unwrap();
    for offset in [0, 12, begins[1] as u64 + 1, bytes.len() as u64, u64::MAX] {
        let error = reader.read_at(offset).unwrap_err();
        assert_eq!(error.offset, offset, "{error}");
    }
    assert_eq!(reader.read_at(begins[2] as u64).unwrap(), games[1]);
    assert_eq!(reader.next().unwrap().unwrap(), games[0]);
}

#[test]
fn an_unfinished_shard_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let mut writer = ShardWriter::create(folder.path(), NAME, &header()).unwrap();
    writer.push(&game(0, 2)).unwrap();
    assert_eq!(files(), 1);
    assert!(list_shards(folder.path()).unwrap().is_empty());
    drop(writer);
    assert_eq!(files(), 0);
}

#[test]
fn an_existing_shard_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let late = ShardWriter::create(folder.path(), NAME, &header()).unwrap();
    let path = write_shard(folder.path(), &[game(0, 2)]);
    let before = std::fs::read(&path).unwrap();
    let error = late.finish().unwrap_err();
    assert!(matches!(error.fault, ShardFault::Exists), "{error}");
    let again = ShardWriter::create(folder.path(), NAME, &header()).err();
    assert!(matches!(again.unwrap().fault, ShardFault::Exists));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = ShardWriter::create(&folder.path().join("missing"), NAME, &header()).err();
    let message = nowhere.unwrap().to_string();
    assert!(message.contains("missing"), "{message}");
}

#[test]
fn a_record_beyond_the_limit_is_refused_and_the_shard_stays_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = ShardWriter::create(folder.path(), NAME, &header()).unwrap();
    let mut huge = game(0, 2);
    huge.turns[0].actions = vec![0; MAX_CONTENT_BYTES / 2];
    let error = writer.push(&huge).unwrap_err();
    assert!(
        matches!(error.fault, ShardFault::TooLarge { .. }),
        "{error}"
    );
    writer.push(&game(1, 2)).unwrap();
    let games: Result<Vec<_>, _> = ShardReader::open(writer.finish().unwrap())
        .unwrap()
        .collect();
    assert_eq!(games.unwrap(), [game(1, 2)]);
}

#[test]
fn what_a_killed_writer_leaves_is_removed_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_shard(folder.path(), &[game(0, 3)]);
    for generator in [3, 4] {
        let name = ShardName {
            generator,
            sequence: 15,
        };
        // A process that is killed drops nothing.
        std::mem::forget(ShardWriter::create(folder.path(), name, &header()).unwrap());
    }
    std::fs::write(folder.path().join("003-notes.tmp"), b"a user's").unwrap();
    let count = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(count(), 4);
    remove_unfinished(folder.path(), 3).unwrap();
    assert_eq!(count(), 3, "the other's stays");
    remove_unfinished(folder.path(), 4).unwrap();
    assert_eq!(count(), 2);
    assert!(path.exists());
    let missing = remove_unfinished(&folder.path().join("missing"), 3).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
}
