mod rows;

use super::*;
use crate::commands::begin_or_resume;
use crate::data::samples::write_games;
use crate::trainer::workers_seen;
use engine::config::{OptimizerKind, ScheduleKind};
use network::Network;
use std::fs;
use std::path::Path;

/// A run with random games and a checkpoint every four steps.
fn new_run(folder: &Path) -> (RunDirectory, Config) {
    let run = RunDirectory::new(folder);
    let mut config = Config::default();
    config.network.blocks = 1;
    config.network.channels = 8;
    config.train.batch_size = 64;
    config.train.pool_rows = 200;
    config.train.checkpoint_steps = 4;
    config.train.keep_checkpoints = 20;
    // Enough for all steps that are requested.
    config.train.reuse_factor = 100.0;
    config.train.network_steps = 20;
    begin_or_resume(&run, &config, Some(7)).unwrap();
    make_folder(&run.shards()).unwrap();
    write_games(&run.shards(), 12, 12);
    (run, config)
}

/// Brings ten more games in a shard of this number, from 2 on.
fn write_more_games(run: &RunDirectory, sequence: u64) {
    let folder = tempfile::tempdir().unwrap();
    write_games(folder.path(), 10 * (sequence + 1), 12);
    let name = format!("000-{sequence:06}.shard");
    fs::copy(folder.path().join(&name), run.shards().join(&name)).unwrap();
}

/// A generation of so many steps, without waiting for games.
fn steps(steps: impl Into<Option<u64>>) -> TrainingBudget {
    TrainingBudget {
        steps: steps.into(),
        wait: false,
    }
}

fn outcome(
    run: &RunDirectory,
    config: &Config,
    budget: TrainingBudget,
) -> Result<TrainingEnd, TrainError> {
    train_until(run, config, budget, &Stop::default())
}

fn train_until(
    run: &RunDirectory,
    config: &Config,
    budget: TrainingBudget,
    stop: &Stop,
) -> Result<TrainingEnd, TrainError> {
    let mut seen = WorkersSeen::default();
    train(run, config, budget, Device::Cpu, &mut seen, stop)
}

fn train_to_end(run: &RunDirectory, config: &Config, number: Option<u64>) -> Vec<u8> {
    let ending = outcome(run, config, steps(number)).unwrap();
    let TrainingEnd::Published { path, .. } = ending else {
        panic!("no stop was requested: {ending:?}");
    };
    fs::read(path).unwrap()
}

fn checkpoints(run: &RunDirectory) -> Vec<PathBuf> {
    checkpoint::list(&run.checkpoints()).unwrap()
}

#[test]
fn the_average_is_published_and_not_the_last_step() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    train_to_end(&run, &config, Some(6));
    let published = Network::load(&run.network(1)).unwrap().network;
    let newest = fs::read(checkpoints(&run).pop().unwrap()).unwrap();
    let saved = safetensors::SafeTensors::deserialize(&newest).unwrap();
    for parameter in published.parameters() {
        let tensor = parameter.tensor.detach().contiguous().view([-1]);
        let numbers: Vec<u8> = Vec::<f32>::try_from(tensor)
            .unwrap()
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let of = |kind| saved.tensor(&format!("{kind}.{}", parameter.name)).unwrap();
        assert_eq!(of("average").data(), numbers, "{}", parameter.name);
        // These games have no result: value and auxiliary heads have learnt nothing.
        if parameter.used_in_inference && !parameter.name.starts_with("value.") {
            assert_ne!(of("network").data(), numbers, "{}", parameter.name);
        }
    }
}

#[test]
fn a_training_that_was_killed_ends_with_the_same_network() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let whole = train_to_end(&run, &config, Some(14));
    let steps: Vec<String> = checkpoints(&run)
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy()[6..].to_owned())
        .collect();
    assert_eq!(
        steps,
        [
            "0000000000",
            "0000000004",
            "0000000008",
            "0000000012",
            "0000000014"
        ]
    );
    // Killed after step 14, 12, 8, …, and before the network was there.
    for path in checkpoints(&run).iter().rev() {
        fs::remove_file(run.network(1)).unwrap();
        assert_eq!(
            train_to_end(&run, &config, None),
            whole,
            "from {}",
            path.display()
        );
        for newer in checkpoints(&run) {
            if newer >= *path {
                fs::remove_file(newer).unwrap();
            }
        }
    }
}

