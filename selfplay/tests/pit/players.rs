//! The players: policies without a search, players with limits of time, files of matches.

use super::{json, pit, records};
use assert_cmd::Command;
use network::{Architecture, Network};
use std::path::{Path, PathBuf};

/// A random network's file.
pub(super) fn network(folder: &Path, name: &str, seed: u64) -> PathBuf {
    let architecture = Architecture {
        blocks: 1,
        channels: 8,
    };
    let path = folder.join(name);
    let network = Network::with_random_heads(architecture, seed).unwrap();
    network.save(&path, &Default::default()).unwrap();
    path
}

#[test]
fn the_built_in_network_is_the_default_first_player() {
    let folder = tempfile::tempdir().unwrap();
    let play = |players: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
        command.arg("pit").args(players);
        command
            .arg("--out")
            .arg(folder.path().join(players.concat()));
        command.args(["--games", "2", "--evaluations", "8", "--json"]);
        let report = json(command.args(["--set", "match.max_turns=10"]));
        (report["a"]["name"].clone(), records(&report))
    };
    let (name, games) = play(&["--b", "material evaluations=4"]);
    assert_eq!(name, "tusker");
    let (_, named) = play(&["--a", "tusker", "--b", "material evaluations=4"]);
    assert_eq!(games, named);
    let (name, policy) = play(&["--a", "policy:tusker", "--b", "material evaluations=4"]);
    assert_eq!(name, "policy:tusker");
    assert_ne!(policy, games);
}

#[test]
fn a_policy_plays_without_a_search_and_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let policy = format!(
        "policy:{}",
        network(folder.path(), "n.safetensors", 1).display()
    );
    let play = |settings: &str, threads: &str| {
        let short = ["--games", "4", "--set", "match.max_turns=14", "--json"];
        let player = format!("{policy}{settings}");
        json(pit(folder.path(), &player, "random", &short).args(["--threads", threads]))
    };
    let report = play("", "1");
    assert_eq!(
        (&report["a"]["name"], &report["a"]["temperature"]),
        (&"policy:n".into(), &0.0.into())
    );
    let evaluations = report["a"]["evaluations_per_turn"].as_f64().unwrap();
    assert!((1.0..=5.0).contains(&evaluations), "one a step: {report}");
    assert_eq!(report["b"]["evaluations_per_turn"], 0.0);
    assert_eq!(report["b"].get("temperature"), None);
    let one = records(&report);
    assert_eq!(one, records(&play("", "2")));
    assert!(
        one[0].starts_with("Gold: policy:n (a)\nSilver: random (b)\n"),
        "{}",
        one[0]
    );
    let drawn = records(&play(" temperature=1", "1"));
    assert_ne!(one, drawn, "drawn from the policy as it is");
    assert_eq!(drawn, records(&play(" temperature=1", "2")));
}

#[test]
fn networks_meet_their_own_policies_and_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let one = network(folder.path(), "one.safetensors", 1);
    let two = network(folder.path(), "two.safetensors", 2);
    let text = format!(
        "games = 2\nevaluations = 4\nmax_turns = 8\n[[player]]\nplayer = {one:?}\n[[player]]\nplayer = {two:?}\n\
         [[player]]\nname = \"by heart\"\nplayer = \"policy:{}\"\n",
        one.display()
    );
    let file = folder.path().join("m.toml");
    std::fs::write(&file, text).unwrap();
    let report = json(&mut of_file(folder.path(), &file, &["--json"]));
    let identities: Vec<_> = (0..3)
        .map(|player| &report["players"][player]["identity"])
        .collect();
    assert_ne!(identities[0], identities[1]);
    assert_eq!(identities[0], identities[2], "the same network");
    assert_eq!(report["games"], 6);
    assert_eq!(report["unfinished"], 6);
    assert!((0..3).all(|player| report["players"][player]["turns"].as_u64() == Some(12)));
}

fn of_file(out: &Path, file: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command.args(["pit", "--match"]).arg(file);
    command.arg("--out").arg(out).args(more);
    command
}

#[test]
fn the_example_of_a_match_s_file_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/match.toml");
    // Fewer games and turns than its own; all else is unchanged.
    let text = std::fs::read_to_string(example).unwrap();
    let shorter = text.replace("\ngames = 100\n", "\ngames = 2\n");
    let shorter = shorter.replace("\n# max_turns = 400\n", "\nmax_turns = 12\n");
    assert!(shorter.contains("\ngames = 2\n") && shorter.contains("\nmax_turns = 12\n"));
    let file = folder.path().join("match.toml");
    std::fs::write(&file, shorter).unwrap();
    let report = json(&mut of_file(folder.path(), &file, &["--json"]));
    let players = report["players"].as_array().unwrap();
    let pairings = report["pairings"].as_array().unwrap();
    assert_eq!((players.len(), pairings.len()), (4, 6));
    assert_eq!(report["games"], 12);
    let points: f64 = players
        .iter()
        .map(|player| player["points"].as_f64().unwrap())
        .sum();
    assert_eq!(points, 12.0, "a point a game");
    assert_eq!(
        (&players[0]["elo"], &players[0]["elo_low"]),
        (&0.0.into(), &0.0.into())
    );
}

#[test]
fn a_match_s_file_and_its_players_are_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.toml");
    let out = folder.path().join("out");
    let players = "[[player]]\nplayer = \"random\"\n[[player]]\nname = \"deep\"\n";
    for (text, part) in [
        (
            format!("games = 2\n{players}player = \"missing.safetensors\"\nevaluations = 2\n"),
            "m.toml: player 2 (deep): ",
        ),
        (
            format!("games = 2\n{players}player = \"material\"\n"),
            "m.toml: player 2 (deep): this player searches, and has no limit",
        ),
        (
            format!(
                "games = 2\n{players}player = \"uniform\"\nevaluations = 2\nsearch.mode = \"best\"\n"
            ),
            "player 2 (deep): search: search.mode has a wrong value",
        ),
        (
            format!("games = 2\nopenings = \"no.txt\"\n{players}player = \"random\"\n"),
            "m.toml: openings no.txt",
        ),
        (
            format!("games = 2\ncolour = 1\n{players}player = \"random\"\n"),
            "unknown field `colour`",
        ),
        (
            format!("games = 2\n{players}player = \"uniform\"\nset = [\"search.mode=puct\"]\n"),
            "`set` was removed: keys of match.search are settings of a player",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = of_file(&out, &file, &[]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    assert!(!out.exists(), "nothing was begun");
    let both = of_file(&out, &file, &["--games", "2"]).output().unwrap();
    assert_eq!(
        both.status.code(),
        Some(2),
        "a file specifies the whole match"
    );
}

#[test]
fn a_limit_of_time_is_separate_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--evaluations",
        "4",
        "--games",
        "2",
        "--set",
        "match.max_turns=6",
        "--json",
    ];
    let report = json(&mut pit(
        folder.path(),
        "uniform time=0.01",
        "material",
        &options,
    ));
    assert_eq!(report["reproducible"], false);
    assert_eq!(
        (&report["a"]["time"], &report["a"]["evaluations"]),
        (&0.01.into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&report["b"]["time"], &report["b"]["evaluations"]),
        (&serde_json::Value::Null, &4.into())
    );
    assert!(report["a"]["evaluations_per_turn"].as_f64().unwrap() >= 1.0);
}
