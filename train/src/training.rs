//! The training of one generation: from the plan to the published network.

use crate::change::{ConfigFile, changed};
use crate::checkpoint::{self, TrainingState};
use crate::data::{Loader, LoaderOptions, TrainingRow, Window};
use crate::error::TrainError;
use crate::loss::{LossSums, in_digits};
use crate::meter::Meter;
use crate::metrics::{Line, Metrics, ValidationMeasurements};
use crate::plan::Plan;
use crate::stop::Stop;
use crate::terminal::grouped;
use crate::trainer::Trainer;
use engine::config::Config;
use engine::network::{Device, Origin};
use engine::progress::{Progress, say};
use engine::run::{RunDirectory, make_folder};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Steps between two lines in the log.
const LOG_STEPS: u64 = 20;

/// About how many validation rows the losses are measured with: a few seconds' worth.
const VALIDATION_ROWS: usize = 16_384;

/// How a training ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    /// The next network is there.
    Published {
        /// Its generation.
        generation: u32,
        /// Its file.
        path: PathBuf,
    },
    /// The user asked to stop; the same command goes on.
    Stopped {
        /// The generation that is being trained.
        generation: u32,
        /// The steps made of it.
        step: u64,
        /// The steps that it takes.
        steps: u64,
        /// Where everything is that is needed to go on.
        checkpoint: PathBuf,
    },
}

/// One generation in training.
struct Training<'a> {
    run: &'a RunDirectory,
    config: Config,
    config_file: ConfigFile,
    state: TrainingState,
    trainer: Trainer,
    window: Arc<Window>,
    validation: Vec<TrainingRow>,
    metrics: Metrics,
    /// The newest checkpoint.
    checkpoint: Option<PathBuf>,
}

/// Trains the run's next network, or goes on with it, and publishes it. What is changed in the run's configuration file meanwhile
/// is taken over at the next checkpoint. `steps` is as in [`Plan::make`].
pub(crate) fn train(
    run: &RunDirectory,
    config: &Config,
    steps: Option<u64>,
    device: Device,
    stop: &Stop,
) -> Result<Ending, TrainError> {
    let plan = Plan::make(run, config, steps, device)?;
    let mut training = Training {
        validation: plan
            .window
            .validation_rows(VALIDATION_ROWS, config.train.search_value_share)?,
        metrics: Metrics::open(&run.logs())?,
        run,
        config: config.clone(),
        config_file: ConfigFile::open(&run.config()),
        state: plan.state,
        trainer: plan.trainer,
        window: Arc::new(plan.window),
        checkpoint: None,
    };
    training.announce(plan.begins);
    if plan.begins {
        training.state.validation_before = training.measure()?;
        training.save()?;
    }
    let finished = training
        .make_steps(stop)
        .map_err(|error| training.interrupted(error))?;
    if !finished {
        return training.stopped();
    }
    training.publish()
}

