//! The training of one generation: from the plan to the published network.

use crate::data::{
    Batch, GameRows, Loader, LoaderOptions, MemoryBudget, RowRef, Window, WindowCounts,
};
use crate::error::TrainError;
use crate::terminal::grouped;
use crate::trainer::bad_batch;
use crate::trainer::change::{ConfigFile, changed};
use crate::trainer::checkpoint;
use crate::trainer::loss::{LossSums, in_digits};
use crate::trainer::meter::LossMeter;
use crate::trainer::metrics::Standing;
use crate::trainer::plan::{TrainingBudget, TrainingPlan, check_rows, hold};
use crate::trainer::record::Recorder;
use crate::trainer::state::TrainingState;
use crate::trainer::step::{StepReport, Trainer};
use crate::trainer::supply::DataSupply;
use crate::trainer::waiting::Waiting;
use crate::trainer::workers_seen::WorkersSeen;
use engine::config::Config;
use engine::progress::{Progress, in_words, say};
use engine::run::{RunDirectory, make_folder};
use engine::stop::Stop;
use network::{Device, Head};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Steps between two lines in the log.
const LOG_STEPS: u64 = 20;

/// About how many validation rows the losses are measured on: a few seconds of computing.
const VALIDATION_ROWS: usize = 16_384;

/// The dropped batches in a row that end the training.
const DROPPED_IN_A_ROW: u64 = 3;

/// How a training ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TrainingEnd {
    /// The next network is published.
    Published {
        /// Its generation.
        generation: u32,
        /// Its file.
        path: PathBuf,
    },
    /// A stop was requested; the same command resumes.
    Stopped {
        /// The generation in training.
        generation: u32,
        /// The steps made of it.
        step: u64,
        /// The steps of the generation.
        steps: u64,
        /// The checkpoint to resume from.
        checkpoint: PathBuf,
    },
    /// A stop was requested while the next generation waited for games.
    NotBegun,
}

/// One generation in training.
struct Training<'a> {
    run: &'a RunDirectory,
    config: Config,
    config_file: ConfigFile,
    state: TrainingState,
    trainer: Trainer,
    supply: DataSupply,
    window: Arc<Window>,
    validation: Vec<GameRows>,
    recorder: Recorder,
    workers_seen: &'a mut WorkersSeen,
    /// Whether to wait for games that are missing.
    wait: bool,
    /// The newest whole checkpoint.
    checkpoint: Option<PathBuf>,
    /// The files of the batches dropped since the last step.
    dropped: Vec<PathBuf>,
}

/// How a part of a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepFlow {
    Continue,
    /// A stop is requested.
    Stop,
    /// A stop is requested during a wait: all is saved, and the next start finds the games that have come since.
    StopWaiting,
}

/// Trains the run's next network, or resumes its training, and publishes it. Changes of the run's configuration file apply from the
/// next checkpoint.
pub(crate) fn train(
    run: &RunDirectory,
    config: &Config,
    budget: TrainingBudget,
    device: Device,
    workers_seen: &mut WorkersSeen,
    stop: &Stop,
) -> Result<TrainingEnd, TrainError> {
    let Some(plan) = TrainingPlan::make(run, config, budget, device, stop)? else {
        return Ok(TrainingEnd::NotBegun);
    };
    let (begins, is_remade, has_new_window) = (plan.begins, plan.is_remade, plan.has_new_window);
    let mut training = Training::new(run, config, plan, budget.wait, workers_seen)?;
    training.announce(begins);
    if begins || has_new_window {
        let measured = training.measure();
        training.state.validation_before = measured.map_err(|error| training.interrupted(error))?;
    }
    if begins || is_remade {
        training.save()?;
    }
    hold(run, &training.window, &training.supply)?;
    let flow = training
        .make_steps(stop)
        .map_err(|error| training.interrupted(error))?;
    match flow {
        StepFlow::Continue => training.publish(),
        StepFlow::Stop => {
            training.save()?;
            Ok(training.stopped())
        }
        StepFlow::StopWaiting => Ok(training.stopped()),
    }
}

