//! The plan of a training: resume the generation that was stopped, or begin the next one.

use crate::data::{Cursor, LoaderOptions, Window, WindowCounts};
use crate::error::TrainError;
use crate::trainer::change::{ConfigFile, changed};
use crate::trainer::checkpoint::{self, Checkpoint};
use crate::trainer::loss::LossSums;
use crate::trainer::record::Recorder;
use crate::trainer::state::TrainingState;
use crate::trainer::step::Trainer;
use crate::trainer::supply::{DataSupply, SupplyState};
use crate::trainer::waiting::Waiting;
use engine::config::{Config, TrainConfig};
use engine::progress::say;
use engine::record::ShardName;
use engine::run::{GeneratorPaths, RunDirectory, TrainerWindow, running_generators};
use engine::stop::Stop;
use network::{Architecture, Device, Network, NetworkFile};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What a training may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrainingBudget {
    /// Steps of the optimizer for the generation; by default as many as the new rows allow.
    pub(crate) steps: Option<u64>,
    /// Whether to wait for missing games. Otherwise they are an error.
    pub(crate) wait: bool,
}

/// A training that is ready to start.
#[derive(Debug)]
pub(crate) struct TrainingPlan {
    /// Where it stands.
    pub(crate) state: TrainingState,
    /// The network with its optimizer.
    pub(crate) trainer: Trainer,
    /// The run's games.
    pub(crate) supply: DataSupply,
    /// The games to train on now.
    pub(crate) window: Window,
    /// Whether the generation begins, rather than resumes.
    pub(crate) begins: bool,
    /// Whether the resumed state differs from the checkpoint's.
    pub(crate) is_remade: bool,
    /// Whether a resumed generation's window is another than the checkpoint's.
    pub(crate) has_new_window: bool,
    /// The run's configuration file, as it was before the wait for games.
    pub(crate) config_file: ConfigFile,
    /// The changes of settings since the checkpoint.
    pub(crate) changes: Vec<String>,
    /// The checkpoint that it continues from, if there is one.
    pub(crate) checkpoint: Option<PathBuf>,
}

impl TrainingPlan {
    /// Makes the plan from what the run holds, and waits for missing games if the budget allows it; none if a stop is requested.
    pub(crate) fn make(
        run: &RunDirectory,
        config: &Config,
        budget: TrainingBudget,
        device: Device,
        stop: &Stop,
    ) -> Result<Option<Self>, TrainError> {
        let config_file = ConfigFile::open(&run.config());
        // Training continues from a rejected network too.
        let newest = run.newest_trained()?;
        let (generation, path) = newest.ok_or_else(|| TrainError::NoRun {
            path: run.root().to_owned(),
            missing: "network",
        })?;
        match checkpoint::newest(&run.checkpoints())? {
            Some(checkpoint) if checkpoint.header.state.generation > generation => {
                resume(run, config, config_file, budget.steps, device, &checkpoint).map(Some)
            }
            checkpoint => {
                let parent = Parent::load(run, config, generation, &path, checkpoint.as_ref())?;
                begin(run, config, config_file, budget, device, parent, stop)
            }
        }
    }
}

/// Resumes a generation whose network is not published yet.
fn resume(
    run: &RunDirectory,
    config: &Config,
    config_file: ConfigFile,
    steps: Option<u64>,
    device: Device,
    checkpoint: &Checkpoint,
) -> Result<TrainingPlan, TrainError> {
    let mut state = checkpoint.header.state.clone();
    check_architecture(
        run,
        config,
        checkpoint.header.architecture,
        checkpoint.path(),
    )?;
    let changes = check_changes(run, config, checkpoint)?;
    if let Some(steps) = steps {
        state.last_step = state.step.max(state.first_step + steps);
    }
    let network = Network::new(checkpoint.header.architecture, 0)?;
    let mut trainer = Trainer::new(&network, config.train.clone(), device.open()?)?;
    trainer.restore(checkpoint)?;
    let mut supply = DataSupply::new(run, &config.train, state.supply.clone());
    let mut has_new_window = false;
    // Shards that are older than the window may be gone.
    let window = match supply.reopen_window() {
        Err(error) if error.is_gone() => {
            say(&format!(
                "a shard was there when the training of network {} began, and is gone ({error}): training continues with a new window",
                state.generation
            ));
            let new = supply.look(&config.train)?;
            state.add_new(new);
            state.next_segment();
            has_new_window = true;
            supply.open_window(&config.train)?
        }
        opened => opened?,
    };
    check_rows(&window, &config.train, false)?;
    let before = LoaderOptions::new(&checkpoint.header.config.train, state.seed, 0);
    if before != LoaderOptions::new(&config.train, state.seed, 0) {
        // The cursor counts in pools of another size.
        state.next_segment();
    }
    let is_remade = state.segment != checkpoint.header.state.segment;
    Ok(TrainingPlan {
        state,
        trainer,
        supply,
        window,
        begins: false,
        is_remade,
        has_new_window,
        config_file,
        changes,
        checkpoint: Some(checkpoint.path().to_owned()),
    })
}

