//! `selfplay analyze` as a user runs it.

use arimaa::notation::{TurnLabel, format_record};
use arimaa::rules::Game;
use assert_cmd::Command;
use engine::record::{
    EvaluatorId, GameId, Header, ShardName, ShardWriter, digest, samples::random_game,
};
use network::{Architecture, Network};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Gold's rabbit on a7 can step to the goal.
const GOAL: &str = "g [        R r                                                   E ]";

/// A position far from a decision.
const QUIET: &str = "g [r   e    r  d       R              E        D    c H    R      R]";

/// An analysis with `material`, which is fast, unless the arguments name another evaluator.
fn analyze(more: &[&str]) -> Command {
    let is_judged = more.contains(&"--network");
    let judge = ["--network", "material"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command.arg("analyze").args(more);
    command.args(judge.iter().filter(|_| !is_judged));
    command
}

/// Exit code, standard output and standard error.
fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn printed(command: &mut Command) -> String {
    let (code, text, complaints) = outcome(command);
    assert_eq!((code, complaints.as_str()), (Some(0), ""));
    text
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&printed(command.arg("--json"))).unwrap()
}

/// A report without the keys that differ in each search.
fn timeless(mut report: Value) -> Value {
    let fields = report.as_object_mut().unwrap();
    for key in ["seconds", "evaluations_per_second"] {
        assert!(fields.remove(key).unwrap().is_number(), "{key}");
    }
    report
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn of_record(path: &Path, more: &[&str]) -> Command {
    analyze(&[&["--record", path.to_str().unwrap()][..], more].concat())
}

#[test]
fn a_goal_within_the_turn_is_proven_in_both_modes() {
    for mode in ["puct", "gumbel"] {
        let said = printed(&mut analyze(&["--position", GOAL, "--mode", mode]));
        assert!(
            said.contains("value     Gold wins 100.0%; proven: Gold wins in 1 turn\n"),
            "{said}"
        );
        assert!(said.contains("win in 1  Ra7n\n"), "{said}");
        let report = json(&mut analyze(&["--position", GOAL, "--mode", mode]));
        let proven = serde_json::json!({ "winner": "gold", "turns": 1 });
        assert_eq!(report["proven"], proven);
        assert_eq!(report["turns"][0]["turn"], "Ra7n");
        assert_eq!(report["turns"][0]["is_chosen"], true);
        assert_eq!(report["turns"][0]["proven"], proven);
    }
}

#[test]
fn the_json_object_has_the_documented_keys() {
    let report = json(&mut analyze(&["--position", QUIET, "--evaluations", "300"]));
    let mut keys: Vec<&str> = report
        .as_object()
        .unwrap()
        .keys()
        .map(|key| &**key)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "bytes",
            "depth",
            "evaluations",
            "evaluations_per_second",
            "gold_value",
            "is_decided",
            "known_turns",
            "line",
            "merged_share",
            "mode",
            "nodes",
            "own_value",
            "position",
            "proven",
            "seconds",
            "shared_visits",
            "side",
            "turns",
            "unfinished_visits",
            "value",
            "visits",
        ]
    );
    assert_eq!(report["position"], QUIET);
    assert_eq!(report["is_decided"], true);
    let chosen = |turn: &&Value| turn["is_chosen"] == true;
    let turns = report["turns"].as_array().unwrap();
    assert_eq!(turns.iter().filter(chosen).count(), 1);
    let chosen = turns.iter().find(chosen).unwrap();
    assert_eq!(report["line"][0]["turn"], chosen["turn"]);
}

#[test]
fn limits_and_options_hold() {
    let position = ["--position", QUIET];
    let report = |more: &[&str]| json(&mut analyze(&[&position[..], more].concat()));
    let evaluations = |more: &[&str]| report(more)["evaluations"].as_u64().unwrap();
    assert_eq!(evaluations(&[]), 1_000);
    assert_eq!(evaluations(&["--evaluations", "200"]), 200);
    assert_eq!(report(&["--visits", "300"])["visits"], 300);
    assert!(evaluations(&["--time", "0.05"]) > 0);
    assert_eq!(report(&["--time", "1000", "--visits", "50"])["visits"], 50);

    let listed = |top: &str| {
        let report = report(&["--top", top]);
        let turns = report["turns"].as_array().unwrap().clone();
        turns
            .iter()
            .filter(|turn| turn["rank"].as_u64() <= top.parse().ok())
            .count()
    };
    assert_eq!((listed("1"), listed("7")), (1, 7));
    let mode = |more: &[&str]| report(more)["mode"].clone();
    assert_eq!(mode(&["--mode", "gumbel"]), "gumbel");
    assert_eq!(mode(&["--set", "match.search.mode=gumbel"]), "gumbel");
    assert_eq!(
        mode(&["--set", "match.search.mode=gumbel", "--mode", "puct"]),
        "puct"
    );
    assert_eq!(report(&["--network", "uniform"])["own_value"], 0.5);
    assert_ne!(report(&[])["own_value"], 0.5);
}

