//! Matches of several players, sequential tests, and their reports.

use super::{json, pit};
use assert_cmd::Command;
use serde_json::Value;

#[test]
fn a_sequential_test_decides_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let play = |threads: &str| {
        let options = [
            "--games",
            "400",
            "--evaluations",
            "12",
            "--sprt",
            "0,80",
            "--alpha",
            "0.1",
            "--beta",
            "0.1",
            "--set",
            "selfplay.games_in_flight=8",
            "--json",
            "--threads",
            threads,
        ];
        json(&mut pit(folder.path(), "material", "random", &options))
    };
    let (one, two) = (play("1"), play("2"));
    for key in [
        "sprt",
        "games",
        "wins_a",
        "pairs",
        "elo",
        "los",
        "ends",
        "distinct_games",
    ] {
        assert_eq!(one[key], two[key], "{key}");
    }
    let sprt = &one["sprt"];
    assert_eq!(
        (&sprt["verdict"], &sprt["alpha"]),
        (&"H1".into(), &0.1.into())
    );
    assert_eq!(
        one["games"].as_u64().unwrap(),
        2 * sprt["pairs"].as_u64().unwrap()
    );
    assert!(sprt["llr"].as_f64() >= sprt["bounds"][1].as_f64());
    assert!(
        one["games_over"].as_u64().unwrap() < 400,
        "it stopped early"
    );
}

#[test]
fn several_players_are_rated_by_all_their_games() {
    let folder = tempfile::tempdir().unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
        command.args([
            "pit",
            "--players",
            "uniform",
            "material",
            "random",
            "--games",
            "4",
            "--evaluations",
            "16",
        ]);
        command
            .args(["--set", "match.max_turns=120", "--out"])
            .arg(folder.path());
        command
    };
    let report = json(command().arg("--json"));
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let players = report["players"].as_array().unwrap();
    assert_eq!(
        players.iter().map(name).collect::<Vec<_>>(),
        ["uniform", "material", "random"]
    );
    let elo = |player: usize| players[player]["elo"].as_f64().unwrap();
    assert!(elo(1) > elo(0) && elo(0) > elo(2), "{report}");
    assert!(players[2]["elo_low"].as_f64().unwrap() < elo(2));
    let pairings = report["pairings"].as_array().unwrap();
    let met: Vec<_> = pairings
        .iter()
        .map(|pairing| (&pairing["a"], &pairing["b"]))
        .collect();
    let names = |a: &str, b: &str| (Value::from(a), Value::from(b));
    let expected = [
        names("uniform", "material"),
        names("uniform", "random"),
        names("material", "random"),
    ];
    assert!(met.into_iter().eq(expected.iter().map(|(a, b)| (a, b))));
    assert!(pairings.iter().all(|pairing| pairing["games"] == 4));
    let first = json(command().args(["--schedule", "first-against-others", "--json"]));
    assert_eq!(first["pairings"].as_array().unwrap().len(), 2);
    let said = command().output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let order: Vec<_> = ["\nmaterial  ", "\nuniform  ", "\nrandom  "]
        .iter()
        .map(|part| said.find(part))
        .collect();
    assert!(
        order.is_sorted() && order[0].is_some(),
        "the best first: {said}"
    );
    let refused = command().args(["--sprt", "0,5"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("--sprt: a sequential test is of two players, and here are 3"),
        "{said}"
    );
}

#[test]
fn copies_of_a_game_are_counted_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let network = super::players::network(folder.path(), "n.safetensors", 1);
    let policy = format!("policy:{}", network.display());
    let options = [
        "--games",
        "4",
        "--openings",
        "own",
        "--set",
        "match.max_turns=8",
    ];
    let match_of = || pit(folder.path(), &policy, &policy, &options);
    // Both always play the same turns.
    let report = json(match_of().arg("--json"));
    assert_eq!(
        (&report["games"], &report["distinct_games"]),
        (&4.into(), &2.into())
    );
    let said = match_of().output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("only 2 of 4 games differ"), "{said}");
}

/// Players without an evaluator play all games in one round; games that are over are still handed over.
#[test]
fn a_test_of_random_players_stops_when_it_is_decided() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--games", "20000", "--sprt", "0,400", "--json"];
    let report = json(&mut pit(folder.path(), "random", "random", &options));
    assert_eq!(report["sprt"]["verdict"], "H0");
    let played = report["games_over"].as_u64().unwrap();
    assert!(played < 15_000, "{played}");
}
