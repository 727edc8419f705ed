//! The loop without a generator of its own, and generators that others start.

use crate::programs::{build_selfplay, selfplay};
use crate::support::{outcome, train};
use crate::{GAMES, arguments, check_whole, records, wait_for};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const EXTERNAL: [&str; 2] = ["loop.order=external", "selfplay.games_in_flight=8"];

fn start_worker(run: &Path, name: &str) -> Child {
    let mut command = selfplay();
    command.args([
        "generate",
        "--threads",
        "1",
        "--seed",
        "3",
        "--worker",
        name,
        "--run",
    ]);
    command.arg(run).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn stop(mut worker: Child) {
    crate::programs::signal("USR1", worker.id());
    assert_eq!(worker.wait().unwrap().code(), Some(75));
}

#[test]
fn the_loop_learns_from_the_games_of_others() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let (run, log) = (folder.path().join("run"), folder.path().join("log"));
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_train"));
        command.args(arguments(&run, &EXTERNAL));
        command.stdout(Stdio::piped());
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command.stderr(log).spawn().unwrap()
    };
    let mut training = start();
    wait_for(&run.join("networks/00000.safetensors"), &mut training);
    let mut workers: BTreeMap<&str, Child> = ["a", "b"]
        .map(|name| (name, start_worker(&run, name)))
        .into();
    wait_for(&run.join("networks/00001.safetensors"), &mut training);
    // The loop and a worker go, and come back.
    training.kill().unwrap();
    training.wait().unwrap();
    stop(workers.remove("a").unwrap());
    workers.insert("a", start_worker(&run, "a"));
    let output = start().wait_with_output().unwrap();
    workers.into_values().for_each(stop);
    let progress = fs::read_to_string(&log).unwrap();
    assert!(output.status.success(), "{progress}");
    check_whole(&run, &String::from_utf8(output.stdout).unwrap());
    for line in ["generator 0 of worker ", "generator 1 of worker "] {
        assert!(progress.contains(line), "no `{line}` in {progress}");
    }
    let records = records(&run);
    assert!(records.len() >= GAMES);
    let generators: BTreeSet<u32> = records.iter().map(|record| record.id.generator).collect();
    assert_eq!(generators, [0, 1].into(), "each worker has kept its number");
    let played_by = |name: &str| {
        let has_played = |record: &&_| {
            let record: &engine::record::GameRecord = record;
            record
                .evaluators
                .iter()
                .any(|evaluator| evaluator.name == name)
        };
        records.iter().filter(has_played).count()
    };
    assert!(
        played_by("uniform") >= 30,
        "a random network plays no games"
    );
    assert_eq!(played_by("00000"), 0);
    assert!(played_by("00001") > 0, "generators follow the networks");
}

#[test]
fn a_device_of_a_generator_that_the_loop_has_not_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut arguments = arguments(&run, &EXTERNAL);
    arguments.extend(["--generator-device".to_owned(), "cpu".to_owned()]);
    let (code, _, message) = outcome(train().args(arguments));
    assert_eq!(code, 1, "{message}");
    assert!(
        message.contains("--generator-device: with loop.order = \"external\""),
        "{message}"
    );
    assert!(!run.exists(), "nothing is made");
}