impl<'a> Training<'a> {
    fn new(
        run: &'a RunDirectory,
        config: &Config,
        plan: TrainingPlan,
        wait: bool,
        workers_seen: &'a mut WorkersSeen,
    ) -> Result<Self, TrainError> {
        let mut recorder = Recorder::new(run, plan.state.step);
        recorder.changed(plan.state.generation, plan.state.step, &plan.changes);
        Ok(Self {
            validation: plan
                .window
                .validation_rows(VALIDATION_ROWS, (&config.train).into())?,
            recorder,
            workers_seen,
            run,
            config: config.clone(),
            config_file: plan.config_file,
            state: plan.state,
            trainer: plan.trainer,
            supply: plan.supply,
            window: Arc::new(plan.window),
            wait,
            checkpoint: plan.checkpoint,
            dropped: Vec::new(),
        })
    }

    fn announce(&self, begins: bool) {
        let (state, window) = (&self.state, &self.window);
        let verb = if begins { "training" } else { "resuming" };
        say(&format!(
            "{verb} network {} from step {} to {}: {} games with {} rows in the window, {} rows for validation",
            state.generation,
            grouped(state.step),
            grouped(state.last_step),
            grouped(window.games() as u64),
            grouped(window.training_rows()),
            grouped(self.validation.iter().flat_map(GameRows::rows).count() as u64),
        ));
    }

    /// Makes steps until the generation is complete or a stop is requested.
    fn make_steps(&mut self, stop: &Stop) -> Result<StepFlow, TrainError> {
        let mut loader = self.start_loader();
        let steps = self.state.last_step - self.state.first_step;
        let label = format!("train network {}", self.state.generation);
        // The meter estimates from this start's steps alone.
        let mut progress = Progress::new(&label, steps).without_estimate();
        let mut meter = LossMeter::new(self.config.train.batch_size);
        while self.state.step < self.state.last_step {
            if !self.supply.allows(self.config.train.batch_size) {
                // Two would take more than `train.memory_mib`.
                drop(loader);
                match self.wait_for_rows(stop)? {
                    StepFlow::Continue => {}
                    flow => return Ok(flow),
                }
                loader = self.start_loader();
                meter = LossMeter::new(self.config.train.batch_size);
            }
            let batch_size = self.config.train.batch_size;
            let begun = Instant::now();
            let (batch, cursor) = loader.next()?;
            let waited = begun.elapsed();
            self.state.cursor = cursor;
            let report = self.step(&batch)?;
            loader.give_back(batch);
            let Some(report) = report else {
                continue;
            };
            self.supply.take(batch_size);
            self.state.step += 1;
            self.state.sums.add(&report.losses, &report.weights);
            meter.add(&report, waited, begun.elapsed() - waited);
            let done = self.state.step == self.state.last_step;
            if self.state.step.is_multiple_of(LOG_STEPS) || done {
                self.workers_seen.look(self.run, Instant::now());
                let measured = meter.take(self.standing());
                let state = &self.state;
                self.recorder.steps(state.generation, state.step, &measured);
            }
            progress.show(self.state.step - self.state.first_step, || {
                self.message(&meter)
            });
            if stop.is_requested() && !done {
                return Ok(StepFlow::Stop);
            }
            let checkpoint_steps = self.config.train.checkpoint_steps.into();
            if self.state.step.is_multiple_of(checkpoint_steps) && !done {
                let options = self.loader_options();
                self.take_changes();
                let reshuffles = self.loader_options() != options;
                if reshuffles {
                    // The cursor counts in pools of another size.
                    self.state.next_segment();
                }
                self.save()?;
                if reshuffles {
                    drop(loader);
                    loader = self.start_loader();
                    meter = LossMeter::new(self.config.train.batch_size);
                }
            }
        }
        let message = self.message(&meter);
        progress.finish(&format!("{} steps, {message}", grouped(steps)));
        Ok(StepFlow::Continue)
    }

