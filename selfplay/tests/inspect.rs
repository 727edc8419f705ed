//! `selfplay inspect` from the outside.

use assert_cmd::Command;
use engine::shard::{
    Ending, Evaluator, GameId, GameRecord, Header, ShardName, ShardReader, ShardWriter, digest,
    samples::random_game,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn inspect() -> Command {
    let mut command = Command::cargo_bin("selfplay").expect("cargo has built the program");
    command.arg("inspect");
    command
}

fn game(counter: u64, max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 0,
        counter,
    };
    random_game(id, 11, max_turns)
}

fn write_shard(folder: &Path, sequence: u32, games: &[GameRecord]) -> PathBuf {
    let header = Header {
        encoding_version: 1,
        program_version: "0.1.0".into(),
        evaluator: Evaluator {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: digest(b""),
        generator: 0,
    };
    let name = ShardName {
        generator: 0,
        sequence,
    };
    let mut writer = ShardWriter::create(folder, name, &header).unwrap();
    for game in games {
        writer.push(game).unwrap();
    }
    writer.finish().unwrap()
}

/// A run with two shards of 5 and 3 games, and what they hold: turns and rows.
fn run_directory() -> (tempfile::TempDir, u64, u64) {
    let run = tempfile::tempdir().unwrap();
    let shards = run.path().join("shards");
    std::fs::create_dir(&shards).unwrap();
    let games: Vec<GameRecord> = (0..8).map(|counter| game(counter, 60)).collect();
    write_shard(&shards, 0, &games[..5]);
    write_shard(&shards, 1, &games[5..]);
    let turns = games.iter().flat_map(|game| &game.turns);
    let rows = turns.clone().map(|turn| turn.rows.len() as u64).sum();
    (run, turns.count() as u64, rows)
}

/// Exit code, standard output and standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code().expect("no signal ended it"),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_good_run_is_counted() {
    let (run, turns, rows) = run_directory();
    let (code, json, complaints) = outcome(inspect().arg(run.path()).arg("--json"));
    assert_eq!((code, complaints.as_str()), (0, ""));
    let totals: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(totals["games"], 8);
    assert_eq!(totals["turns"], turns);
    assert_eq!(totals["rows"], rows);
    assert_eq!(totals["bad_frames"], 0);
    assert_eq!(totals["shards"], 2);
    assert_eq!(totals["mean_turns"], turns as f64 / 8.0);
    let endings = ["goal", "elimination", "immobilization"].map(|key| &totals["endings"][key]);
    let won: u64 = endings.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(won + totals["unfinished"].as_u64().unwrap(), 8);
    assert_eq!(totals["evaluators"][0]["name"], "uniform");
    assert_eq!(totals["evaluators"][0]["games"], 8);
    let shards = run.path().join("shards");
    let files = ["000-000000.shard", "000-000001.shard"].map(|name| shards.join(name));
    let sizes = files.each_ref().map(|file| file.metadata().unwrap().len());
    assert_eq!(totals["bytes"], sizes.iter().sum::<u64>());

    // The folder itself, and its files one by one, are the same games.
    assert_eq!(outcome(inspect().arg(&shards).arg("--json")).1, json);
    assert_eq!(outcome(inspect().args(&files).arg("--json")).1, json);
    let (code, text, _) = outcome(inspect().arg(run.path()));
    assert_eq!(code, 0);
    assert!(text.contains("games       8\n"), "{text}");
    assert!(text.ends_with("bad frames  0\n"), "{text}");
}

#[test]
fn a_flipped_bit_is_named_with_its_place() {
    let (run, ..) = run_directory();
    let path = run.path().join("shards/000-000000.shard");
    let offset = ShardReader::open(&path).unwrap().frame_offsets().unwrap()[2];
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset as usize + 40] ^= 16;
    std::fs::write(&path, bytes).unwrap();
    let (code, json, complaints) = outcome(inspect().arg(run.path()).arg("--json"));
    assert_eq!(code, 1);
    let totals: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&totals["games"], &totals["bad_frames"]),
        (&7.into(), &1.into())
    );
    let place = format!("{}: frame 3 at byte {offset}: the checksum", path.display());
    assert!(complaints.starts_with(&place), "{complaints}");
    assert_eq!(complaints.lines().count(), 1);
}

