//! `train loop` with the real `selfplay`, as a user runs it.

mod cases;
mod damage;
mod external;
mod faults;
mod kills;
mod programs;
mod side_by_side;
#[path = "../support/mod.rs"]
mod support;

use engine::record::{GameRecord, ShardReader, list_shards, replay};
use engine::run::RunDirectory;
use programs::{StandIn, build_selfplay};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{SMALL, init, outcome, train, write_shard};

const GENERATIONS: u32 = 2;
/// Those that `uniform` plays for the first network, and those of the second.
const GAMES: usize = 30 + 24;

/// Two generations of a few short games.
const SHORT: [&str; 32] = [
    "--set",
    "selfplay.evaluations=12",
    "--set",
    "selfplay.targets.min_visits=1",
    "--set",
    "selfplay.targets.truncated_weight=1",
    "--set",
    "selfplay.openings.sparse_share=0",
    "--set",
    "selfplay.openings.policy_share=0",
    "--set",
    "selfplay.handicap.share=0",
    "--set",
    "selfplay.max_turns=16",
    "--set",
    "match.max_turns=16",
    "--set",
    "selfplay.games_per_shard=4",
    "--set",
    "loop.generations=2",
    "--set",
    "loop.first_games=30",
    "--set",
    "loop.games_per_generation=24",
    "--set",
    "loop.match_games=2",
    "--set",
    "loop.final_match_games=4",
    "--set",
    "loop.match_evaluations=2",
    "--set",
    "loop.anchors=[\"random\", \"material evaluations=4\", \"first\"]",
];

/// The loop's arguments for a short run, and more settings.
fn arguments(run: &Path, more: &[&str]) -> Vec<String> {
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
        .chain(more.iter().flat_map(|set| ["--set".into(), (*set).into()]))
        .collect()
}

fn records(run: &Path) -> Vec<GameRecord> {
    let shards = list_shards(&RunDirectory::new(run).shards()).unwrap();
    shards
        .values()
        .flat_map(|path| ShardReader::open(path).unwrap().map(Result::unwrap))
        .collect()
}