    /// Makes a step; none if a loss or a gradient is not finite. Such a batch is kept in a file, and three in a row are an error.
    fn step(&mut self, batch: &Batch) -> Result<Option<StepReport>, TrainError> {
        let error = match self.trainer.step(batch) {
            Ok(report) => {
                self.dropped.clear();
                return Ok(Some(report));
            }
            Err(error @ TrainError::NotFinite { .. }) => error,
            Err(error) => return Err(error),
        };
        self.state.dropped += 1;
        let state = &self.state;
        let path = bad_batch::keep(&self.run.logs(), state, batch, &error)?;
        say(&format!("{error}; its batch is kept in {}", path.display()));
        self.dropped.push(path);
        if self.dropped.len() as u64 == DROPPED_IN_A_ROW {
            return Err(TrainError::NeverFinite {
                error: Box::new(error),
                batches: std::mem::take(&mut self.dropped),
            });
        }
        Ok(None)
    }

    /// Waits for enough new rows, and opens a new window with them.
    fn wait_for_rows(&mut self, stop: &Stop) -> Result<StepFlow, TrainError> {
        self.save()?;
        let mut waiting = Waiting::default();
        let mut new = WindowCounts::default();
        loop {
            // The user may raise the reuse factor during the wait.
            self.take_changes();
            let config = &self.config.train;
            new += self.supply.look(config)?;
            // Not for every shard: each new window begins a new shuffle.
            let left = self.state.last_step - self.state.step;
            let batches = left.min(config.checkpoint_steps.into());
            if self.supply.batches(config.batch_size) >= batches {
                break;
            }
            let missing = self.supply.shortage(config, batches);
            if !self.wait {
                return Err(TrainError::NothingNew {
                    folder: self.run.shards(),
                    missing,
                });
            }
            if waiting.time().is_zero() {
                let state = &self.state;
                self.recorder
                    .waiting(state.generation, state.step, &missing);
            }
            self.workers_seen.look(self.run, Instant::now());
            if !waiting.wait(&missing, stop) {
                return Ok(StepFlow::StopWaiting);
            }
        }
        let window = self.supply.open_window(&self.config.train)?;
        check_rows(&window, &self.config.train, false)?;
        self.validation = window.validation_rows(VALIDATION_ROWS, (&self.config.train).into())?;
        self.window = Arc::new(window);
        self.state.add_new(new);
        self.state.next_segment();
        // The losses before and after the training are compared on the same rows.
        self.state.validation_before = self.measure()?;
        self.save()?;
        hold(self.run, &self.window, &self.supply)?;
        say(&format!(
            "resuming after {} with {} games of {} rows in the window",
            in_words(waiting.time()),
            grouped(self.window.games() as u64),
            grouped(self.window.training_rows()),
        ));
        Ok(StepFlow::Continue)
    }

    fn message(&self, meter: &LossMeter) -> String {
        let state = &self.state;
        let left = state.last_step.saturating_sub(state.step);
        meter.message(state.step, left, self.window.training_rows())
    }

    fn standing(&self) -> Standing {
        Standing {
            epoch: self.state.cursor.epoch,
            trained_rows: self.supply.state().trained_rows,
            window_rows: self.window.training_rows(),
            data_age: self.window.age().map(|age| age.as_secs_f64()),
            generators: self.workers_seen.counts(),
        }
    }

