//! What is wrong is named by file, offset and reason, and everything else is counted.

use crate::{inspect, outcome, run_directory, sample, write_shard};
use engine::record::journal::{Beginning, Journal, JournalPlace};
use engine::record::{GameId, ShardName, ShardReader, Start};
use serde_json::{Value, json};
use std::path::Path;

/// Where the frames of a shard's games begin.
pub(crate) fn offsets(path: &Path) -> Vec<u64> {
    ShardReader::open(path).unwrap().frame_offsets().unwrap()
}

/// Changes the bytes of a file.
pub(crate) fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Damage in a journal is a fault like any other; the games behind it are counted.
#[test]
fn damage_to_a_journal_is_named() {
    let (run, ..) = run_directory();
    let folder = run.path().join("journal");
    std::fs::create_dir(&folder).unwrap();
    let place = JournalPlace::new(&folder, run.path().join("shards"), 3);
    let (journal, _) = Journal::open(place).unwrap();
    let id = |counter| GameId {
        generator: 3,
        counter,
    };
    let begin = |counter| {
        let beginning = Beginning {
            id: id(counter),
            seed: 0,
            start: Start::Empty,
        };
        journal.begin(beginning).unwrap();
    };
    (0..3).for_each(begin);
    // It is flushed here, and the next entry says so.
    let shard = ShardName {
        generator: 3,
        sequence: 0,
    };
    journal.closing(shard, &[id(0)]).unwrap();
    begin(3);
    let file = folder.join("003-000000.journal");
    let counts = |path: &Path, expected: i32| {
        let (code, json, complaints) = outcome(inspect().arg(path).arg("--json"));
        assert_eq!(code, expected, "{complaints}");
        let totals: Value = serde_json::from_str(&json).unwrap();
        (totals["journal"].clone(), complaints)
    };
    let whole = json!({"files": 1, "games": 4, "turns": 0});
    assert_eq!(counts(run.path(), 0), (whole.clone(), String::new()));
    assert_eq!(counts(&file, 0), (whole.clone(), String::new()));
    let twice = [run.path(), run.path(), &file];
    let (_, json, _) = outcome(inspect().args(twice).arg("--json"));
    let totals: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(totals["journal"], whole, "no journal is read twice");
    // In the entry of the second game.
    let is_mark = |bytes: &[u8]| bytes == b"\xf7TJ\n";
    damage(&file, |bytes| {
        let marks = bytes
            .windows(4)
            .enumerate()
            .filter(|(_, part)| is_mark(part));
        let places: Vec<usize> = marks.map(|(place, _)| place).collect();
        bytes[places[3] + 14] ^= 1;
    });
    let (journal, complaints) = counts(run.path(), 1);
    assert_eq!(journal["games"], 3);
    assert!(complaints.contains("003-000000.journal: byte ") && complaints.contains("are damaged"));
    assert_eq!(counts(&file, 1).0, journal);
}

/// The games that are counted in a run of 8 in two shards with something wrong in the first, and what is complained of.
fn inspected(run: &Path) -> (u64, Vec<String>) {
    let (code, json, complaints) = outcome(inspect().arg(run).arg("--json"));
    assert_eq!(code, 1, "{complaints}");
    let totals: Value = serde_json::from_str(&json).unwrap();
    let complaints: Vec<String> = complaints.lines().map(str::to_owned).collect();
    assert_eq!(totals["bad_frames"], complaints.len());
    // The object says the same.
    for (fault, complaint) in totals["faults"].as_array().unwrap().iter().zip(&complaints) {
        assert!(
            complaint.starts_with(fault["file"].as_str().unwrap()),
            "{complaint}"
        );
        assert!(
            complaint.ends_with(fault["reason"].as_str().unwrap()),
            "{complaint}"
        );
        let offset = fault["offset"].as_u64().unwrap();
        assert!(
            offset == 0 || complaint.contains(&format!("byte {offset}: ")),
            "{complaint}"
        );
    }
    (totals["games"].as_u64().unwrap(), complaints)
}

/// One kind of damage to the first shard, whose frames are known.
fn one_fault(change: impl FnOnce(&mut Vec<u8>, &[usize])) -> (u64, String, Vec<u64>) {
    let (run, ..) = run_directory();
    let path = run.path().join("shards/000-000000.shard");
    let offsets = offsets(&path);
    let places: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
    damage(&path, |bytes| change(bytes, &places));
    let (games, complaints) = inspected(run.path());
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    let complaint = complaints[0]
        .strip_prefix(&path.display().to_string())
        .unwrap();
    (games, complaint.to_owned(), offsets)
}

#[test]
fn a_flipped_bit_is_named_with_its_place() {
    let (games, complaint, offsets) = one_fault(|bytes, frames| bytes[frames[2] + 40] ^= 16);
    assert_eq!(games, 7);
    let place = format!(": frame 3 at byte {}: the checksum is ", offsets[2]);
    assert!(complaint.starts_with(&place), "{complaint}");
}

#[test]
fn games_after_an_impossible_length_are_counted() {
    let (games, complaint, offsets) = one_fault(|bytes, frames| bytes[frames[1] + 3] = 200);
    assert_eq!(games, 7);
    let place = format!(": frame 2 at byte {}: it claims ", offsets[1]);
    assert!(complaint.starts_with(&place), "{complaint}");
}