/// What a generation begins with.
struct Parent<'a> {
    /// The number of the newest network.
    generation: u32,
    network: NetworkFile,
    /// The newest checkpoint, if there is one.
    checkpoint: Option<&'a Checkpoint>,
    /// Whether the newest network came from that checkpoint's training, and not from elsewhere.
    is_own: bool,
    /// The changes of settings since the checkpoint.
    changes: Vec<String>,
}

impl<'a> Parent<'a> {
    fn load(
        run: &RunDirectory,
        config: &Config,
        generation: u32,
        path: &Path,
        checkpoint: Option<&'a Checkpoint>,
    ) -> Result<Self, TrainError> {
        let network = Network::load(path)?;
        check_architecture(run, config, network.network.architecture(), path)?;
        let (mut is_own, mut changes) = (false, Vec::new());
        if let Some(checkpoint) = checkpoint {
            let architecture = checkpoint.header.architecture;
            check_architecture(run, config, architecture, checkpoint.path())?;
            changes = check_changes(run, config, checkpoint)?;
            // Of a broken last checkpoint only the network is left, which was trained further than the previous checkpoint.
            let state = &checkpoint.header.state;
            is_own = state.generation == generation
                && number_in(&network, "step").is_none_or(|step| step == state.step);
        }
        Ok(Self {
            generation,
            network,
            checkpoint,
            is_own,
            changes,
        })
    }

    /// The trainer: the checkpoint's, or one with the network's weights and the checkpoint's optimizer.
    fn trainer(&self, config: &Config, device: Device) -> Result<Trainer, TrainError> {
        let mut trainer =
            Trainer::new(&self.network.network, config.train.clone(), device.open()?)?;
        match self.checkpoint {
            Some(checkpoint) if self.is_own => trainer.restore(checkpoint)?,
            Some(checkpoint) => trainer.restore_optimizer(checkpoint)?,
            None => {}
        }
        trainer.set_step(self.step());
        Ok(trainer)
    }

    /// The steps since the run began.
    fn step(&self) -> u64 {
        let of_checkpoint = self
            .checkpoint
            .map(|checkpoint| checkpoint.header.state.step);
        number_in(&self.network, "step")
            .or(of_checkpoint)
            .unwrap_or(0)
    }

    /// The last known state of the run's games.
    fn supply(&self) -> SupplyState {
        let Some(checkpoint) = self.checkpoint else {
            return SupplyState::default();
        };
        let state = &checkpoint.header.state;
        let mut supply = state.supply.clone();
        // Later checkpoints may be lost: then the network was trained further than this one.
        let is_of_this_run = number_in(&self.network, "seed") == Some(state.seed);
        let trained_rows = number_in(&self.network, "trained_rows").filter(|_| is_of_this_run);
        let later = trained_rows.map_or(0, |rows| rows.saturating_sub(supply.trained_rows));
        supply.allowance -= later as f64;
        supply.trained_rows += later;
        supply
    }
}

/// Begins the generation after the newest network.
fn begin(
    run: &RunDirectory,
    config: &Config,
    config_file: ConfigFile,
    budget: TrainingBudget,
    device: Device,
    parent: Parent,
    stop: &Stop,
) -> Result<Option<TrainingPlan>, TrainError> {
    let generation = parent.generation + 1;
    let trainer = parent.trainer(config, device)?;
    let mut supply = DataSupply::new(run, &config.train, parent.supply());
    let waits = |missing: &str| {
        Recorder::new(run, parent.step()).waiting(generation, parent.step(), missing);
    };
    let mut config = config.clone();
    let waits = budget.wait.then_some(waits);
    let Some(new) = wait_for_rows(
        &mut supply,
        run,
        &mut config,
        config_file.clone(),
        waits,
        stop,
    )?
    else {
        return Ok(None);
    };
    let window = supply.open_window(&config.train)?;
    check_rows(&window, &config.train, false)?;
    let first_step = parent.step();
    let steps = budget.steps.unwrap_or_else(|| steps_for(&supply, &config));
    let state = TrainingState {
        generation,
        seed: number_in(&parent.network, "seed").unwrap_or(0),
        step: first_step,
        optimizer_steps: trainer.optimizer().steps(),
        first_step,
        last_step: first_step + steps,
        segment: 0,
        cursor: Cursor::default(),
        supply: supply.state().clone(),
        new_games: new.games,
        new_evaluations: Some(new.evaluations),
        new_rows: new.training_rows,
        dropped: 0,
        parent: parent.network.identity,
        sums: LossSums::default(),
        validation_before: LossSums::default(),
    };
    Ok(Some(TrainingPlan {
        state,
        trainer,
        supply,
        window,
        begins: true,
        is_remade: false,
        has_new_window: false,
        config_file,
        changes: parent.changes,
        checkpoint: parent.checkpoint.map(|it| it.path().to_owned()),
    }))
}

