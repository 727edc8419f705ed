//! `train init`, `train run` and `train info` as a user runs them.

mod init;
#[path = "../support/mod.rs"]
mod support;

use engine::config::Config;
use engine::files::ChecksumForm;
use engine::record::journal::Beginning;
use engine::record::{GameId, Start};
use engine::run::{Generator, GeneratorPaths, GeneratorPlan, RunDirectory};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use support::{SMALL, init, init_with, outcome, train, write_shard};

fn run_of(folder: &tempfile::TempDir) -> std::path::PathBuf {
    folder.path().join("run")
}

fn train_run(run: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = train();
    command
        .arg("run")
        .arg("--run")
        .arg(run)
        .args(["--threads", "2"])
        .args(more);
    command
}

fn fails(command: &mut assert_cmd::Command, parts: &[&str]) {
    let (code, _, message) = outcome(command);
    assert_eq!(code, 1, "{message}");
    assert!(
        message.contains("error: ") && !message.contains("panicked"),
        "{message}"
    );
    for part in parts {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
}

#[test]
fn a_network_is_trained_published_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    write_shard(&run, 0, 12);
    let (code, said, message) = outcome(&mut train_run(&run, &["--steps", "12"]));
    assert_eq!(code, 0, "{message}");
    // A loop that was killed has left its phase in the log.
    let log = std::fs::read_to_string(run.join("logs/train.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["kind"], &first["phase"], &first["generation"]),
        (&"phase".into(), &serde_json::Value::Null, &1.into())
    );
    let network = run.join("networks/00001.safetensors");
    assert_eq!(said.trim_end(), network.display().to_string());
    assert!(
        message.contains("12 steps") && message.contains("rows/s"),
        "{message}"
    );

    let text = info(&network, &[]);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for part in [
        "format version",
        "encoding version 3",
        "1 blocks, 8 channels",
        "5,383",
        "MFLOP",
        "identity",
        "parent",
        "generation 1",
        "step 12",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let checkpoint = run.join("checkpoints/00001-0000000012.safetensors");
    let text = info(&checkpoint, &[]);
    for part in [
        "format         version",
        "network 1",
        "step           12 (from 0 to 12)",
        "new games      12",
        "optimizer      adamw",
        "learning rate",
        "train.batch_size = 64 (default ",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = info(&run, &[]);
    for part in [
        "newest network 1: ",
        "running        none",
        "12 in 1 shards",
        "rows/s",
        "policy loss",
        "a game)",
        "logs/curves.svg",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("problem"), "{text}");

    let json =
        |path: &Path| serde_json::from_str::<serde_json::Value>(&info(path, &["--json"])).unwrap();
    let described = json(&network);
    assert_eq!(
        (&described["kind"], &described["playing_parameters"]),
        (&"network".into(), &5_383.into())
    );
    assert_eq!(described["origin"]["generation"], "1");
    let described = json(&checkpoint);
    assert_eq!(
        (&described["kind"], &described["state"]["step"]),
        (&"checkpoint".into(), &12.into())
    );
    let described = json(&run);
    assert_eq!(
        (&described["kind"], &described["games"]["games"]),
        (&"run".into(), &12.into())
    );
    assert_eq!(described["last_steps"]["trained_rows"], 12 * 64);
    assert_eq!(described["training"], serde_json::Value::Null);
    // One network and one look at the clock say nothing of the time that others take.
    let wanted = Config::load(&run.join("config.toml"))
        .unwrap()
        .training_loop;
    let left = &described["time_left"];
    assert_eq!(left["generations"], wanted.generations - 1);
    assert_eq!(left["seconds"], serde_json::Value::Null);
}

fn info(path: &Path, more: &[&str]) -> String {
    let (code, text, message) = outcome(train().arg("info").arg(path).args(more));
    assert_eq!(code, 0, "{message}");
    text
}

#[test]
fn info_says_where_a_run_stands_that_is_damaged_and_rated() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    let text = info(&run, &[]);
    for part in [
        "0 in 0 shards",
        "window         nothing yet",
        "time left      not known yet: ",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    write_shard(&run, 0, 12);
    assert_eq!(outcome(&mut train_run(&run, &["--steps", "12"])).0, 0);
    fs::remove_file(run.join("networks/00001.safetensors")).unwrap();
    fs::write(run.join("shards/000-000007.shard"), "no shard").unwrap();
    fs::write(run.join("checkpoints/00001-0000000099.safetensors"), "").unwrap();
    fs::write(run.join("networks/best.safetensors"), "").unwrap();
    let ratings = |text: &str| fs::write(run.join("ratings.json"), text).unwrap();
    ratings(
        r#"{"reference": "network 0", "results": [], "ratings": [
            {"player": "random", "generation": null, "rating": -500, "low": -600, "high": -400, "games": 9},
            {"player": "network 0", "generation": 0, "rating": 12.4, "low": -20, "high": 40, "games": 9}]}"#,
    );
    let text = info(&run, &[]);
    for part in [
        "Elo +12 (-20 to +40) for network 0 of 9 games, the best so far",
        "000-000007.shard",
        "00001-0000000099.safetensors is not a checkpoint: the file is empty",
        "best.safetensors is not named after a generation",
        "12 in 2 shards",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    fs::remove_file(run.join("checkpoints/00001-0000000099.safetensors")).unwrap();
    ratings("{\"ratings\": 7}");
    let text = info(&run, &[]);
    for part in [
        "training       network 1, step 12 (from 0 to 12)",
        "ratings.json holds no ratings",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    info_verifies_what_it_shows(&run);
    fails(
        train().arg("info").arg(run.join("config.toml")),
        &[
            "config.toml is neither a network nor a checkpoint",
            "begins with",
        ],
    );
    fails(
        train().arg("info").arg(folder.path()),
        &["is not a run", "config.toml"],
    );
}

/// One changed byte in each of a run's small files, its newest network and checkpoint: all are named.
fn info_verifies_what_it_shows(run: &Path) {
    fs::write(run.join("ratings.json"), "{").unwrap();
    fs::create_dir_all(run.join("pit")).unwrap();
    let result = r#"{"games": 4, "unfinished": 1, "score": 0.625}"#;
    let times = r#"{"seconds": 5.5, "networks": {}}"#;
    for (name, text) in [
        ("pit/00001-against-random.json", result),
        ("clock.json", times),
    ] {
        fs::write(run.join(name), ChecksumForm::Json.sign(text)).unwrap();
    }
    let names = [
        "networks/00000.safetensors",
        "checkpoints/00001-0000000012.safetensors",
        "pit/00001-against-random.json",
        "clock.json",
    ];
    let text = info(run, &[]);
    assert!(!names.iter().any(|name| problem(&text, name)), "{text}");
    for name in names {
        let mut bytes = fs::read(run.join(name)).unwrap();
        // A digit of the numbers.
        let place = if name.ends_with(".json") {
            bytes.iter().position(|byte| *byte == b'5').unwrap()
        } else {
            bytes.len() - 1
        };
        bytes[place] ^= 1;
        fs::write(run.join(name), bytes).unwrap();
    }
    let text = info(run, &[]);
    for name in names {
        assert!(problem(&text, name), "no problem with {name} in {text}");
    }
}

fn problem(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("problem: ") && line.contains(name))
}

#[test]
fn info_shows_the_state_of_running_generators() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    let paths = GeneratorPaths::from(&RunDirectory::new(&run));
    let plan = GeneratorPlan {
        seed: 0,
        games: None,
        config_digest: String::new(),
        evaluator: String::new(),
        worker: "812_3".into(),
    };
    let (generator, _) = Generator::start(&paths, &plan).unwrap();
    assert!(
        !info(&run, &[]).contains("problem"),
        "it has said nothing yet"
    );
    let status = r#"{"worker": "812_3", "host": "node-7", "device": "cuda", "state": "running", "waiting_reason": null, "games": 7, "games_in_flight": 64,
        "turns_per_second": 12.4, "evaluations_per_second": 4000.2, "network": "00003", "rows_waiting": 1204, "more": 0,
        "devices": [{"device": "cuda:0", "busy": 0.93, "mean_batch": 812.3, "fill": 0.97}]}"#;
    fs::write(paths.status(0), status).unwrap();
    let text = info(&run, &[]);
    let line = "generator 0    worker 812_3 on node-7, 12 turns/s, 4000 evaluations/s, cuda:0 93% busy, batches of 812 (97% full), 1,204 rows wait, network 00003\n";
    assert!(text.contains(line), "{text}");
    let json: serde_json::Value = serde_json::from_str(&info(&run, &["--json"])).unwrap();
    assert_eq!(json["generators"][0]["number"], 0);
    assert_eq!(json["generators"][0]["devices"][0]["busy"], 0.93);
    fs::write(paths.status(0), "{").unwrap();
    let text = info(&run, &[]);
    assert!(
        text.contains("problem: can't read ") && text.contains("status.json"),
        "{text}"
    );
    // What a generator has said is nothing once it has ended, until it has been silent for long.
    fs::write(paths.status(0), status).unwrap();
    let journal = generator.journal();
    let id = GameId {
        generator: 0,
        counter: 0,
    };
    let (seed, start) = (1, Start::Empty);
    journal.begin(Beginning { id, seed, start }).unwrap();
    drop(generator);
    let text = info(&run, &[]);
    assert!(
        text.contains("running        none") && !text.contains("generator 0"),
        "{text}"
    );
    for path in [paths.status(0), run.join("generators/000/plan.toml")] {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_mins(12))
            .unwrap();
    }
    let text = info(&run, &[]);
    let line = "lost           generator 0 of worker 812_3, silent for 12m";
    assert!(text.contains(line), "{text}");
    let json: serde_json::Value = serde_json::from_str(&info(&run, &["--json"])).unwrap();
    let lost = &json["generators"][0];
    assert_eq!(
        (&lost["state"], &lost["worker"]),
        (&"lost".into(), &"812_3".into())
    );
    assert!(lost["seconds_ago"].as_f64().unwrap() >= 720.0);
}

