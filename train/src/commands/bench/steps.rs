//! The speed of training on batches in memory.

use crate::commands::info::file::flop_per_evaluation;
use crate::data::{Batch, GameRows, RowRef, TargetOptions};
use crate::error::TrainError;
use crate::terminal::grouped;
use crate::trainer::step::Trainer;
use engine::config::Config;
use engine::record::{GameId, samples::random_game};
use network::{Device, Network};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Batches that are used in turn.
const BATCHES: usize = 4;

/// Steps before the measurement: memory is taken, kernels are chosen.
const WARM_UP: u64 = 3;

/// Turns of a random game, at most.
const GAME_TURNS: usize = 60;

/// The measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TrainingSpeed {
    /// Blocks and channels: `6x64`.
    pub(super) network: String,
    /// Rows a step.
    pub(super) batch_size: u32,
    /// The device.
    pub(super) device: String,
    /// Steps that were timed.
    pub(super) steps: u64,
    /// The time of them.
    pub(super) seconds: f64,
    /// Rows trained on a second.
    pub(super) rows_per_second: f64,
    /// Floating-point operations a second of the forward and the backward pass, in units of 10⁹: three times those of an evaluation
    /// for each row, an addition and a multiplication each counting one.
    pub(super) gflops: f64,
}

/// Trains a new network on batches in memory, for about so long. The measurement covers everything from packed rows to the average
/// of the weights. Rows and weights don't matter for the speed.
pub(super) fn measure(
    config: &Config,
    device: Device,
    time: Duration,
) -> Result<TrainingSpeed, TrainError> {
    let batch_size = config.train.batch_size;
    let games = games(batch_size as usize, (&config.train).into())?;
    let rows = games.iter().flat_map(GameRows::rows);
    let rows: Vec<RowRef> = rows.take(batch_size as usize).collect();
    let batches: Vec<Batch> = (0..BATCHES)
        .map(|number| {
            let rows = rows.iter().enumerate();
            let rows = rows.map(|(index, row)| row.mirrored((index + number).is_multiple_of(2)));
            Batch::new(&rows.collect::<Vec<_>>())
        })
        .collect();
    let network = Network::new(config.network.into(), 0)?;
    let flop = flop_per_evaluation(&network) as f64;
    let mut trainer = Trainer::new(&network, config.train.clone(), device.open()?)?;
    let mut batches = batches.iter().cycle();
    let mut step = || match batches.next() {
        // Each step reads its losses, and so waits for the device.
        Some(batch) => trainer.step(batch).map(drop),
        None => Ok(()),
    };
    for _ in 0..WARM_UP {
        step()?;
    }
    let begun = Instant::now();
    let mut steps = 0;
    while begun.elapsed() < time {
        step()?;
        steps += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rows_per_second = steps as f64 * f64::from(batch_size) / seconds;
    Ok(TrainingSpeed {
        network: format!("{}x{}", config.network.blocks, config.network.channels),
        batch_size,
        device: device.to_string(),
        steps,
        seconds,
        rows_per_second,
        gflops: 3.0 * flop * rows_per_second / 1e9,
    })
}

impl fmt::Display for TrainingSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {}, batches of {} rows: {} steps in {:.1} s",
            self.network, self.device, self.batch_size, self.steps, self.seconds
        )?;
        let rows = grouped(self.rows_per_second.round() as u64);
        writeln!(f, "rows/s         {rows}")?;
        write!(f, "GFLOP/s        {:.0}", self.gflops)
    }
}

/// Random games of at least so many rows.
fn games(rows: usize, targets: TargetOptions) -> Result<Vec<GameRows>, TrainError> {
    let mut games: Vec<GameRows> = Vec::new();
    for counter in 0.. {
        let id = GameId {
            generator: 0,
            counter,
        };
        let game = random_game(id, 0, GAME_TURNS);
        let game = GameRows::all(&game, targets).map_err(|error| TrainError::Game {
            path: "a random game".into(),
            offset: 0,
            error,
        })?;
        games.push(game);
        if games.iter().map(GameRows::len).sum::<usize>() >= rows {
            break;
        }
    }
    Ok(games)
}