    /// Applies the user's changes of the run's configuration file. An error is reported and changes nothing.
    fn take_changes(&mut self) {
        let Some(read) = self.config_file.read_again() else {
            return;
        };
        let path = self.config_file.path().display();
        let changes = read.and_then(|mut config| {
            // The loop's own settings apply after its restart.
            config.training_loop = self.config.training_loop.clone();
            let changes = changed(&self.config, &config);
            let changes = changes.map_err(|refusal| format!("{path}: {refusal}"))?;
            // Changes that would end the training are refused.
            let options = LoaderOptions::new(&config.train, self.state.seed, 0);
            check_rows(&self.window, &config.train, false)
                .and_then(|()| MemoryBudget::new(&self.window, &options))
                .and_then(|_| self.trainer.set_config(config.train.clone()))
                .map_err(|error| format!("{path}: {error}"))?;
            Ok((config, changes))
        });
        match changes {
            Ok((config, changes)) => {
                for change in &changes {
                    say(&format!("changed after step {}: {change}", self.state.step));
                }
                let (generation, step) = (self.state.generation, self.state.step);
                self.recorder.changed(generation, step, &changes);
                self.config = config;
            }
            Err(message) => say(&format!(
                "the configuration stays as it was: {}",
                message.trim_end()
            )),
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
        let state = &self.state;
        LoaderOptions {
            segment: state.segment,
            ..LoaderOptions::new(&self.config.train, state.seed, state.generation)
        }
    }

    /// Measures and logs the losses on the validation rows.
    fn measure(&mut self) -> Result<LossSums, TrainError> {
        let rows: Vec<RowRef> = self.validation.iter().flat_map(GameRows::rows).collect();
        let measured = self.trainer.measure(&rows)?;
        let losses = measured.losses;
        if losses.mean(Head::Policy).is_some() {
            let state = &self.state;
            self.recorder
                .validation(state.generation, state.step, &measured.report(rows.len()));
        }
        Ok(losses)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        let trainer = &self.trainer;
        let folder = self.run.checkpoints();
        self.state.supply = self.supply.state().clone();
        let written = trainer.work().run(|| {
            checkpoint::save(
                &folder,
                trainer.network(),
                trainer.average(),
                trainer.optimizer(),
                &self.config,
                &self.state,
            )
        });
        self.checkpoint = Some(written?);
        Ok(())
    }

    /// The error, with the checkpoint to resume from.
    fn interrupted(&self, error: TrainError) -> TrainError {
        match self.checkpoint.clone() {
            Some(checkpoint) => TrainError::Interrupted {
                error: Box::new(error),
                checkpoint,
            },
            None => error,
        }
    }

    fn stopped(self) -> TrainingEnd {
        let state = self.state;
        TrainingEnd::Stopped {
            generation: state.generation,
            step: state.step - state.first_step,
            steps: state.last_step - state.first_step,
            checkpoint: self.checkpoint.unwrap_or_default(),
        }
    }

    /// Measures and saves the complete network, and makes it the run's newest.
    fn publish(mut self) -> Result<TrainingEnd, TrainError> {
        let measured = self.measure();
        let after = measured.map_err(|error| self.interrupted(error))?;
        let before = self.state.validation_before;
        if after.mean(Head::Policy).is_some() {
            say(&format!(
                "validation: policy loss {} -> {}, value loss {} -> {}",
                in_digits(before.mean(Head::Policy), 3),
                in_digits(after.mean(Head::Policy), 3),
                in_digits(before.mean(Head::Value), 3),
                in_digits(after.mean(Head::Value), 3)
            ));
        }
        self.save()?;
        let origin = self.state.origin(&self.window, &after);
        let (folder, path) = self.place();
        make_folder(&folder)?;
        let trainer = &self.trainer;
        let save = || Ok(trainer.average().save(&path, &origin)?);
        trainer.work().run(save)?;
        say(&format!(
            "network {}: {}",
            self.state.generation,
            path.display()
        ));
        self.recorder
            .published(self.state.generation, self.state.step);
        Ok(TrainingEnd::Published {
            generation: self.state.generation,
            path,
        })
    }

    /// The folder and the file of the complete network: with a gate, it does not play before its match.
    fn place(&self) -> (PathBuf, PathBuf) {
        let (run, generation) = (self.run, self.state.generation);
        if self.config.training_loop.gate_score > 0.0 {
            (run.candidates(), run.candidate(generation))
        } else {
            (run.networks(), run.network(generation))
        }
    }
}

#[cfg(test)]
mod tests;