/// Everything that a whole run has, and a table and a log that say so.
fn check_whole(run: &Path, said: &str) {
    check_networks_and_games(run);
    check_matches(run, 0, 2, &["random", "material-4"]);
    check_matches(run, 1, 2, &["random", "material-4", "first"]);
    check_matches(run, 2, 4, &["random", "material-4", "first", "00001"]);
    check_ratings(run);
    check_log(run);
    for part in [
        "previous",
        "% of 4 ",
        "material:4 has 0",
        "material:4",
        "ratings.svg",
        "networks",
        "configuration",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

/// Every network is there, and every game once. Returns the number of games.
fn check_networks_and_games(run: &Path) -> usize {
    let networks = RunDirectory::new(run).list_networks().unwrap();
    let networks: Vec<u32> = networks.into_iter().map(|(number, _)| number).collect();
    assert_eq!(networks, (0..=GENERATIONS).collect::<Vec<_>>());
    let records = records(run);
    let ids: BTreeSet<_> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids.len(), records.len(), "no game is there twice");
    records
        .iter()
        .for_each(|record| assert!(replay(record).is_ok()));
    records.len()
}

/// A network has a result of so many games against each opponent.
fn check_matches(run: &Path, generation: u32, games: u64, opponents: &[&str]) {
    for opponent in opponents {
        let result = format!("{generation:05}-against-{opponent}.json");
        let result = fs::read(RunDirectory::new(run).pit().join(result)).unwrap();
        let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
        assert_eq!(result["games"], games);
        assert_eq!(result["a"]["evaluations"], 2);
        if *opponent == "material-4" {
            assert_eq!(result["b"]["evaluations"], 4);
        }
    }
}

/// Every network has a rating.
fn check_ratings(run: &Path) {
    let ratings = std::fs::read(RunDirectory::new(run).ratings()).unwrap();
    let ratings: serde_json::Value = serde_json::from_slice(&ratings).unwrap();
    let rated: Vec<&str> = ratings["ratings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rating| rating["player"].as_str().unwrap())
        .collect();
    assert_eq!(rated, ["random", "material:4", "00000", "00001", "00002"]);
    let results = ratings["results"].as_array().unwrap();
    assert_eq!(results.len(), 2 + 3 + 4);
    for result in results {
        let pairs = result["pairs"].as_array().unwrap().iter();
        let pairs: u64 = pairs.map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(2 * pairs, result["games"].as_u64().unwrap());
    }
    let networks = &ratings["ratings"].as_array().unwrap()[2..];
    let generated: Vec<u64> = networks
        .iter()
        .map(|network| network["generated_games"].as_u64().unwrap())
        .collect();
    assert!(generated[0] == 0 && generated[1] >= 30, "{generated:?}");
    assert!(generated[2] >= 54, "{generated:?}");
    let evaluations = |place: usize| networks[place]["generated_evaluations"].as_u64().unwrap();
    // `uniform` plays the first games.
    assert_eq!((evaluations(0), evaluations(1)), (0, 0));
    assert!(evaluations(2) > 54, "{networks:?}");
    let hours = networks.iter().map(|it| it["hours"].as_f64().unwrap());
    assert!(hours.is_sorted_by(|a, b| a <= b));
    let plot = std::fs::read_to_string(run.join("logs/ratings.svg")).unwrap();
    assert!(plot.contains("material:4 has 0"), "{plot}");
}

/// Every network has its own line in the log.
fn check_log(run: &Path) {
    let log = std::fs::read_to_string(run.join("logs/train.jsonl")).unwrap();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let logged: BTreeSet<u64> = lines
        .filter(|line| line["kind"] == "rating" && line["rating_low"].is_number())
        .map(|line| line["generation"].as_u64().unwrap())
        .collect();
    assert_eq!(logged, [0, 1, 2].into());
}

/// The log has the phases of each generation in their order, and the speed of its self-play.
fn check_phases(run: &Path) {
    let log = fs::read_to_string(run.join("logs/train.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_kind = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    let phases: Vec<(&str, u64)> = of_kind("phase")
        .filter(|line| line["ended"].is_object())
        .map(|line| &line["ended"])
        .inspect(|ended| assert!(ended["seconds"].as_f64().unwrap() > 0.0))
        .map(|ended| {
            let phase = ended["phase"].as_str().unwrap();
            (phase, ended["generation"].as_u64().unwrap())
        })
        .collect();
    let of_generation =
        |generation| ["self_play", "training", "matches"].map(|phase| (phase, generation));
    let expected: Vec<_> = [("matches", 0)]
        .into_iter()
        .chain((1..=2).flat_map(of_generation))
        .collect();
    assert_eq!(phases, expected);
    assert!(of_kind("phase").next_back().unwrap()["phase"].is_null());
    let played: Vec<_> = of_kind("self_play").collect();
    assert_eq!(played.len(), 2);
    assert_eq!(
        (&played[0]["games"], &played[1]["games"]),
        (&30.into(), &24.into())
    );
    for line in played {
        assert!(
            line["evaluations_per_second"].as_f64().unwrap() > 0.0,
            "{line}"
        );
        let shares = ["search", "records", "encode", "wait", "device"];
        let together: f64 = shares.iter().map(|key| line[key].as_f64().unwrap()).sum();
        assert!((together - 1.0).abs() < 1e-6, "{line}");
    }
}

/// Whatever this machine lacks: no GPU has this number.
#[test]
fn a_generator_s_device_that_can_t_be_used_shows_before_anything_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (code, _, said) = outcome(
        train()
            .args(arguments(&run, &[]))
            .args(["--generator-device", "cuda:999"]),
    );
    assert_eq!(code, 1, "{said}");
    assert!(
        said.starts_with("error: --generator-device: device cuda:999: "),
        "{said}"
    );
    assert!(!run.exists());
}

#[test]
fn a_checkpoint_of_another_version_shows_before_anything_is_played() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let header = r#"{"__metadata__":{"tusker-checkpoint":"{\"format\":1,\"encoding\":1}"}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    let checkpoints = run.join("checkpoints");
    fs::create_dir_all(&checkpoints).unwrap();
    fs::write(checkpoints.join("00001-0000000010.safetensors"), file).unwrap();
    let (code, _, said) = outcome(train().args(arguments(&run, &[])));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("00001-0000000010.safetensors: format version 1"),
        "{said}"
    );
    assert!(!run.join("networks").exists() && !run.join("config.toml").exists());
}

#[test]
fn the_loop_goes_from_nothing_to_a_table_and_does_nothing_twice() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (code, said, progress) = outcome(train().args(arguments(&run, &[])));
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
    check_phases(&run);
    assert_eq!(records(&run).len(), GAMES);
    let (code, again, _) = outcome(train().args(arguments(&run, &[])));
    assert_eq!(
        (code, again),
        (0, said),
        "the same table, and no more games"
    );
    assert_eq!(records(&run).len(), GAMES);
}

