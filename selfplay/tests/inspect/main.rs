//! `selfplay inspect` from the outside: totals and usage here, what is wrong, repaired or shown of single games in the modules.

mod faults;
mod game;
mod made;
mod repair;

use assert_cmd::Command;
use engine::record::{
    EvaluatorId, GameId, GameRecord, Header, ShardName, ShardWriter, digest, samples::random_game,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn inspect() -> Command {
    let mut command = Command::cargo_bin("selfplay").expect("cargo has built the program");
    command.arg("inspect");
    command
}

fn sample(counter: u64, max_turns: usize) -> GameRecord {
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
        evaluator: EvaluatorId {
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
    let games: Vec<GameRecord> = (0..8).map(|counter| sample(counter, 60)).collect();
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
    assert_eq!(totals["evaluators"][0]["name"], "sample");
    assert_eq!(totals["evaluators"][0]["games"], 8);
    assert_eq!(totals["evaluators"][0]["turns"], turns);
    let shards = run.path().join("shards");
    let files = ["000-000000.shard", "000-000001.shard"].map(|name| shards.join(name));
    let sizes = files.each_ref().map(|file| file.metadata().unwrap().len());
    assert_eq!(totals["bytes"], sizes.iter().sum::<u64>());

    // The folder itself, and its files one by one, are the same games; nothing is read twice.
    assert_eq!(outcome(inspect().arg(&shards).arg("--json")).1, json);
    assert_eq!(outcome(inspect().args(&files).arg("--json")).1, json);
    let twice = [run.path(), &shards, &files[1]];
    assert_eq!(outcome(inspect().args(twice).arg("--json")).1, json);
    // The sums don't depend on the threads.
    let alone = outcome(
        inspect()
            .arg(&shards)
            .arg("--json")
            .env("RAYON_NUM_THREADS", "1"),
    );
    assert_eq!(alone.1, json);
    assert_eq!(totals["avoidable_losses"], Value::Null);
    let (code, counted, _) = outcome(
        inspect()
            .arg(run.path())
            .args(["--json", "--avoidable-losses"]),
    );
    assert_eq!(code, 0);
    let counted: Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(counted["avoidable_losses"]["of"], won);
    let (code, text, _) = outcome(inspect().arg(run.path()));
    assert_eq!(code, 0);
    assert!(
        text.contains("\ngames       8: 8 from the empty board\n"),
        "{text}"
    );
    assert!(text.ends_with("bad frames  0\n"), "{text}");
}

#[test]
fn missing_and_empty_paths_are_named() {
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
        &["--game", "-1"],
        &["--game", "3-"],
        &["--game", "0", "--json"],
        &["--game", "0", "--repair", "x"],
        &["--no-such-option"],
    ] {
        assert_eq!(outcome(inspect().arg(".").args(wrong)).0, 2, "{wrong:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
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