#[test]
fn what_training_needs_and_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    fails(
        &mut train_run(&run, &[]),
        &["is not a run", "config.toml", "train init"],
    );
    assert!(!run.exists(), "nothing is made where there is no run");
    init(&run);
    fails(
        &mut train_run(&run, &[]),
        &["shards holds no games", "selfplay generate"],
    );
    write_shard(&run, 0, 0);
    fails(&mut train_run(&run, &[]), &["shards holds no games"]);
    write_shard(&run, 1, 1);
    fails(
        &mut train_run(&run, &[]),
        &["rows to train on", "train.batch_size = 64"],
    );
    write_shard(&run, 2, 10);
    let shard = run.join("shards/000-000002.shard");
    let good = fs::read(&shard).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    fs::write(&shard, &bad).unwrap();
    fails(
        &mut train_run(&run, &[]),
        &["000-000002.shard: frame", "checksum"],
    );
    fs::write(&shard, &good[..middle]).unwrap();
    fails(&mut train_run(&run, &[]), &["000-000002.shard"]);
    fs::write(&shard, &good).unwrap();

    let network = run.join("networks/00000.safetensors");
    let whole = fs::read(&network).unwrap();
    fs::write(&network, &whole[..whole.len() - 8]).unwrap();
    fails(
        &mut train_run(&run, &[]),
        &["00000.safetensors: this is not a network, or it is damaged"],
    );
    fails(
        train().arg("info").arg(&network),
        &["00000.safetensors: this is not a network"],
    );
    fails(
        train().arg("info").arg(run.join("nothing")),
        &["can't read", "nothing"],
    );
    fs::write(&network, &whole).unwrap();

    fails(
        &mut train_run(&run, &["--device", "cuda:99"]),
        &["--device: device cuda:99: "],
    );
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("channels = 8", "channels = 16")).unwrap();
    fails(
        &mut train_run(&run, &[]),
        &["network.channels = 16", "00000.safetensors has 8"],
    );
    fs::write(&config, text).unwrap();
    assert!(!run.join("networks/00001.safetensors").exists());
    assert!(!run.join("checkpoints").exists());
    assert_eq!(outcome(&mut train_run(&run, &["--steps", "1"])).0, 0);
    fails(
        &mut train_run(&run, &["--no-wait", "--steps", "100000"]),
        &[
            "rows so far have been used as often",
            "or let `train run` wait",
        ],
    );
}