/// As with a GPU for the generator and the matches, in both orders.
#[test]
fn the_loop_plays_through_the_evaluation_service() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    for order in ["in_turns", "side_by_side"] {
        let run = folder.path().join(order);
        let order = format!("loop.order={order}");
        let few = [order.as_str(), "selfplay.games_in_flight=8"];
        let service = ["--generator-device", "cpu:service"];
        let (code, said, progress) = outcome(train().args(arguments(&run, &few)).args(service));
        assert_eq!(code, 0, "{progress}");
        check_whole(&run, &said);
    }
}

/// What every measurement with a GPU begins with, on the CPU.
#[test]
fn the_check_of_a_gpu_machine_finds_the_programs_and_probes() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let programs = Path::new(env!("CARGO_BIN_EXE_train")).parent().unwrap();
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/gpu_check");
    let mut command = assert_cmd::Command::new(check);
    command.args(["--device", "cpu", "--quick", "--steps", "probe"]);
    command.arg("--binaries").arg(programs);
    let (code, said, progress) = outcome(command.arg("--out").arg(&report));
    assert_eq!(code, 0, "{said}{progress}");
    let text = std::fs::read_to_string(&report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let probe = &report["steps"][0];
    assert_eq!(probe["status"], "done", "{text}");
    assert_eq!(probe["programs"][0]["ending"], 0, "{text}");
}

#[test]
fn each_network_plays_a_game_to_be_shown() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = [
        "loop.generations=2",
        "loop.match_games=0",
        "loop.final_match_games=0",
        "loop.show_evaluations=auto",
    ];
    // The second time nothing is left to do.
    for _ in 0..2 {
        let (code, _, progress) = outcome(train().args(arguments(&run, &settings)));
        assert_eq!(code, 0, "{progress}");
        let expected = ["00001", "00002"].map(|name| (name.to_owned(), 1, Some(120)));
        assert_eq!(shown(&run), expected);
    }
}

/// The shards of games to be shown: the network, how many games, and the most evaluations of a turn. These are ten times as many as in
/// self-play, unless a turn is decided early.
fn shown(run: &Path) -> Vec<(String, usize, Option<u32>)> {
    let shards = list_shards(&RunDirectory::new(run).show()).unwrap();
    let shown = shards.values().map(|path| {
        let shard = ShardReader::open(path).unwrap();
        let name = shard.header().evaluator.name.clone();
        let games: Vec<GameRecord> = shard.map(Result::unwrap).collect();
        let turns = games.iter().flat_map(|game| &game.turns);
        let evaluations = turns.filter_map(|turn| Some(turn.origin.search()?.evaluations));
        (name, games.len(), evaluations.max())
    });
    shown.collect()
}