#[test]
fn a_game_that_breaks_the_rules_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut games = [game(0, 6), game(1, 6)];
    games[1].turns[3].actions[0] = 321;
    let path = write_shard(folder.path(), 0, &games);
    let (code, text, complaints) = outcome(inspect().arg(&path));
    assert_eq!(code, 1);
    assert!(text.contains("games       1\n"), "{text}");
    assert!(text.contains("bad frames  1\n"), "{text}");
    assert!(
        complaints.contains("frame 2 at byte") && complaints.contains("turn 2s: action 1"),
        "{complaints}"
    );
    let (code, _, complaints) = outcome(inspect().arg(&path).args(["--game", "1"]));
    assert_eq!(code, 1);
    assert!(
        complaints.starts_with("error: ") && complaints.contains("turn 2s"),
        "{complaints}"
    );
}

#[test]
fn files_that_are_no_shards_are_named_and_the_others_counted() {
    let (run, ..) = run_directory();
    let path = run.path().join("shards/000-000002.shard");
    std::fs::write(&path, "no shard at all").unwrap();
    let (code, json, complaints) = outcome(inspect().arg(run.path()).arg("--json"));
    assert_eq!(code, 1);
    let totals: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&totals["games"], &totals["bad_frames"]),
        (&8.into(), &1.into())
    );
    let expected = format!("{}: this is no shard", path.display());
    assert!(complaints.starts_with(&expected), "{complaints}");
}

#[test]
fn one_game_is_printed_with_boards() {
    let (run, ..) = run_directory();
    let (code, text, complaints) = outcome(inspect().arg(run.path()).args(["--game", "6"]));
    assert_eq!((code, complaints.as_str()), (0, ""));
    let shown = game(6, 60);
    assert!(text.starts_with("game 0-6 from "), "{text}");
    let boards = text.matches("   a b c d e f g h\n").count();
    assert_eq!(
        boards,
        shown.turns.len() - 2 + 1,
        "one a turn of play, and the last"
    );
    assert!(text.contains("\n1g ") && text.contains("\n1s ") && text.contains("\n2g "));
    match shown.ending {
        Ending::Won(outcome) => assert!(text.contains(&outcome.to_string())),
        _ => assert!(text.ends_with("unfinished after 60 turns\n")),
    }
    let (code, _, complaints) = outcome(inspect().arg(run.path()).args(["--game", "8"]));
    assert_eq!(code, 1);
    assert!(complaints.contains("hold 8 readable games"), "{complaints}");
}

#[test]
fn what_is_missing_or_empty_is_an_error_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let (code, _, complaints) = outcome(inspect().arg(&missing));
    assert_eq!(code, 1);
    let expected = format!("error: can't read {}: ", missing.display());
    assert!(complaints.starts_with(&expected), "{complaints}");
    let (code, _, complaints) = outcome(inspect().arg(folder.path()));
    assert_eq!(code, 1);
    assert!(complaints.contains("holds no shards"), "{complaints}");
}

#[test]
fn wrong_usage_ends_with_2() {
    assert_eq!(outcome(&mut inspect()).0, 2);
    for wrong in [
        &["--game", "x"][..],
        &["--game", "0", "--json"],
        &["--no-such-option"],
    ] {
        assert_eq!(outcome(inspect().arg(".").args(wrong)).0, 2, "{wrong:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (run, ..) = run_directory();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("selfplay"))
        .args(["inspect", "--game", "0"])
        .arg(run.path())
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_can_not_be_written_is_an_error() {
    let (run, ..) = run_directory();
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("selfplay"))
        .arg("inspect")
        .arg(run.path())
        .stdout(full.unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(
        complaints.starts_with("error: can't write to standard output: "),
        "{complaints}"
    );
}
