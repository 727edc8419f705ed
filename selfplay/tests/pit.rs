//! `selfplay pit` as a user runs it.

use assert_cmd::Command;
use engine::notation::parse_record;
use std::path::Path;

fn pit(out: &Path, a: &str, b: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command
        .args(["pit", "--a", a, "--b", b, "--out"])
        .arg(out)
        .args(more);
    command
}

fn json(command: &mut Command) -> serde_json::Value {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_match_is_reported_and_its_games_are_records() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--games",
        "6",
        "--evaluations",
        "4",
        "--seed",
        "2",
        "--set",
        "pit.max_turns=40",
        "--json",
    ];
    let report = json(&mut pit(folder.path(), "uniform", "random", &options));
    assert_eq!(report["games"], 6);
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(count("wins_a") + count("losses_a") + count("unfinished"), 6);
    let elo = |key: &str| report[key].as_f64().unwrap();
    assert!(elo("elo_low") < elo("elo") && elo("elo") < elo("elo_high"));
    let records = Path::new(report["records"].as_str().unwrap());
    let mut games: Vec<_> = std::fs::read_dir(records)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    games.sort();
    assert_eq!(games.len(), 6);
    let games: Vec<_> = games
        .iter()
        .map(|path| parse_record(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect();
    assert_eq!(
        games[0].turns()[..2],
        games[1].turns()[..2],
        "a pair shares its setups"
    );
    assert!(
        games
            .iter()
            .all(|game| game.outcome().is_some() || game.turns().len() == 40)
    );
}

#[test]
fn the_same_seed_plays_the_same_games_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let play = |seed: &str, threads: &str| {
        let options = [
            "--games",
            "4",
            "--evaluations",
            "8",
            "--seed",
            seed,
            "--threads",
            threads,
            "--json",
        ];
        let report = json(
            pit(folder.path(), "uniform", "uniform", &options).args(["--set", "pit.max_turns=20"]),
        );
        let records = report["records"].as_str().unwrap().to_owned();
        let game = |number| {
            std::fs::read_to_string(Path::new(&records).join(format!("{number:06}.txt"))).unwrap()
        };
        [game(0), game(1), game(2), game(3)]
    };
    let one = play("1", "1");
    assert_eq!(
        one,
        play("1", "2"),
        "the second match has a folder of its own"
    );
    assert_ne!(one, play("2", "1"));
}

#[test]
fn a_search_that_knows_nothing_still_beats_random_steps() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--games",
        "20",
        "--evaluations",
        "200",
        "--seed",
        "1",
        "--json",
    ];
    let report = json(&mut pit(folder.path(), "uniform", "random", &options));
    assert!(
        report["wins_a"].as_u64().unwrap() > report["losses_a"].as_u64().unwrap(),
        "{report}"
    );
}

#[test]
fn faulty_orders_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (a, more, code, part) in [
        (
            "uniform",
            ["--games", "3", "--evaluations", "4"],
            2,
            "an even number",
        ),
        (
            "uniform",
            ["--games", "0", "--evaluations", "4"],
            2,
            "--games",
        ),
        (
            "uniform",
            ["--games", "2", "--evaluations", "0"],
            2,
            "--evaluations",
        ),
        (
            "missing.safetensors",
            ["--games", "2", "--evaluations", "4"],
            1,
            "missing.safetensors",
        ),
    ] {
        let output = pit(&out, a, "random", &more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
    }
    assert!(!out.exists(), "nothing was begun");
}