/// The newest checkpoint's step, once there is one of at least `step`.
fn wait_for_step(run: &Path, step: u64) {
    let begun = Instant::now();
    let newest = || {
        let names = fs::read_dir(run.join("checkpoints")).ok()?;
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter_map(|name| name.get(6..16)?.parse::<u64>().ok())
            .max()
    };
    while newest().is_none_or(|newest| newest < step) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no checkpoint of step {step}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(run: &Path, steps: &str) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_train"))
        .arg("run")
        .arg("--run")
        .arg(run)
        .args(["--threads", "2", "--steps", steps])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

const STEPS: &str = "40";

/// 40 steps in one go, and 20, a kill -9, and 20 more: the same bytes of network and checkpoint.
#[test]
fn a_killed_training_resumes_to_the_same_network() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["killed", "whole"].map(|name| {
        let run = folder.path().join(name);
        // Steps that take long enough for a kill among them.
        let larger = ["--set", "network.blocks=3", "--set", "network.channels=48"];
        init_with(&run, &larger);
        write_shard(&run, 0, 20);
        if name == "killed" {
            let mut child = start(&run, STEPS);
            wait_for_step(&run, 20);
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(
                !run.join("networks/00001.safetensors").exists(),
                "the kill came too late"
            );
        }
        let (code, _, message) = outcome(&mut train_run(&run, &["--steps", STEPS]));
        assert_eq!(code, 0, "{message}");
        assert_eq!(message.contains("resuming network 1"), name == "killed");
        let network = fs::read(run.join("networks/00001.safetensors")).unwrap();
        let checkpoint = format!("checkpoints/00001-{:010}.safetensors", 40);
        (network, fs::read(run.join(checkpoint)).unwrap())
    });
    assert!(files[0].0 == files[1].0, "the networks differ");
    assert!(files[0].1 == files[1].1, "the checkpoints differ");
}

#[test]
fn a_signal_stops_training_at_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    write_shard(&run, 0, 20);
    let child = start(&run, "1000000");
    wait_for_step(&run, 10);
    let signal = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(75));
    assert!(said.contains("the same command resumes from"), "{said}");
    let checkpoint = said.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(outcome(train().arg("info").arg(checkpoint)).0, 0);
}

#[test]
fn a_place_that_can_t_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    write_shard(&run, 0, 12);
    // A file where the folder of the checkpoints should be: even root can't write there.
    fs::write(run.join("checkpoints"), "").unwrap();
    fails(&mut train_run(&run, &["--steps", "3"]), &["checkpoints"]);
    assert!(!run.join("networks/00001.safetensors").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    let program = env!("CARGO_BIN_EXE_train");
    let script = format!("set -o pipefail; {program} info {} | true", run.display());
    let status = Command::new("bash")
        .args(["-c", &script])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(
        status.status.success() && status.stderr.is_empty(),
        "{status:?}"
    );
}