#[test]
fn a_full_memory_ends_no_limited_search_and_one_without_limits() {
    let position = ["--position", QUIET, "--memory", "1", "--mode", "gumbel"];
    let report = |more: &[&str]| json(analyze(&position).args(more));
    assert_eq!(report(&["--visits", "20000"])["visits"], 20_000);
    let report = report(&["--until-stopped"]);
    assert_eq!(report["is_decided"], true);
    assert!(report["evaluations"].as_u64().unwrap() > 1_000, "{report}");
}

#[test]
fn the_same_seed_finds_the_same() {
    for mode in ["puct", "gumbel"] {
        let find = || timeless(json(&mut analyze(&["--position", QUIET, "--mode", mode])));
        assert_eq!(find(), find());
    }
}

/// A position and a record that starts there: after it, Silver's step back would make its position a third time.
fn shuffled() -> (String, String) {
    let start = "g [r  c                               E                           R]".to_owned();
    let turns = [
        "2g Ed4n", "2s cd8e", "3g Ed5s", "3s ce8w", "4g Ed4n", "4s cd8e", "5g Ed5s",
    ];
    let record = format!("{start}\n{}\n", turns.join("\n"));
    (start, record)
}

#[test]
fn a_record_and_its_position_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (_, record) = shuffled();
    let path = write(folder.path(), "game.txt", &record);
    for (turn, position) in [
        (
            "2s",
            "s [r  c                       E                                   R]",
        ),
        (
            "3g",
            "g [r   c                      E                                   R]",
        ),
    ] {
        for mode in ["puct", "gumbel"] {
            let more = ["--evaluations", "400", "--mode", mode];
            let of_position = json(analyze(&["--position", position]).args(more));
            let of_record = json(of_record(&path, &["--turn", turn]).args(more));
            assert_eq!(of_record["position"], position);
            assert_eq!(timeless(of_record), timeless(of_position), "{turn}");
        }
    }
}

#[test]
fn the_game_before_forbids_repetitions() {
    let folder = tempfile::tempdir().unwrap();
    let (start, record) = shuffled();
    let path = write(folder.path(), "game.txt", &record);
    let turns = |command: &mut Command, mode: &str| -> Vec<String> {
        let more = ["--top", "100000", "--evaluations", "4000", "--mode", mode];
        let candidates = ["--set", "match.search.gumbel.candidates=300"];
        let report = json(command.args(more).args(candidates));
        let turns = report["turns"].as_array().unwrap();
        let text = |turn: &Value| turn["turn"].as_str().unwrap().to_owned();
        turns.iter().map(text).collect()
    };
    let game: Game = record.parse().unwrap();
    let position = game.position().to_string();
    assert_ne!(position, start);
    for mode in ["puct", "gumbel"] {
        let judge = ["--network", "uniform"];
        let of_position = [&["--position", &position][..], &judge].concat();
        let free = turns(&mut analyze(&of_position), mode);
        let bound = turns(&mut of_record(&path, &judge), mode);
        let back = "ce8w".to_owned();
        assert!(free.contains(&back), "{mode}: {free:?}");
        assert!(!bound.contains(&back), "{mode}");
        assert!(bound.contains(&"ce8s".to_owned()), "{mode}: {bound:?}");
    }
}

#[test]
fn turns_are_named_as_in_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let (start, record) = shuffled();
    let path = write(folder.path(), "game.txt", &record);
    let few = ["--evaluations", "8"];
    let position = |more: &[&str]| json(of_record(&path, &few).args(more))["position"].clone();
    assert_eq!(position(&["--turn", "2g"]), start);
    assert_eq!(position(&["--turn", "4g"]), start);
    let game: Game = record.parse().unwrap();
    assert_eq!(TurnLabel::due(&game).to_string(), "5s");
    assert_eq!(position(&["--turn", "5s"]), game.position().to_string());
    assert_eq!(position(&[]), game.position().to_string());
    for (turn, part) in [
        (
            "6g",
            "game.txt: there is no turn 6g: turn 2g is the first, and at the end 5s is due",
        ),
        ("1g", "there is no turn 1g"),
    ] {
        let (code, _, said) = outcome(&mut of_record(&path, &["--turn", turn]));
        assert_eq!(code, Some(1));
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_setup_is_analyzed_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "game.txt", "");
    for mode in ["puct", "gumbel"] {
        let report = json(&mut of_record(&path, &["--mode", mode]));
        let turn = report["line"][0]["turn"].as_str().unwrap();
        assert_eq!(turn.split(' ').count(), 16, "{turn}");
    }
}