/// 40 steps in one go, and 20 of which only the checkpoint is left and 20 more.
#[test]
fn both_optimizers_go_on_to_the_same_bytes() {
    for optimizer in [OptimizerKind::AdamW, OptimizerKind::Sgd] {
        let folder = tempfile::tempdir().unwrap();
        let (run, mut config) = new_run(folder.path());
        config.train.optimizer = optimizer;
        config.train.checkpoint_steps = 20;
        config.train.warmup_steps = 10;
        config.train.schedule = ScheduleKind::Cosine;
        config.train.schedule_steps = 25;
        fs::write(run.config(), config.to_toml()).unwrap();
        let network = train_to_end(&run, &config, Some(40));
        let newest = checkpoints(&run).pop().unwrap();
        let checkpoint = fs::read(&newest).unwrap();
        fs::remove_file(run.network(1)).unwrap();
        fs::remove_file(&newest).unwrap();
        let before = checkpoints(&run).pop().unwrap();
        assert!(before.ends_with("00001-0000000020.safetensors"));
        assert_eq!(train_to_end(&run, &config, None), network, "{optimizer}");
        assert_eq!(fs::read(&newest).unwrap(), checkpoint, "{optimizer}");
    }
}

#[test]
fn what_may_change_does_on_resume_and_what_may_not_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let whole = train_to_end(&run, &config, Some(8));
    fs::remove_file(run.network(1)).unwrap();
    fs::remove_file(checkpoints(&run).pop().unwrap()).unwrap();
    let mut other = config.clone();
    other.train.optimizer = OptimizerKind::Sgd;
    let error = outcome(&run, &other, steps(None)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("config.toml: train.optimizer = \"sgd\", but the run was trained with"),
        "{error}"
    );
    let mut changed = config.clone();
    changed.train.learning_rate *= 2.0;
    assert_ne!(train_to_end(&run, &changed, None), whole);
    let change = logged_changes(&run);
    assert!(
        change[0].starts_with("train.learning_rate = "),
        "{change:?}"
    );
    // The next generation is the same run.
    let error = outcome(&run, &other, steps(Some(2))).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("config.toml: train.optimizer = "), "{error}");
}

#[test]
fn changes_in_the_file_are_taken_over_at_the_next_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let plan = TrainingPlan::make(&run, &config, steps(20), Device::Cpu, &Stop::default());
    let plan = plan.unwrap().unwrap();
    let mut seen = WorkersSeen::default();
    let mut training = Training::new(&run, &config, plan, false, &mut seen).unwrap();
    let mut other = config.clone();
    other.train.learning_rate = 0.05;
    other.train.warmup_steps = 0;
    other.train.batch_size = 32;
    fs::write(run.config(), other.to_toml()).unwrap();
    training.take_changes();
    assert_eq!(training.config, other);
    assert_eq!(training.loader_options().batch_size, 32);
    // What can't be read or may not be is not taken over, and ends nothing.
    let mut refused = config.clone();
    refused.train.optimizer = OptimizerKind::Sgd;
    for text in [refused.to_toml(), "[train".into()] {
        fs::write(run.config(), text).unwrap();
        training.take_changes();
        assert_eq!(training.config, other);
    }
    let mut loader = training.start_loader();
    let (batch, _) = loader.next().unwrap();
    assert_eq!(training.trainer.step(&batch).unwrap().learning_rate, 0.05);
    drop(loader);
    assert_eq!(logged_changes(&run).len(), 3);
    assert!(logged_changes(&run)[0].starts_with("train.batch_size = 32 (was "));
}

