//! `train loop` with the real `selfplay`, as a user runs it.

mod support;

use engine::run::RunDirectory;
use engine::shard::{GameRecord, ShardReader, list_shards, replay};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{SMALL, outcome, train};

const GENERATIONS: u32 = 2;
/// Those that `uniform` plays for the first network, and those of the second.
const GAMES: usize = 30 + 24;

/// Two generations of a few short games.
const SHORT: [&str; 22] = [
    "--set",
    "search.evaluations=12",
    "--set",
    "selfplay.min_target_visits=1",
    "--set",
    "selfplay.max_turns=16",
    "--set",
    "pit.max_turns=16",
    "--set",
    "selfplay.games_per_shard=4",
    "--set",
    "loop.generations=2",
    "--set",
    "loop.first_games=30",
    "--set",
    "loop.games_per_generation=24",
    "--set",
    "loop.pit_games=2",
    "--set",
    "loop.final_pit_games=4",
    "--set",
    "loop.pit_evaluations=2",
];

/// Makes sure that `selfplay` lies beside `train`: cargo builds only this package's programs for this package's tests.
fn build_selfplay() {
    let train = Path::new(env!("CARGO_BIN_EXE_train"));
    if train.with_file_name("selfplay").exists() {
        return;
    }
    let profile = train
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    let profile = if profile == "debug" { "dev" } else { profile };
    let build = Command::new(env!("CARGO"))
        .args(["build", "--package", "selfplay", "--profile", profile])
        .status();
    assert!(build.unwrap().success());
}

fn arguments(run: &Path) -> Vec<String> {
    let fixed = [
        "loop",
        "--threads",
        "2",
        "--seed",
        "3",
        "--run",
        run.to_str().unwrap(),
    ];
    fixed
        .iter()
        .chain(&SMALL)
        .chain(&SHORT)
        .map(|&argument| argument.to_owned())
        .collect()
}

fn records(run: &Path) -> Vec<GameRecord> {
    let shards = list_shards(&RunDirectory::new(run).shards()).unwrap();
    shards
        .values()
        .flat_map(|path| ShardReader::open(path).unwrap().map(Result::unwrap))
        .collect()
}

/// Everything that a whole run has, and a table that says so.
fn check_whole(run: &Path, said: &str) {
    let directory = RunDirectory::new(run);
    let networks: Vec<u32> = directory
        .list_networks()
        .unwrap()
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(networks, (0..=GENERATIONS).collect::<Vec<_>>());
    let records = records(run);
    let ids: BTreeSet<_> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids.len(), records.len(), "no game is there twice");
    records
        .iter()
        .for_each(|record| assert!(replay(record).is_ok()));
    for (generation, games) in [(0, 2), (1, 2), (2, 4)] {
        for opponent in ["first", "random"] {
            if (generation, opponent) == (0, "first") {
                continue;
            }
            let path = directory
                .pit()
                .join(format!("{generation:05}-against-{opponent}.json"));
            let result: serde_json::Value =
                serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            assert_eq!(result["games"], games);
        }
    }
    for part in ["against random", "of 4, Elo", "networks", "configuration"] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn the_loop_goes_from_nothing_to_a_table_and_does_nothing_twice() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (code, said, progress) = outcome(train().args(arguments(&run)));
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
    assert_eq!(records(&run).len(), GAMES);
    let (code, again, _) = outcome(train().args(arguments(&run)));
    assert_eq!(
        (code, again),
        (0, said),
        "the same table, and no more games"
    );
    assert_eq!(records(&run).len(), GAMES);
}

#[test]
fn a_killed_loop_goes_on_with_the_same_command() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    // In self-play, after the first network, and in the last matches.
    for (case, reached) in [
        "shards/000-000000.shard",
        "networks/00001.safetensors",
        "pit/00002-against-first.json",
    ]
    .into_iter()
    .enumerate()
    {
        let run = folder.path().join(case.to_string());
        let mut first = Command::new(env!("CARGO_BIN_EXE_train"))
            .args(arguments(&run))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !run.join(reached).exists() && first.try_wait().unwrap().is_none() {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "{reached}: not within two minutes"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        first.kill().unwrap();
        first.wait().unwrap();
        let (code, said, progress) = outcome(train().args(arguments(&run)));
        assert_eq!(code, 0, "killed at {reached}: {progress}");
        check_whole(&run, &said);
    }
}