/// Looks for shards until there are enough rows to begin with. Returns the new ones; none if a stop is requested. A wait is told to
/// `waits`, with what is missing; without that, missing rows are an error. The user may change `train.reuse_factor` during the wait.
fn wait_for_rows(
    supply: &mut DataSupply,
    run: &RunDirectory,
    config: &mut Config,
    mut file: ConfigFile,
    waits: Option<impl Fn(&str)>,
    stop: &Stop,
) -> Result<Option<WindowCounts>, TrainError> {
    let batch_size = config.train.batch_size;
    let mut waiting = Waiting::default();
    let mut new = WindowCounts::default();
    loop {
        if let Some(Ok(changed)) = file.read_again() {
            config.train.reuse_factor = changed.train.reuse_factor;
        }
        new += supply.look(&config.train)?;
        let mut missing = supply.shortage(&config.train, 1);
        let mut is_enough = supply.allows(batch_size);
        if supply.state().seen_rows < batch_size.into() {
            let window = supply.open_window(&config.train);
            if let Err(error) = window.and_then(|window| check_rows(&window, &config.train, true)) {
                let generators = running_generators(&GeneratorPaths::from(run))?;
                // Without a generator nothing says that more will come.
                if waits.is_none() || generators.is_empty() || !error.is_for_more_games() {
                    return Err(error);
                }
                (missing, is_enough) = (error.to_string(), false);
            }
        }
        if is_enough {
            return Ok(Some(new));
        }
        let Some(waits) = &waits else {
            return Err(TrainError::NothingNew {
                folder: run.shards(),
                missing,
            });
        };
        if waiting.time().is_zero() {
            waits(&missing);
        }
        if !waiting.wait(&missing, stop) {
            return Ok(None);
        }
    }
}

/// Writes which shards are read from now on, and which known ones never again: generators remove old shards by it. It follows the
/// checkpoint that holds the window, so that no shard is removed too early.
pub(crate) fn hold(
    run: &RunDirectory,
    window: &Window,
    supply: &DataSupply,
) -> Result<(), TrainError> {
    let name_of = |file: &str| file.parse::<ShardName>().ok();
    let reads: Vec<ShardName> = window.shard_names().filter_map(name_of).collect();
    let read: HashSet<ShardName> = reads.iter().copied().collect();
    let known = supply.state().shards.iter();
    let known = known.filter_map(|name| name_of(name));
    let left_behind = known.filter(|name| !read.contains(name)).collect();
    Ok(run.write_trainer_window(&TrainerWindow { reads, left_behind })?)
}

/// The steps of a generation by default.
fn steps_for(supply: &DataSupply, config: &Config) -> u64 {
    let steps = supply.batches(config.train.batch_size).max(1);
    match config.train.network_steps {
        0 => steps,
        most => steps.min(most),
    }
}

/// A number that a network's origin holds.
pub(crate) fn number_in(file: &NetworkFile, key: &str) -> Option<u64> {
    file.origin.get(key)?.parse().ok()
}

/// The changes since a checkpoint was written, in words.
///
/// # Errors
/// One that is not allowed.
pub(crate) fn allowed_changes(
    run: &RunDirectory,
    config: &Config,
    checkpoint: &Checkpoint,
) -> Result<Vec<String>, TrainError> {
    changed(&checkpoint.header.config, config)
        .map_err(|refusal| TrainError::Other(format!("{}: {refusal}", run.config().display())))
}

/// Reports and returns the changes since a checkpoint was written, and refuses those that are not allowed.
fn check_changes(
    run: &RunDirectory,
    config: &Config,
    checkpoint: &Checkpoint,
) -> Result<Vec<String>, TrainError> {
    let changes = allowed_changes(run, config, checkpoint)?;
    for change in &changes {
        say(&format!("changed since the last checkpoint: {change}"));
    }
    Ok(changes)
}

/// Refuses a window that does not fill a batch. `is_first`: the run never had more rows.
pub(crate) fn check_rows(
    window: &Window,
    config: &TrainConfig,
    is_first: bool,
) -> Result<(), TrainError> {
    let (rows, batch_size) = (window.training_rows(), config.batch_size);
    if rows >= u64::from(batch_size) {
        return Ok(());
    }
    Err(TrainError::TooFewRows {
        folder: window.folder().to_owned(),
        rows,
        games: window.training_games(),
        batch_size,
        is_first,
    })
}

fn check_architecture(
    run: &RunDirectory,
    config: &Config,
    found: Architecture,
    file: &Path,
) -> Result<(), TrainError> {
    for (key, configured, found) in [
        ("network.blocks", config.network.blocks, found.blocks),
        ("network.channels", config.network.channels, found.channels),
    ] {
        if configured != found {
            return Err(TrainError::Other(format!(
                "{key} = {configured} in {}, but {} has {found}: a run's network can't change its size",
                run.config().display(),
                file.display()
            )));
        }
    }
    Ok(())
}