/// The texts of the log's lines of kind `changed`.
fn logged_changes(run: &RunDirectory) -> Vec<String> {
    let log = fs::read_to_string(run.logs().join("train.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let changes = lines.filter(|line: &serde_json::Value| line["kind"] == "changed");
    changes
        .map(|line| line["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_training_resumes_with_batches_of_another_size() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.batch_size = 32;
    train_to_end(&run, &config, Some(9));
    fs::remove_file(run.network(1)).unwrap();
    fs::remove_file(checkpoints(&run).pop().unwrap()).unwrap();
    config.train.batch_size = 50;
    config.train.pool_rows = 60;
    train_to_end(&run, &config, None);
}

#[test]
fn a_broken_checkpoint_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let whole = train_to_end(&run, &config, Some(10));
    fs::remove_file(run.network(1)).unwrap();
    let broken = &checkpoints(&run)[2..];
    let bytes = fs::read(&broken[0]).unwrap();
    fs::write(&broken[0], &bytes[..bytes.len() - 1]).unwrap();
    let mut bytes = fs::read(&broken[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&broken[1], bytes).unwrap();
    let resumed = checkpoint::newest(&run.checkpoints()).unwrap().unwrap();
    assert_eq!(resumed.header.state.step, 4);
    assert_eq!(train_to_end(&run, &config, None), whole);
}

#[test]
fn a_requested_stop_leaves_a_checkpoint_to_resume_from() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let stop = Stop::default();
    stop.request();
    let ending = train_until(&run, &config, steps(6), &stop).unwrap();
    let checkpoint = checkpoints(&run).pop().unwrap();
    let expected = TrainingEnd::Stopped {
        generation: 1,
        step: 1,
        steps: 6,
        checkpoint,
    };
    assert_eq!(ending, expected);
    assert!(!run.network(1).exists());
    let stopped = train_to_end(&run, &config, None);
    let other = tempfile::tempdir().unwrap();
    let (run, config) = new_run(other.path());
    assert_eq!(stopped, train_to_end(&run, &config, Some(6)));
}

#[test]
fn each_generation_begins_with_the_last_one_and_counts_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.validation_share = 0.0;
    config.train.reuse_factor = 1.0;
    config.train.network_steps = 0;
    train_to_end(&run, &config, None);
    let origin = |generation| network::Network::load(&run.network(generation)).unwrap();
    let (first, second) = (origin(0), origin(1));
    let number = |key: &str| second.origin[key].parse::<u64>().unwrap();
    assert_eq!(second.origin["parent"], first.identity);
    assert_eq!(
        (number("generation"), number("new_games"), number("seed")),
        (1, 12, 7)
    );
    assert_eq!(number("steps"), number("new_rows") / 64);
    let error = outcome(&run, &config, steps(None)).unwrap_err();
    assert!(matches!(error, TrainError::NothingNew { .. }), "{error}");
    config.train.reuse_factor = 3.0;
    write_more_games(&run, 2);
    train_to_end(&run, &config, Some(3));
    let third = origin(2);
    assert_eq!(third.origin["parent"], second.identity);
    assert_eq!(third.origin["step"], (number("step") + 3).to_string());
    assert_eq!(third.origin["new_games"], "10");
}

#[test]
fn every_twenty_steps_and_the_last_ones_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let _generator = workers_seen::tests::start(&run, "a");
    train_to_end(&run, &config, Some(50));
    let text = fs::read_to_string(run.logs().join("train.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let of_kind = |kind: &str| {
        let lines = lines.iter().filter(|line| line["kind"] == kind);
        lines
            .map(|line| {
                (
                    line["step"].as_u64().unwrap(),
                    line["policy_loss"].as_f64().unwrap(),
                )
            })
            .unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let (steps, losses) = of_kind("train");
    assert_eq!(steps, [20, 40, 50]);
    // Random targets over some twenty legal steps.
    assert!(
        losses.iter().all(|loss| (2.0..4.0).contains(loss)),
        "{losses:?}"
    );
    assert_eq!(of_kind("validation").0, [0, 50]);
    let of_last = |kind: &str| lines.iter().rfind(|line| line["kind"] == kind).unwrap();
    assert_eq!(of_last("validation")["rows"], 55);
    let line = of_last("train");
    assert_eq!(line["trained_rows"], 50 * 64);
    let generators = [&line["generators_at_work"], &line["generators_lost"]];
    assert_eq!(generators, [1, 0]);
    assert!(line["data_age"].as_f64().unwrap() >= 0.0, "{line}");
    let busy = ["computing", "waiting"].map(|key| line[key].as_f64().unwrap());
    assert!(busy[0] > 0.0 && busy[0] + busy[1] <= 1.0, "{line}");
    assert_eq!(of_last("published")["generation"], 1);
    let page = fs::read_to_string(run.logs().join("curves.svg")).unwrap();
    assert!(page.contains("training rows"));
}

#[test]
fn an_error_says_what_there_is_to_go_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.learning_rate = 1e30;
    config.train.warmup_steps = 0;
    config.train.weight_decay = 1.0;
    let error = outcome(&run, &config, steps(Some(50))).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("step ") && message.contains("the step was not made"),
        "{message}"
    );
    let newest = checkpoints(&run).pop().unwrap();
    assert!(
        message.ends_with(&format!("the newest checkpoint is {}", newest.display())),
        "{message}"
    );
    checkpoint::Checkpoint::load(&newest).unwrap();
    assert!(!run.network(1).exists());
}

#[test]
fn the_next_generation_continues_from_the_weights_and_not_from_their_average() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    train_to_end(&run, &config, Some(6));
    let plan = || {
        let plan = TrainingPlan::make(&run, &config, steps(1), Device::Cpu, &Stop::default());
        plan.unwrap().unwrap()
    };
    let newest = checkpoints(&run).pop().unwrap();
    let bytes = fs::read(&newest).unwrap();
    let saved = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let is_from = |kind: &str, network: &Network| {
        network.parameters().all(|parameter| {
            let tensor = parameter.tensor.detach().contiguous().view([-1]);
            let numbers = Vec::<f32>::try_from(tensor).unwrap();
            let numbers: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            saved
                .tensor(&format!("{kind}.{}", parameter.name))
                .unwrap()
                .data()
                == numbers
        })
    };
    let begun = plan();
    assert_eq!((begun.state.generation, begun.begins), (2, true));
    assert!(is_from("network", begun.trainer.network()));
    assert!(is_from("average", begun.trainer.average()));
    // The last checkpoint is lost: the network holds what it held, but for the weights behind the average.
    fs::write(&newest, &bytes[..100]).unwrap();
    let begun = plan();
    assert!(is_from("average", begun.trainer.network()));
    assert_eq!((begun.state.generation, begun.state.step), (2, 6));
}