#[test]
fn a_game_of_a_shard_is_the_same_as_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let game = |counter| {
        let id = GameId {
            generator: 0,
            counter,
        };
        random_game(id, 11, 12)
    };
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
        sequence: 0,
    };
    let mut writer = ShardWriter::create(folder.path(), name, &header).unwrap();
    (0..3).for_each(|counter| writer.push(&game(counter)).unwrap());
    let shard = writer.finish().unwrap();
    let record = format_record(&game(1).to_game().unwrap());
    let record = write(folder.path(), "game.txt", &record);
    let more = ["--turn", "4s", "--evaluations", "100"];
    let expected = timeless(json(&mut of_record(&record, &more)));
    let id = game(1).id.to_string();
    let shard = shard.to_str().unwrap();
    for choice in ["1", &id] {
        let mut of_shard = analyze(&["--shard", shard, "--game", choice]);
        assert_eq!(timeless(json(of_shard.args(more))), expected);
    }
    let (code, _, said) = outcome(&mut analyze(&["--shard", shard, "--game", "3"]));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("there is no game 3: the shards hold 3"),
        "{said}"
    );
}

fn small() -> Architecture {
    Architecture {
        blocks: 1,
        channels: 8,
    }
}

fn save(network: &Network, folder: &Path) -> PathBuf {
    let path = folder.join("00000.safetensors");
    network.save(&path, &Default::default()).unwrap();
    path
}

#[test]
fn the_built_in_network_is_the_default() {
    let more = ["--position", QUIET, "--evaluations", "50"];
    let report = |judge: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
        command.arg("analyze").args(more).args(judge);
        timeless(json(&mut command))
    };
    let built_in = report(&[]);
    assert_eq!(built_in, report(&["--network", "tusker"]));
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../engine/network/built_in/tusker.safetensors"
    );
    assert_eq!(built_in, report(&["--network", file]));
    assert_ne!(built_in, report(&["--network", "material"]));
}

#[test]
fn a_network_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    let network = Network::new(small(), 3).unwrap();
    let path = save(&network, folder.path());
    for mode in ["puct", "gumbel"] {
        let more = ["--position", QUIET, "--evaluations", "100", "--mode", mode];
        let judge = ["--network", path.to_str().unwrap()];
        let report = json(&mut analyze(&[&more[..], &judge].concat()));
        assert_eq!(report["evaluations"], 100);
        assert_eq!(report["is_decided"], true);
    }
}

/// Each number of threads has its own search, which is the same every time; with the leaves in flight given it is the same for all.
#[test]
fn threads_divide_the_leaves_of_one_search() {
    let folder = tempfile::tempdir().unwrap();
    let network = Network::with_random_heads(small(), 4).unwrap();
    let path = save(&network, folder.path());
    for mode in ["puct", "gumbel"] {
        let report = |threads: &str, more: &[&str]| {
            let common = ["--position", QUIET, "--evaluations", "2000", "--mode", mode];
            let judge = ["--network", path.to_str().unwrap()];
            let mut command = analyze(&[&common[..], &judge, more].concat());
            timeless(json(command.args(["--threads", threads])))
        };
        let three = report("3", &[]);
        let evaluations = three["evaluations"].as_u64().unwrap();
        assert!(
            (1_900..=2_000).contains(&evaluations),
            "{mode}: {evaluations}"
        );
        assert_eq!(three, report("3", &[]), "{mode}");
        assert_ne!(three, report("1", &[]), "{mode}");
        let five = ["--set", "match.search.parallel_leaves=5"];
        assert_eq!(report("1", &five), report("3", &five), "{mode}");
    }
    // One thread evaluates all leaves here.
    let report = |threads| {
        let more = ["--position", QUIET, "--threads", threads];
        timeless(json(&mut analyze(&more)))
    };
    assert_eq!(report("1"), report("4"));
}