impl Training<'_> {
    fn announce(&self, begins: bool) {
        let (state, window) = (&self.state, &self.window);
        let verb = if begins { "training" } else { "going on with" };
        say(&format!(
            "{verb} network {} from step {} to {}: {} games with {} rows in the window, {} rows for validation",
            state.generation,
            grouped(state.step),
            grouped(state.last_step),
            grouped(window.games() as u64),
            grouped(window.training_rows()),
            grouped(self.validation.len() as u64),
        ));
    }

    /// Makes steps until the generation is complete or the user asks to stop; says whether it is complete.
    fn make_steps(&mut self, stop: &Stop) -> Result<bool, TrainError> {
        let mut loader = self.start_loader();
        let steps = self.state.last_step - self.state.first_step;
        let mut progress =
            Progress::new(&format!("train network {}", self.state.generation), steps);
        let mut meter = Meter::new(self.config.train.batch_size);
        while self.state.step < self.state.last_step {
            let asked = Instant::now();
            let (batch, cursor) = loader.next()?;
            let waited = asked.elapsed();
            let report = self.trainer.step(&batch)?;
            self.state.step += 1;
            self.state.cursor = cursor;
            self.state.sums.add(report.losses, report.weights);
            meter.add(&report, waited);
            let done = self.state.step == self.state.last_step;
            if self.state.step.is_multiple_of(LOG_STEPS) || done {
                self.metrics
                    .write(&self.line("train", meter.take(cursor.epoch)))?;
            }
            progress.show(self.state.step - self.state.first_step, || meter.message());
            if stop.asked() && !done {
                return Ok(false);
            }
            if self
                .state
                .step
                .is_multiple_of(self.config.train.checkpoint_steps.into())
                && !done
            {
                let options = self.loader_options();
                self.take_changes();
                self.save()?;
                if self.loader_options() != options {
                    loader = self.start_loader();
                    meter = Meter::new(self.config.train.batch_size);
                }
            }
        }
        progress.finish(&format!("{} steps, {}", grouped(steps), meter.message()));
        Ok(true)
    }

    /// Takes over what a person has changed in the run's configuration file. Faults don't end a training that is well under way: they
    /// are named, and it goes on as before.
    fn take_changes(&mut self) {
        let Some(read) = self.config_file.read_again() else {
            return;
        };
        let path = self.config_file.path().display();
        let changes = read.and_then(|config| {
            let changes = changed(&self.config, &config);
            let changes = changes.map_err(|refusal| format!("{path}: {refusal}"))?;
            Ok((config, changes))
        });
        match changes {
            Ok((config, changes)) => {
                for change in changes {
                    say(&format!("from step {} on: {change}", self.state.step + 1));
                }
                self.trainer.set_config(config.train);
                self.config = config;
            }
            Err(message) => say(&format!("nothing is changed: {}", message.trim_end())),
        }
    }

    fn start_loader(&self) -> Loader {
        Loader::start(
            Arc::clone(&self.window),
            self.loader_options(),
            self.state.cursor,
        )
    }

    fn loader_options(&self) -> LoaderOptions {
        let config = &self.config.train;
        LoaderOptions {
            seed: self.state.seed,
            generation: self.state.generation,
            batch_size: config.batch_size as usize,
            pool_rows: config.pool_rows.into(),
            search_value_share: config.search_value_share,
            mirror: config.mirror,
        }
    }

    fn line<Measurements>(
        &self,
        kind: &'static str,
        measurements: Measurements,
    ) -> Line<Measurements> {
        Line {
            kind,
            generation: self.state.generation,
            step: self.state.step,
            measurements,
        }
    }

    /// The losses on the validation rows, which are logged too.
    fn measure(&mut self) -> Result<LossSums, TrainError> {
        let losses = self.trainer.measure(&self.validation)?;
        if losses.policy().is_some() {
            let measurements = ValidationMeasurements {
                policy_loss: losses.policy(),
                value_loss: losses.value(),
                rows: self.validation.len(),
            };
            self.metrics.write(&self.line("validation", measurements))?;
        }
        Ok(losses)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        let trainer = &self.trainer;
        let folder = self.run.checkpoints();
        self.checkpoint = Some(checkpoint::save(
            &folder,
            trainer.network(),
            trainer.average(),
            trainer.optimizer(),
            &self.config,
            &self.state,
        )?);
        Ok(())
    }

    /// Says with an error what there is to go on from.
    fn interrupted(&self, error: TrainError) -> TrainError {
        let newest = checkpoint::list(&self.run.checkpoints())
            .ok()
            .and_then(|mut paths| paths.pop());
        match newest {
            Some(checkpoint) => TrainError::Interrupted {
                error: Box::new(error),
                checkpoint,
            },
            None => error,
        }
    }

    fn stopped(mut self) -> Result<Ending, TrainError> {
        self.save()?;
        let state = self.state;
        Ok(Ending::Stopped {
            generation: state.generation,
            step: state.step - state.first_step,
            steps: state.last_step - state.first_step,
            checkpoint: self.checkpoint.unwrap_or_default(),
        })
    }

    /// Measures and saves the complete network, and makes it the run's newest.
    fn publish(mut self) -> Result<Ending, TrainError> {
        let after = self.measure()?;
        let before = self.state.validation_before;
        if after.policy().is_some() {
            say(&format!(
                "validation: policy loss {} -> {}, value loss {} -> {}",
                in_digits(before.policy(), 3),
                in_digits(after.policy(), 3),
                in_digits(before.value(), 3),
                in_digits(after.value(), 3)
            ));
        }
        self.save()?;
        let origin = self.origin(after);
        let path = self.run.network(self.state.generation);
        make_folder(&self.run.networks())?;
        self.trainer.average().save(&path, &origin)?;
        say(&format!(
            "network {}: {}",
            self.state.generation,
            path.display()
        ));
        Ok(Ending::Published {
            generation: self.state.generation,
            path,
        })
    }

    /// What the network's file says of where it comes from.
    fn origin(&self, validation: LossSums) -> Origin {
        let state = &self.state;
        let steps = state.last_step - state.first_step;
        let mut origin: Vec<(&str, String)> = vec![
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("generation", state.generation.to_string()),
            ("parent", state.parent.clone()),
            ("seed", state.seed.to_string()),
            ("step", state.step.to_string()),
            ("steps", steps.to_string()),
            ("new_games", state.new_games.to_string()),
            ("new_rows", state.new_rows.to_string()),
            ("window_games", self.window.games().to_string()),
            ("window_rows", self.window.training_rows().to_string()),
        ];
        // What was not measured is not there.
        let losses = [
            ("policy_loss", state.sums.policy()),
            ("value_loss", state.sums.value()),
            ("validation_policy_loss", validation.policy()),
            ("validation_value_loss", validation.value()),
        ];
        let measured = losses
            .into_iter()
            .filter_map(|(key, loss)| Some((key, loss?)));
        origin.extend(measured.map(|(key, loss)| (key, format!("{loss:.4}"))));
        origin
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::begin_run;
    use crate::data::samples::write_games;
    use engine::config::{OptimizerKind, ScheduleKind};
    use engine::network::Network;
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
        begin_run(&run, &config, 7).unwrap();
        make_folder(&run.shards()).unwrap();
        write_games(&run.shards(), 12, 12);
        (run, config)
    }

    fn train_to_end(run: &RunDirectory, config: &Config, steps: Option<u64>) -> Vec<u8> {
        let ending = train(run, config, steps, Device::Cpu, &Stop::default()).unwrap();
        let Ending::Published { path, .. } = ending else {
            panic!("nobody asked to stop: {ending:?}");
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
            // These games have no result: the value has learnt nothing.
            if !parameter.name.starts_with("value.") {
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
        let error = train(&run, &other, None, Device::Cpu, &Stop::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("config.toml: train.optimizer = \"sgd\", but the run was trained with"),
            "{error}"
        );
        let mut changed = config.clone();
        changed.train.learning_rate *= 2.0;
        assert_ne!(train_to_end(&run, &changed, None), whole);
        // The next generation is the same run.
        let error = train(&run, &other, Some(2), Device::Cpu, &Stop::default()).unwrap_err();
        assert!(matches!(error, TrainError::Refused { .. }), "{error}");
    }

    #[test]
    fn changes_in_the_file_are_taken_over_at_the_next_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let (run, config) = new_run(folder.path());
        let plan = Plan::make(&run, &config, Some(20), Device::Cpu).unwrap();
        let mut training = Training {
            validation: Vec::new(),
            metrics: Metrics::open(&run.logs()).unwrap(),
            run: &run,
            config: config.clone(),
            config_file: ConfigFile::open(&run.config()),
            state: plan.state,
            trainer: plan.trainer,
            window: Arc::new(plan.window),
            checkpoint: None,
        };
        let mut other = config.clone();
        other.train.learning_rate = 0.5;
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
        assert_eq!(training.trainer.step(&batch).unwrap().learning_rate, 0.5);
    }

    #[test]
    fn a_training_goes_on_in_batches_of_another_size() {
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
    fn a_wish_to_stop_leaves_a_checkpoint_to_go_on_from() {
        let folder = tempfile::tempdir().unwrap();
        let (run, config) = new_run(folder.path());
        let stop = Stop::default();
        stop.ask();
        let ending = train(&run, &config, Some(6), Device::Cpu, &stop).unwrap();
        let checkpoint = checkpoints(&run).pop().unwrap();
        let expected = Ending::Stopped {
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
        config.train.uses_per_row = 1.0;
        train_to_end(&run, &config, None);
        let origin = |generation| engine::network::Network::load(&run.network(generation)).unwrap();
        let (first, second) = (origin(0), origin(1));
        let number = |key: &str| second.origin[key].parse::<u64>().unwrap();
        assert_eq!(second.origin["parent"], first.identity);
        assert_eq!(
            (number("generation"), number("new_games"), number("seed")),
            (1, 12, 7)
        );
        assert_eq!(
            number("steps"),
            (number("new_rows") as f64 / 64.0).round() as u64
        );
        let error = train(&run, &config, None, Device::Cpu, &Stop::default()).unwrap_err();
        assert!(
            matches!(error, TrainError::NothingNew { generation: 1, .. }),
            "{error}"
        );
        train_to_end(&run, &config, Some(3));
        let third = origin(2);
        assert_eq!(third.origin["parent"], second.identity);
        assert_eq!(third.origin["step"], (number("step") + 3).to_string());
        assert_eq!(third.origin["new_rows"], "0");
    }

    #[test]
    fn every_twenty_steps_and_the_last_ones_are_logged() {
        let folder = tempfile::tempdir().unwrap();
        let (run, config) = new_run(folder.path());
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
        assert_eq!(lines.last().unwrap()["rows"], 55);
    }

    #[test]
    fn an_error_says_what_there_is_to_go_on_from() {
        let folder = tempfile::tempdir().unwrap();
        let (run, mut config) = new_run(folder.path());
        config.train.learning_rate = 1e30;
        config.train.warmup_steps = 0;
        config.train.weight_decay = 1.0;
        let error = train(&run, &config, Some(50), Device::Cpu, &Stop::default()).unwrap_err();
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
}