#[test]
fn a_batch_without_finite_losses_is_kept_and_dropped_and_three_end_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let plan = TrainingPlan::make(&run, &config, steps(20), Device::Cpu, &Stop::default());
    let plan = plan.unwrap().unwrap();
    let mut seen = WorkersSeen::default();
    let mut training = Training::new(&run, &config, plan, false, &mut seen).unwrap();
    let mut loader = training.start_loader();
    let good = loader.next().unwrap().0;
    let bad = crate::data::samples::spoiled(&good);
    let weights = |training: &Training| {
        let network = training.trainer.network();
        let parameters = network.parameters().map(|parameter| parameter.tensor);
        let all = parameters.chain(network.buffers().map(|(_, tensor)| tensor));
        all.map(|tensor| tensor.sum(None).double_value(&[]))
            .collect::<Vec<f64>>()
    };
    assert!(training.step(&good).unwrap().is_some());
    let before = weights(&training);
    for _ in 0..2 {
        assert_eq!(training.step(&bad).unwrap(), None);
    }
    assert_eq!(weights(&training), before, "the norms' statistics included");
    // A step between them: they are not three in a row.
    assert!(training.step(&good).unwrap().is_some());
    for _ in 0..2 {
        assert_eq!(training.step(&bad).unwrap(), None);
    }
    let error = training.step(&bad).unwrap_err().to_string();
    for part in [
        "is NaN",
        "third in a row",
        "-3.safetensors, ",
        "-5.safetensors",
    ] {
        assert!(error.contains(part), "no `{part}` in {error}");
    }
    let folder = run.logs().join("bad-batches");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
    let bytes = fs::read(folder.join("00001-0000000001-1.safetensors")).unwrap();
    let kept = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(kept.tensor("planes").unwrap().shape(), [64, 39, 8, 8]);
    assert_eq!(kept.tensor("policy").unwrap().shape(), [64, 321]);
    let values = kept.tensor("value").unwrap().data().chunks_exact(4);
    let values = values.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(values.filter(|value| value.is_nan()).count(), 1);
}

#[test]
fn a_change_that_can_t_work_is_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let plan = TrainingPlan::make(&run, &config, steps(20), Device::Cpu, &Stop::default());
    let mut seen = WorkersSeen::default();
    let plan = plan.unwrap().unwrap();
    let mut training = Training::new(&run, &config, plan, false, &mut seen).unwrap();
    let mut too_large = config.clone();
    too_large.train.batch_size = 10_000;
    let mut too_little = config.clone();
    too_little.train.memory_mib = 1;
    too_little.train.batch_size = 500;
    for other in [too_large, too_little] {
        fs::write(run.config(), other.to_toml()).unwrap();
        training.take_changes();
        assert_eq!(training.config, config);
    }
}
