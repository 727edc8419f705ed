//! What a training has to do: go on where the last one was stopped, or begin the next generation.

use crate::change::changed;
use crate::checkpoint::{self, Checkpoint, TrainingState};
use crate::data::{Cursor, Window, WindowOptions, shard_names};
use crate::error::TrainError;
use crate::loss::LossSums;
use crate::trainer::Trainer;
use engine::config::Config;
use engine::network::{Architecture, Device, Network, NetworkFile};
use engine::progress::say;
use engine::run::{RunDirectory, write_file};
use engine::shard::{ShardError, ShardFault};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A training that is ready to go.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where it stands.
    pub(crate) state: TrainingState,
    /// The network with its optimizer.
    pub(crate) trainer: Trainer,
    /// The games.
    pub(crate) window: Window,
    /// Whether the generation is begun, and not gone on with.
    pub(crate) begins: bool,
}

impl Plan {
    /// Looks at what the run holds. `steps` is how many steps the generation is to be trained for; without it that follows from
    /// the new rows.
    pub(crate) fn make(
        run: &RunDirectory,
        config: &Config,
        steps: Option<u64>,
        device: Device,
    ) -> Result<Self, TrainError> {
        let newest = run.list_networks()?.pop();
        let (generation, path) = newest.ok_or_else(|| TrainError::NoRun {
            path: run.root().to_owned(),
            missing: "network",
        })?;
        let checkpoint = checkpoint::newest(&run.checkpoints())?;
        match checkpoint {
            Some(checkpoint) if checkpoint.header.state.generation > generation => {
                go_on(run, config, steps, device, &checkpoint)
            }
            checkpoint => {
                let parent = (generation, path);
                begin(run, config, steps, device, parent, checkpoint.as_ref())
            }
        }
    }
}

/// Goes on with a generation whose network is not published yet.
fn go_on(
    run: &RunDirectory,
    config: &Config,
    steps: Option<u64>,
    device: Device,
    checkpoint: &Checkpoint,
) -> Result<Plan, TrainError> {
    let mut state = checkpoint.header.state.clone();
    let architecture = checkpoint.header.architecture;
    check_architecture(run, config, architecture, checkpoint.path())?;
    check_changes(run, config, checkpoint)?;
    if let Some(steps) = steps {
        state.last_step = state.step.max(state.first_step + steps);
    }
    let mut trainer = Trainer::new(
        &Network::new(architecture, 0)?,
        config.train,
        device.open()?,
    )?;
    trainer.restore(checkpoint)?;
    let folder = run.shards();
    let open =
        |names: &[String]| Window::open(&folder, names, &HashSet::new(), window_options(config));
    // Older shards than the window's may be gone.
    let window = match open(&state.shards) {
        Err(TrainError::Shard(error)) if is_gone(&error) => {
            say(&format!(
                "{} was there when the training of network {} began, and is gone: its window is made anew",
                error.path.display(),
                state.generation
            ));
            state.shards = shard_names(&folder)?;
            state.cursor = Cursor::default();
            open(&state.shards)?
        }
        opened => opened?,
    };
    check_rows(&window, config)?;
    hold(run, &window)?;
    Ok(Plan {
        state,
        trainer,
        window,
        begins: false,
    })
}

/// Begins the generation after the newest network, with that network's weights and the newest checkpoint's optimizer.
fn begin(
    run: &RunDirectory,
    config: &Config,
    steps: Option<u64>,
    device: Device,
    (generation, path): (u32, PathBuf),
    checkpoint: Option<&Checkpoint>,
) -> Result<Plan, TrainError> {
    let parent = Network::load(&path)?;
    check_architecture(run, config, parent.network.architecture(), &path)?;
    let mut trainer = Trainer::new(&parent.network, config.train, device.open()?)?;
    let mut known = HashSet::new();
    let mut first_step = number_in(&parent, "step");
    if let Some(checkpoint) = checkpoint {
        let state = &checkpoint.header.state;
        check_architecture(
            run,
            config,
            checkpoint.header.architecture,
            checkpoint.path(),
        )?;
        check_changes(run, config, checkpoint)?;
        trainer.restore_optimizer(checkpoint)?;
        known.extend(state.shards.iter().map(String::as_str));
        first_step = first_step.or(Some(state.step));
    }
    let first_step = first_step.unwrap_or(0);
    trainer.set_step(first_step);
    let shards = shard_names(&run.shards())?;
    let window = Window::open(&run.shards(), &shards, &known, window_options(config))?;
    check_rows(&window, config)?;
    hold(run, &window)?;
    let steps = match steps {
        Some(steps) => steps,
        None if window.new_rows() == 0 => {
            return Err(TrainError::NothingNew {
                folder: run.shards(),
                generation,
            });
        }
        None => steps_for(window.new_rows(), config),
    };
    let state = TrainingState {
        generation: generation + 1,
        seed: number_in(&parent, "seed").unwrap_or(0),
        step: first_step,
        optimizer_steps: trainer.optimizer().steps(),
        first_step,
        last_step: first_step + steps,
        cursor: Cursor::default(),
        shards,
        new_games: window.new_games(),
        new_rows: window.new_rows(),
        parent: parent.identity,
        sums: LossSums::default(),
        validation_before: LossSums::default(),
    };
    Ok(Plan {
        state,
        trainer,
        window,
        begins: true,
    })
}

fn is_gone(error: &ShardError) -> bool {
    matches!(&error.fault, ShardFault::Io(error) if error.kind() == ErrorKind::NotFound)
}

/// Says which shards are read from now on: whoever removes old ones leaves them alone.
fn hold(run: &RunDirectory, window: &Window) -> Result<(), TrainError> {
    let names: String = window
        .shard_names()
        .map(|name| format!("{name}\n"))
        .collect();
    Ok(write_file(&run.window(), names.as_bytes())?)
}

/// How many steps use each new row as often as the configuration says.
fn steps_for(new_rows: u64, config: &Config) -> u64 {
    let uses = new_rows as f64 * f64::from(config.train.uses_per_row);
    ((uses / f64::from(config.train.batch_size)).round() as u64).max(1)
}

/// A number that a network's origin holds.
fn number_in(file: &NetworkFile, key: &str) -> Option<u64> {
    file.origin.get(key)?.parse().ok()
}

fn window_options(config: &Config) -> WindowOptions {
    WindowOptions {
        games: config.train.window_games,
        validation_share: config.train.validation_share,
    }
}

fn check_rows(window: &Window, config: &Config) -> Result<(), TrainError> {
    let (rows, batch_size) = (window.training_rows(), config.train.batch_size);
    if rows >= u64::from(batch_size) {
        return Ok(());
    }
    Err(TrainError::TooFewRows {
        folder: window.folder().to_owned(),
        rows,
        games: window.training_games(),
        batch_size,
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
            return Err(TrainError::OtherArchitecture {
                key,
                configured,
                config: run.config(),
                file: file.to_owned(),
                found,
            });
        }
    }
    Ok(())
}

/// Names what has changed since a checkpoint was written, and refuses what may not.
fn check_changes(
    run: &RunDirectory,
    config: &Config,
    checkpoint: &Checkpoint,
) -> Result<(), TrainError> {
    let changes =
        changed(&checkpoint.header.config, config).map_err(|refusal| TrainError::Refused {
            config: run.config(),
            refusal,
        })?;
    for change in changes {
        say(&format!("changed since the last checkpoint: {change}"));
    }
    Ok(())
}
