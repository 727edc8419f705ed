//! `selfplay pit` as a user runs it.

mod engines;
mod matches;
mod openings;
mod players;
mod resume;

use arimaa::notation::parse_record;
use assert_cmd::Command;
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
        "match.max_turns=40",
        "--json",
    ];
    let report = json(&mut pit(folder.path(), "uniform", "random", &options));
    assert_eq!(report["games"], 6);
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(count("wins_a") + count("losses_a") + count("unfinished"), 6);
    let pairs: Vec<u64> = serde_json::from_value(report["pairs"].clone()).unwrap();
    assert_eq!((pairs.len(), pairs.iter().sum()), (5, 3));
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

/// A match whose games end soon.
fn match_of(out: &Path, [a, b]: [&str; 2], more: &[&str]) -> serde_json::Value {
    let short = ["--games", "4", "--set", "match.max_turns=16", "--json"];
    json(pit(out, a, b, &short).args(more))
}

fn records(report: &serde_json::Value) -> Vec<String> {
    let folder = Path::new(report["records"].as_str().unwrap());
    let game = |number| std::fs::read_to_string(folder.join(format!("{number:06}.txt"))).unwrap();
    (0..report["games"].as_u64().unwrap()).map(game).collect()
}

#[test]
fn each_player_has_its_own_settings_and_the_report_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let own = [
        "material search.puct.exploration=3 search.reuse_tree=false",
        "material evaluations=48 search.mode=gumbel",
    ];
    let report = match_of(folder.path(), own, &["--evaluations", "8"]);
    let (a, b) = (&report["a"], &report["b"]);
    assert_eq!(
        (&a["player"], &b["player"]),
        (&"material".into(), &"material".into())
    );
    assert_eq!(
        (&a["evaluations"], &b["evaluations"]),
        (&8.into(), &48.into())
    );
    assert_eq!(
        a["spec"],
        "material evaluations=8 search.puct.exploration=3.0 search.reuse_tree=false"
            .replace("3.0", "3")
    );
    assert_eq!(b["spec"], "material evaluations=48 search.mode=gumbel");
    assert_eq!(
        (
            &a["search"]["puct"]["exploration"],
            &b["search"]["puct"]["exploration"]
        ),
        (&3.0.into(), &0.5.into())
    );
    for (player, least, most) in [(a, 4.0, 8.0), (b, 24.0, 48.0)] {
        let used = player["evaluations_per_turn"].as_f64().unwrap();
        assert!((least..=most).contains(&used), "{player}");
        assert!(player["milliseconds_per_turn"].as_f64().unwrap() > 0.0);
    }
    let said = pit(
        folder.path(),
        "material search.mode=gumbel",
        "random",
        &["--games", "2", "--evaluations", "8"],
    )
    .args(["--set", "match.max_turns=16"])
    .output()
    .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for part in [
        "a: material evaluations=8 search.mode=gumbel: used ",
        "b: random\n",
        "a is stronger with a likelihood of ",
        "overhead: ",
        "Elo ",
        "pairs with 0, ½, 1, 1½, 2 points for a: ",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn settings_of_both_players_play_like_those_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let play = |players, more: &[&str]| records(&match_of(folder.path(), players, more));
    let (usual, puct) = ("material", "material search.mode=puct");
    let for_all = ["--evaluations", "24"];
    let set = [&for_all[..], &["--set", "match.search.mode=puct"]].concat();
    let common = play([usual; 2], &set);
    let own = "material evaluations=24 search.mode=puct";
    assert_eq!(play([own; 2], &[]), common);
    let one = play([puct, usual], &for_all);
    assert_ne!(one, common);
    assert_ne!(one, play([usual, puct], &for_all));
}

#[test]
fn with_too_few_evaluations_to_compare_turns_mode_gumbel_is_mode_puct() {
    let folder = tempfile::tempdir().unwrap();
    let play = |evaluations: &str, mode: &str| {
        let set = format!("match.search.mode={mode}");
        let options = ["--evaluations", evaluations, "--set", &set];
        records(&match_of(folder.path(), ["material"; 2], &options))
    };
    assert_eq!(play("7", "gumbel"), play("7", "puct"));
    assert_ne!(play("16", "gumbel"), play("16", "puct"));
}

#[test]
fn material_beats_uniform() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--games",
        "12",
        "--evaluations",
        "16",
        "--seed",
        "1",
        "--json",
    ];
    let report = json(&mut pit(folder.path(), "material", "uniform", &options));
    assert!(report["score"].as_f64().unwrap() > 0.8, "{report}");
}

#[test]
fn the_same_seed_plays_the_same_games_on_any_number_of_threads() {
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
        let mut command = pit(folder.path(), "uniform", "uniform", &options);
        records(&json(command.args(["--set", "match.max_turns=20"])))
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
fn a_uniform_search_beats_random_steps() {
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
fn faulty_arguments_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let few = ["--games", "2", "--evaluations", "4"];
    let with = |more: [&'static str; 2]| [&few[..], &more].concat();
    for (a, options, code, part) in [
        (
            "uniform",
            vec!["--games", "3", "--evaluations", "4"],
            2,
            "an even number",
        ),
        (
            "uniform",
            vec!["--games", "0", "--evaluations", "4"],
            2,
            "--games",
        ),
        (
            "uniform",
            vec!["--games", "2", "--evaluations", "0"],
            2,
            "--evaluations",
        ),
        (
            "uniform",
            vec!["--games", "2"],
            1,
            "--a uniform: this player searches, and has no limit",
        ),
        (
            "uniform",
            vec!["--games", "2", "--evaluations", "4", "--sprt", "5"],
            2,
            "--sprt",
        ),
        ("uniform", with(["--sprt", "10,0"]), 1, "--sprt"),
        (
            "uniform",
            with(["--openings", "missing.txt"]),
            1,
            "--openings missing.txt",
        ),
        (
            "uniform",
            with(["--opening-turns", "99"]),
            2,
            "--opening-turns",
        ),
        (
            "uniform match.max_turns=9",
            few.to_vec(),
            2,
            "`match.max_turns=9`: unknown key",
        ),
        (
            "uniform",
            with(["--a-evaluations", "4"]),
            2,
            "--a-evaluations was removed: evaluations=N is a word of --a",
        ),
        (
            "uniform",
            with(["--b-set", "search.mode=puct"]),
            2,
            "--b-set was removed: search.KEY=VALUE is a word of --b",
        ),
        (
            "uniform",
            with(["--set", "selfplay.search.mode=puct"]),
            1,
            "this key is for self-play",
        ),
        (
            "uniform evaluations=0",
            few.to_vec(),
            1,
            "--a uniform: evaluations = 0 is out of range",
        ),
        (
            "random search.mode=puct",
            few.to_vec(),
            1,
            "`random` doesn't",
        ),
        (
            "missing.safetensors",
            few.to_vec(),
            1,
            "missing.safetensors",
        ),
    ] {
        let output = pit(&out, a, "random", &options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
    }
    assert!(!out.exists(), "nothing was begun");
}

/// As on a GPU: both players' networks are in one service.
#[test]
fn networks_meet_in_the_evaluation_service() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--games", "4", "--evaluations", "8"];
    let more = [
        "--device",
        "cpu:service",
        "--set",
        "match.max_turns=20",
        "--json",
    ];
    let options = [&options[..], &more].concat();
    let report = json(&mut pit(
        folder.path(),
        "tusker evaluations=4",
        "policy:tusker",
        &options,
    ));
    assert_eq!(report["games"], 4);
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(count("wins_a") + count("losses_a") + count("unfinished"), 4);
}