#[test]
fn a_game_to_be_shown_has_the_evaluations_of_the_present_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // It changes before the first games are played.
    let script = format!(
        "[ \"$1\" = generate ] && sed -i 's/^evaluations = 12$/evaluations = 8/' {}\nexec \"$REAL\" \"$@\"",
        run.join("config.toml").display()
    );
    let settings = [
        "loop.generations=1",
        "loop.match_games=0",
        "loop.final_match_games=0",
        "loop.show_evaluations=auto",
    ];
    let stand_in = StandIn::new(&script);
    let (code, _, progress) = outcome(stand_in.train().args(arguments(&run, &settings)));
    assert_eq!(code, 0, "{progress}");
    assert_eq!(shown(&run), [("00001".to_owned(), 1, Some(80))]);
}

#[test]
fn a_network_that_was_trained_elsewhere_plays_the_first_games() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, run) = (folder.path().join("elsewhere"), folder.path().join("run"));
    init(&elsewhere);
    let settings = [
        "loop.generations=1",
        "loop.match_games=0",
        "loop.final_match_games=2",
    ];
    let of_loop = arguments(&run, &settings);
    let mut begin = train();
    begin.arg("init").args(&of_loop[3..]).arg("--network");
    begin.arg(elsewhere.join("networks/00000.safetensors"));
    assert_eq!(outcome(&mut begin).0, 0);
    let (code, said, progress) = outcome(train().args(&of_loop));
    assert_eq!(code, 0, "{progress}");
    assert!(!progress.contains("without a network"), "{progress}");
    assert!(said.contains("material:4 has 0"), "{said}");
    let records = records(&run);
    assert_eq!(records.len(), 24, "as many as for any other");
    let players = records.iter().flat_map(|record| &record.evaluators);
    assert!(players.clone().count() > 0);
    players.for_each(|player| assert_ne!(player.name, "uniform"));
}

#[test]
fn games_are_played_for_a_training_that_was_begun_and_ran_out_of_them() {
    for order in ["in_turns", "side_by_side"] {
        run_out_of_games(order);
    }
}

fn run_out_of_games(order: &str) {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let order = format!("loop.order={order}");
    let settings = [
        &order,
        "train.reuse_factor=1",
        "loop.generations=1",
        "loop.match_games=0",
        "loop.final_match_games=2",
    ];
    let of_loop = arguments(&run, &settings);
    assert_eq!(outcome(train().arg("init").args(&of_loop[3..])).0, 0);
    write_shard(&run, 0, 12);
    let mut more_than_there_is = train();
    more_than_there_is.args([
        "run",
        "--threads",
        "2",
        "--no-wait",
        "--steps",
        "12",
        "--run",
    ]);
    let (code, _, message) = outcome(more_than_there_is.arg(&run));
    assert!(
        code == 1 && message.contains("as often as they may be"),
        "{message}"
    );
    assert!(
        run.join("checkpoints").read_dir().unwrap().count() > 0,
        "{message}"
    );
    let (code, _, progress) = outcome(train().args(&of_loop));
    assert_eq!(code, 0, "{progress}");
    assert!(progress.contains("uniform plays 30 games"), "{progress}");
    assert!(run.join("networks/00001.safetensors").exists());
    assert_eq!(records(&run).len(), 12 + 30);
}

#[test]
fn more_games_are_played_if_the_first_do_not_fill_a_batch() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = [
        "loop.first_games=2",
        "train.batch_size=256",
        "loop.generations=1",
        "loop.match_games=0",
        "loop.final_match_games=2",
    ];
    let (code, _, progress) = outcome(train().args(arguments(&run, &settings)));
    assert_eq!(code, 0, "{progress}");
    for part in [
        "a batch needs train.batch_size = 256",
        "uniform plays 2 games",
    ] {
        assert!(progress.contains(part), "no `{part}` in {progress}");
    }
    assert!(run.join("networks/00001.safetensors").exists());
    let games = records(&run).len();
    assert!(games > 2 && games.is_multiple_of(2), "{games} games");
}

