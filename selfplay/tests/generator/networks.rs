//! Generators that follow a run's networks.

use super::audit::Audit;
use super::process::{GeneratorCommand, Running, names, wait_until};
use super::stops::{get, metrics_address};
use engine::record::{EvaluatorId, GameRecord, ShardName, ShardReader, TurnRecord, list_shards};
use engine::run::RunDirectory;
use network::{Architecture, Network};
use std::fs;
use std::path::Path;

/// A generator of a run that has no network yet, and plays until it is stopped.
fn command(run: &Path, change: &str) -> GeneratorCommand {
    let change = format!("selfplay.network_change={change}");
    let keys = [
        "network.precision=fp32",
        "selfplay.evaluations=24",
        "selfplay.games_per_shard=10",
        "selfplay.loss_proof_limit=0",
        &change,
    ];
    let arguments = ["--threads", "1", "--seed", "61"];
    GeneratorCommand::following(run).set(&keys).with(&arguments)
}

/// Puts a small network into the run, all at once.
fn publish(run: &Path, generation: u32) {
    let sizes = Architecture {
        blocks: 1,
        channels: 8,
    };
    let path = RunDirectory::new(run).network(generation);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let network = Network::new(sizes, u64::from(generation)).unwrap();
    network.save(&path, &Default::default()).unwrap();
}

/// The evaluators that the shards' headers name, one shard after the other.
fn named(command: &GeneratorCommand) -> Vec<(ShardName, EvaluatorId)> {
    let shards = list_shards(&command.paths().shards).unwrap_or_default();
    let header = |(name, path)| {
        let reader = ShardReader::open(path).unwrap();
        (name, reader.header().evaluator.clone())
    };
    shards.into_iter().map(header).collect()
}

/// Whether one of the last shards names an evaluator like this.
fn has_shard_by(command: &GeneratorCommand, name: &str) -> bool {
    let shards = list_shards(&command.paths().shards).unwrap_or_default();
    let mut last = shards.values().rev().take(3);
    last.any(|path| {
        let reader = ShardReader::open(path).unwrap();
        reader.header().evaluator.name.contains(name)
    })
}

fn wait_for_shard_by(running: &mut Running, command: &GeneratorCommand, name: &str) {
    running.wait_until(name, |_| has_shard_by(command, name));
}

/// The evaluators of a game's turns, one after the other.
fn evaluators_of(record: &GameRecord) -> Vec<&str> {
    let paths = record
        .turns
        .iter()
        .filter_map(|turn: &TurnRecord| turn.origin.evaluator());
    paths
        .map(|place| record.evaluators[usize::from(place)].name.as_str())
        .collect()
}

/// Plays without a network until there are shards, then with one until there are shards by it.
fn play_through_a_change(run: &Path, change: &str) -> (Audit, GeneratorCommand) {
    let command = command(run, change);
    let mut running = command.start();
    wait_for_shard_by(&mut running, &command, "uniform");
    publish(run, 0);
    wait_for_shard_by(&mut running, &command, "00000");
    running.wait_until("its games", |_| {
        let audit = Audit::of(command.paths());
        audit
            .games
            .values()
            .any(|game| evaluators_of(game)[0] != "uniform")
    });
    running.stop();
    let audit = Audit::of(command.paths());
    audit.assert_sound();
    (audit, command)
}

/// Asserts that shards by the network come after those without, and that they hold games that it evaluated.
fn assert_shards_change_with_the_network(audit: &Audit, command: &GeneratorCommand) {
    let named = named(command);
    let first = named
        .iter()
        .position(|(_, evaluator)| evaluator.name != "uniform");
    let (before, after) = named.split_at(first.unwrap());
    assert!(!before.is_empty());
    assert!(after.iter().all(|(_, evaluator)| *evaluator == after[0].1));
    assert_ne!(after[0].1.identity, after[0].1.name, "the network's digest");
    for (name, _) in before {
        let path = command.paths().shards.join(name.to_string());
        for record in ShardReader::open(&path).unwrap() {
            let record = record.unwrap();
            assert!(
                evaluators_of(&record)
                    .iter()
                    .all(|&evaluator| evaluator == "uniform"),
                "{name}"
            );
        }
    }
    assert!(audit.games.len() > 10);
}

#[test]
fn a_new_network_takes_over_between_turns() {
    let folder = tempfile::tempdir().unwrap();
    let (audit, command) = play_through_a_change(folder.path(), "turn");
    assert_shards_change_with_the_network(&audit, &command);
    let mut mixed = 0;
    for record in audit.games.values() {
        let evaluators = evaluators_of(record);
        let changes = evaluators
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count();
        assert!(changes <= 1, "{evaluators:?}");
        mixed += changes;
        assert_eq!(record.evaluators.len(), 1 + changes);
    }
    assert!(mixed > 0, "no game was in play");
}