/// Linux reports the signals that a process handles: a bit each, SIGINT the second.
#[cfg(target_os = "linux")]
fn wait_until_interrupts_are_handled(child: &std::process::Child) {
    let begun = Instant::now();
    let handles = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let signals = u64::from_str_radix(line.unwrap_or("0").trim(), 16).unwrap();
        signals & 2 != 0
    };
    while !handles() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "not within a minute"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_ends_the_search_with_its_report() {
    let limits: [(&[&str], i32); 2] = [(&["--until-stopped"], 0), (&["--time", "1000"], 75)];
    for (limits, code) in limits {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_selfplay"))
            .args(["analyze", "--position", QUIET, "--json"])
            .args(["--network", "material", "--memory", "16384"])
            .args(limits)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_interrupts_are_handled(&child);
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "it searches on");
        let interrupt = ["-INT", &child.id().to_string()];
        let sent = std::process::Command::new("kill").args(interrupt).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["is_decided"], true);
        assert!(report["evaluations"].as_u64().unwrap() > 0);
    }
}

#[test]
fn faulty_arguments_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = write(folder.path(), name, text);
        path.to_str().unwrap().to_owned()
    };
    let broken = file("broken.txt", "1g Ra1\n");
    let over = file("over.txt", &format!("{GOAL}\n2g Ra7n\n"));
    let over_before = "g [R         r                                                   E ]";
    let immobile = "g [               r        e       Rd                              ]";
    let position = ["--position", QUIET];
    let with = |more: &[&'static str]| [&position[..], more].concat();
    for (more, code, parts) in [
        (vec![], 2, vec!["--position", "--record", "--shard"]),
        (vec!["--position", "x [ ]"], 2, vec!["`x` is not a side"]),
        (
            vec!["--position", over_before],
            1,
            vec!["--position", "the game is over"],
        ),
        (
            vec!["--position", immobile],
            1,
            vec!["the game is over", "immobilization"],
        ),
        (
            vec!["--record", &over],
            1,
            vec!["over.txt, turn 2s: ", "the game is over"],
        ),
        (vec!["--record", &broken], 1, vec!["broken.txt: line 1"]),
        (vec!["--record", "missing.txt"], 1, vec!["missing.txt"]),
        (
            vec!["--record", &over, "--turn", "12"],
            2,
            vec!["--turn", "like `12g`"],
        ),
        (vec!["--record", &over, "--game", "1"], 2, vec!["--game"]),
        (
            vec!["--shard", "missing", "--game", "1"],
            1,
            vec!["missing"],
        ),
        (vec!["--shard", "missing"], 2, vec!["--game"]),
        (
            with(&["--record", "game.txt"]),
            2,
            vec!["cannot be used with"],
        ),
        (
            with(&["--turn", "2g"]),
            2,
            vec!["--turn", "cannot be used with"],
        ),
        (
            with(&["--until-stopped", "--time", "1"]),
            2,
            vec!["--until-stopped", "--time"],
        ),
        (with(&["--evaluations", "0"]), 2, vec!["--evaluations"]),
        (with(&["--time", "0"]), 2, vec!["--time", "from 0.001"]),
        (with(&["--memory", "0"]), 2, vec!["--memory"]),
        (with(&["--mode", "best"]), 2, vec!["--mode", "gumbel"]),
        (
            with(&["--set", "match.search.mode=best"]),
            1,
            vec!["match.search.mode=best"],
        ),
        (
            with(&["--set", "selfplay.evaluations=9"]),
            1,
            vec!["this key is for self-play"],
        ),
        (with(&["--network", "random"]), 1, vec!["--network random"]),
        (
            with(&["--network", "missing.safetensors"]),
            1,
            vec!["missing.safetensors"],
        ),
    ] {
        let (actual, text, said) = outcome(&mut analyze(&more));
        assert_eq!(
            (actual, text.as_str()),
            (Some(code), ""),
            "{more:?}: {said}"
        );
        for part in parts {
            assert!(said.contains(part), "{more:?}: {said}");
        }
    }
}

/// As on a GPU: the service evaluates like the evaluator in the searching thread.
#[test]
fn the_evaluation_service_analyzes_alike() {
    let analyzed = |device: &str| {
        let arguments = [
            "--network",
            "tusker",
            "--evaluations",
            "40",
            "--position",
            QUIET,
        ];
        // The number of leaves in flight changes the search.
        let fixed = [
            "--set",
            "match.search.parallel_leaves=4",
            "--device",
            device,
        ];
        json(analyze(&arguments).args(fixed))
    };
    let (one, other) = (analyzed("cpu"), analyzed("cpu:service"));
    assert_eq!(one["turns"][0]["turn"], other["turns"][0]["turn"]);
    let value = |report: &Value| report["value"].as_f64().unwrap();
    assert!((value(&one) - value(&other)).abs() < 1e-3);
}