#[test]
fn a_cut_is_named() {
    let (games, complaint, offsets) = one_fault(|bytes, frames| bytes.truncate(frames[3]));
    assert_eq!(games, 6);
    let expected = format!(
        ": frame 4 at byte {}: the file is cut off: it has no end frame",
        offsets[3]
    );
    assert_eq!(complaint, expected);
}

#[test]
fn bytes_after_the_end_are_named() {
    let (games, complaint, _) = one_fault(|bytes, _| bytes.extend([0; 5]));
    assert_eq!(games, 8);
    assert!(complaint.contains("frame 6 at byte "), "{complaint}");
    assert!(
        complaint.ends_with(": 5 bytes follow the shard's end"),
        "{complaint}"
    );
}

#[test]
fn headers_that_can_not_be_read_are_named() {
    for (byte, said) in [
        (0, ": this is not a shard: its first bytes differ"),
        (
            8,
            ": byte 8: the shard has format version 2; this program reads version 3",
        ),
        (40, ": frame 0 at byte 12: the checksum is "),
    ] {
        let (games, complaint, _) = one_fault(|bytes, _| bytes[byte] ^= 1);
        assert_eq!(games, 3);
        assert!(complaint.starts_with(said), "{complaint}");
    }
    let (games, complaint, _) = one_fault(|bytes, _| *bytes = b"no shard at all".to_vec());
    assert_eq!(
        (games, complaint.as_str()),
        (3, ": this is not a shard: its first bytes differ")
    );
    let (games, ..) = one_fault(|bytes, _| bytes.clear());
    assert_eq!(games, 3);
}

#[test]
fn a_game_that_breaks_the_rules_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut games = [sample(0, 6), sample(1, 6)];
    games[1].turns[3].actions[0] = 321;
    let path = write_shard(folder.path(), 0, &games);
    let (counted, complaints) = inspected(&path);
    assert_eq!((counted, complaints.len()), (1, 1));
    let place = format!(
        "{}: frame 2 at byte {}: game: turn 2s: action 1: ",
        path.display(),
        offsets(&path)[1]
    );
    assert!(complaints[0].starts_with(&place), "{complaints:?}");
    let (code, _, complaints) = outcome(inspect().arg(&path).args(["--game", "1"]));
    assert_eq!(code, 1);
    assert!(
        complaints.starts_with("error: ") && complaints.contains("turn 2s"),
        "{complaints}"
    );
}

#[test]
fn invalid_numbers_are_faults() {
    let folder = tempfile::tempdir().unwrap();
    let mut games = [sample(0, 6), sample(1, 6), sample(2, 6)];
    games[0].turns[2].rows[0].weight = f32::NAN;
    games[1].turns[2].rows[0].surprise = f32::INFINITY;
    let path = write_shard(folder.path(), 0, &games);
    let (counted, complaints) = inspected(&path);
    assert_eq!((counted, complaints.len()), (1, 2));
    assert!(
        complaints[0].ends_with("turn 2g, row 0: the weight is NaN"),
        "{complaints:?}"
    );
}

#[test]
fn a_doubled_game_is_named_with_both_places() {
    let folder = tempfile::tempdir().unwrap();
    let games: Vec<_> = [0, 1, 0].map(|counter| sample(counter, 4)).to_vec();
    let first = write_shard(folder.path(), 0, &games);
    let second = write_shard(folder.path(), 1, &[sample(2, 4), sample(1, 4)]);
    let (_, complaints) = inspected(folder.path());
    let at = [offsets(&first), offsets(&second)];
    let (first, second) = (first.display(), second.display());
    let expected = [
        format!(
            "{first}: frame 3 at byte {}: game 0-0 is there already: {first} at byte {}",
            at[0][2], at[0][0]
        ),
        format!(
            "{second}: frame 2 at byte {}: game 0-1 is there already: {first} at byte {}",
            at[1][1], at[0][1]
        ),
    ];
    assert_eq!(complaints, expected);

    // Another run numbers its games as it likes.
    let folders = [folder.path().join("a"), folder.path().join("b")];
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
        write_shard(folder, 0, &games[..2]);
    }
    assert_eq!(outcome(inspect().args(&folders)).0, 0);
}

#[test]
fn means_of_a_shard_without_games_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_shard(folder.path(), 0, &[]);
    let (code, text, complaints) = outcome(inspect().arg(&path));
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(
        text.contains("games       0\n") && !text.contains("NaN"),
        "{text}"
    );
    let (_, object, _) = outcome(inspect().arg(&path).arg("--json"));
    let totals: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(totals["mean_turns"], json!(null));
    assert_eq!(totals["lengths"], json!(null));
}

#[test]
fn control_characters_in_a_name_are_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let mut hostile = sample(0, 4);
    hostile.evaluators[0].name = "\u{1b}[2J\nbad frames  0".into();
    let path = write_shard(folder.path(), 0, &[hostile]);
    for arguments in [&[][..], &["--game", "0"]] {
        let (code, text, _) = outcome(inspect().arg(&path).args(arguments));
        assert_eq!(code, 0);
        assert!(
            text.contains("\u{FFFD}[2J\u{FFFD}bad frames") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