#[test]
fn a_new_network_takes_over_between_games() {
    let folder = tempfile::tempdir().unwrap();
    let (audit, command) = play_through_a_change(folder.path(), "game");
    assert_shards_change_with_the_network(&audit, &command);
    let mut by = [0, 0];
    for record in audit.games.values() {
        assert_eq!(record.evaluators.len(), 1);
        by[usize::from(record.evaluators[0].name != "uniform")] += 1;
    }
    assert!(by[0] > 0 && by[1] > 0, "{by:?}");
}

/// As on a GPU: the service keeps every network that has rows in flight, however soon the next one comes.
#[test]
fn networks_change_in_the_evaluation_service() {
    for change in ["turn", "game"] {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        publish(run, 0);
        let service = ["--device", "cpu:service"];
        let command = command(run, change)
            .set(&["selfplay.groups=2"])
            .with(&service);
        let mut running = command.start();
        for generation in 0..4 {
            wait_for_shard_by(&mut running, &command, &format!("{generation:05}"));
            publish(run, generation + 1);
        }
        running.stop();
        let audit = Audit::of(command.paths());
        audit.assert_sound();
        let mut played = [false; 4];
        for record in audit.games.values() {
            let evaluators = evaluators_of(record);
            assert!(evaluators.is_sorted(), "{evaluators:?}");
            if change == "game" {
                assert_eq!(record.evaluators.len(), 1);
            }
            for evaluator in evaluators {
                let generation: usize = evaluator.parse().unwrap();
                if let Some(played) = played.get_mut(generation) {
                    *played = true;
                }
            }
        }
        assert_eq!(played, [true; 4], "{change}");
    }
}

#[test]
fn a_start_with_a_damaged_network_plays_with_the_previous_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    publish(&run, 0);
    fs::write(RunDirectory::new(&run).network(1), b"nothing of a network").unwrap();
    let ended = command(&run, "turn").with(&["--hours", "0.0005"]).finish();
    let stderr = ended.stderr;
    assert!(
        stderr.contains("network 0 plays") && stderr.contains("00001.safetensors"),
        "{stderr}"
    );
    fs::write(RunDirectory::new(&run).network(0), b"nothing either").unwrap();
    let failed = command(&run, "turn").start().wait();
    let stderr = failed.stderr;
    assert!(
        !failed.status.success() && stderr.contains("00001.safetensors: "),
        "{stderr}"
    );
}

#[test]
fn a_fixed_network_stays_and_a_damaged_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (stays, follows) = (folder.path().join("stays"), folder.path().join("follows"));
    publish(&follows, 0);
    let (staying, following) = (command(&stays, "never"), command(&follows, "turn"));
    let mut running = [staying.start(), following.start()];
    wait_for_shard_by(&mut running[0], &staying, "uniform");
    wait_for_shard_by(&mut running[1], &following, "00000");
    publish(&stays, 0);
    let broken = RunDirectory::new(&follows).network(1);
    fs::write(&broken, b"nothing of a network").unwrap();
    running[1].wait_until("it is named", |running| running.stderr().contains("00001"));
    let before = names(&following.paths().shards).len();
    let more = |running: &mut Running, command: &GeneratorCommand, least: usize| {
        running.wait_until("more shards", |_| {
            names(&command.paths().shards).len() >= least
        });
    };
    more(&mut running[1], &following, before + 5);
    // A later one ends the trouble.
    publish(&follows, 2);
    wait_for_shard_by(&mut running[1], &following, "00002");
    let [stayed, followed] = running.map(Running::stop);
    assert!(
        named(&staying)
            .iter()
            .all(|(_, evaluator)| evaluator.name == "uniform")
    );
    assert!(!stayed.stderr.contains("00000"), "{}", stayed.stderr);
    let complaints = followed.stderr.matches("can't be used").count();
    assert_eq!(complaints, 1, "{}", followed.stderr);
    assert!(
        followed.stderr.contains("00000 plays on"),
        "{}",
        followed.stderr
    );
    for command in [&staying, &following] {
        Audit::of(command.paths()).assert_sound();
    }
}

#[test]
fn the_devices_of_a_service_are_in_every_output() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    publish(&run, 0);
    let log = folder.path().join("log.jsonl");
    let path = log.display().to_string();
    let command = command(&run, "turn").with(&[
        "--device",
        "cpu:service",
        "--metrics",
        "127.0.0.1:0",
        "--json-log",
        &path,
    ]);
    let mut running = command.start();
    let address = metrics_address(&mut running);
    wait_until("batches are counted", || {
        let metrics = get(&address);
        assert!(metrics.contains("tusker_rows_waiting "), "{metrics}");
        metrics.contains("tusker_device_batch_fill_ratio{device=\"cpu:service\"}")
    });
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let status = json(&fs::read_to_string(command.paths().status(0)).unwrap());
    assert_eq!(status["devices"][0]["device"], "cpu:service");
    running.stop();
    let text = fs::read_to_string(&log).unwrap();
    let last = json(text.lines().last().unwrap());
    let device = &last["devices"][0];
    assert_eq!(device["device"], "cpu:service");
    for share in ["busy", "fill"] {
        let share = device[share].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{device}");
    }
    assert!(device["mean_batch"].as_f64().unwrap() >= 1.0, "{device}");
    assert!(last["rows_waiting"].is_u64());
}