/// Starts a loop that says nothing.
fn start(run: &Path, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_train"))
        .args(arguments(run, more))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a file is there, or the program has ended.
fn wait_for(file: &Path, program: &mut Child) {
    let begun = Instant::now();
    while !file.exists() && program.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{}: not within two minutes",
            file.display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_loop_resumes_with_the_same_command() {
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
        let mut first = start(&run, &[]);
        wait_for(&run.join(reached), &mut first);
        first.kill().unwrap();
        first.wait().unwrap();
        let (code, said, progress) = outcome(train().args(arguments(&run, &[])));
        assert_eq!(code, 0, "killed at {reached}: {progress}");
        check_whole(&run, &said);
    }
}

#[test]
fn a_damaged_game_is_an_error_before_more_are_played() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    assert_eq!(outcome(train().args(arguments(&run, &[]))).0, 0);
    let shard = run.join("shards/000-000000.shard");
    let mut bytes = fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let config = RunDirectory::new(&run).config();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("generations = 2", "generations = 3")).unwrap();
    let (code, _, said) = outcome(train().args(["loop", "--run", run.to_str().unwrap()]));
    assert_eq!(code, 1, "{said}");
    for part in ["000-000000.shard: frame ", "selfplay inspect --repair"] {
        assert_eq!(said.matches(part).count(), 1, "`{part}` in {said}");
    }
    assert!(!said.contains(" plays "), "{said}");
}

#[test]
fn networks_that_fail_at_the_gate_are_put_aside_and_trained_on() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let directory = RunDirectory::new(&run);
    // No game is won in three turns: each game is half a point.
    let settings = |score| {
        [
            "match.max_turns=3",
            "loop.gate_games=2",
            "loop.match_games=2",
            "loop.final_match_games=4",
            score,
        ]
    };
    let numbers = |list: Vec<(u32, _)>| list.into_iter().map(|(it, _)| it).collect::<Vec<_>>();
    let go_on = |score| {
        let (code, said, progress) = outcome(train().args(arguments(&run, &settings(score))));
        assert_eq!(code, 0, "{progress}");
        (said, progress)
    };
    let (said, progress) = go_on("loop.gate_score=0.51");
    assert!(said.contains("rejected 2"), "{said}");
    assert!(
        progress.contains("network 1 is rejected: 50.0% of 2 games against network 0"),
        "{progress}"
    );
    assert_eq!(numbers(directory.list_networks().unwrap()), [0]);
    assert_eq!(numbers(directory.list_rejected().unwrap()), [1, 2]);
    assert_eq!(records(&run).len(), GAMES, "the first network plays on");
    let games_of = |name: &str| -> serde_json::Value {
        let text = std::fs::read(run.join("pit").join(name)).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["games"].clone()
    };
    assert_eq!(games_of("00002-against-first.json"), 2);
    // What is left in the end is measured as the last one.
    assert_eq!(games_of("00000-against-random.json"), 4);
    // One more, for which even is enough.
    let config = std::fs::read_to_string(directory.config()).unwrap();
    let config = config
        .replace("generations = 2", "generations = 3")
        .replace("gate_score = 0.51", "gate_score = 0.5");
    std::fs::write(directory.config(), config).unwrap();
    let (code, _, progress) = outcome(train().args(["loop", "--run", run.to_str().unwrap()]));
    assert_eq!(code, 0, "{progress}");
    assert_eq!(numbers(directory.list_networks().unwrap()), [0, 3]);
    assert!(directory.list_candidates().unwrap().is_empty());
    assert_eq!(
        games_of("00003-against-first.json"),
        4,
        "more than the gate's"
    );
}
