//! The games for the next network: those that the trainer does not know yet.

use super::self_play_meter::SelfPlayMeter;
use super::selfplay::Workers;
use super::state::TrainingLoop;
use crate::error::TrainError;
use crate::terminal::grouped;
use crate::trainer::checkpoint;
use crate::trainer::metrics::LoopPhase;
use engine::config::LoopOrder;
use engine::progress::{Progress, say};
use engine::record::list_shards;
use engine::run::RunDirectory;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The player of the first games.
const UNIFORM: &str = "uniform";

/// The time between two looks for new shards.
const INTERVAL: Duration = Duration::from_secs(1);

/// What the trainer knows of a run.
#[derive(Debug, Default)]
struct Known {
    shards: HashSet<String>,
    /// The size of its window.
    window_rows: u64,
    /// Whether a generation is in training and not complete.
    is_training: bool,
}

/// Looks at the newest checkpoint. `trained` is the newest network that is complete.
fn known_to_the_trainer(run: &RunDirectory, trained: u32) -> Result<Known, TrainError> {
    let Some(checkpoint) = checkpoint::newest(&run.checkpoints())? else {
        return Ok(Known::default());
    };
    let state = &checkpoint.header.state;
    Ok(Known {
        shards: state.supply.shards.iter().cloned().collect(),
        window_rows: state.supply.window_rows,
        is_training: state.generation > trained,
    })
}

impl TrainingLoop {
    /// Provides enough new games for the next network: `times` times the configured number. A network in training began with the
    /// first of them.
    pub(super) fn provide_games(&mut self, trained: u32, times: u64) -> Result<(), TrainError> {
        let known = known_to_the_trainer(&self.run, trained)?;
        let times = times - u64::from(known.is_training);
        if times == 0 {
            return Ok(());
        }
        self.check_shards(&known)?;
        let is_first = self.is_without_network(trained);
        let wanted = u64::from(if is_first {
            self.config.training_loop.first_games
        } else {
            self.config.training_loop.games_per_generation
        })
        .saturating_mul(times);
        let there = self.count_new_games(&known)?;
        if there > 0 {
            say(&format!(
                "{} new games of {} already exist",
                grouped(there),
                grouped(wanted)
            ));
        }
        let generation = trained + 1;
        self.begin_phase(Some((LoopPhase::SelfPlay, generation)));
        match self.config.training_loop.order {
            LoopOrder::SideBySide if !is_first => self.wait(there, wanted, &known)?,
            LoopOrder::External => self.wait(there, wanted, &known)?,
            LoopOrder::InTurns | LoopOrder::SideBySide => {
                // Nothing is played between the generations.
                self.self_play = SelfPlayMeter::start(&self.run);
                self.play(is_first, there, wanted, &known)?;
            }
        }
        let games = self.count_new_games(&known)?;
        self.log_self_play(generation, games);
        Ok(())
    }

    /// Reads the shards that the trainer is going to read, each once: damage is an error before games are played.
    fn check_shards(&mut self, known: &Known) -> Result<(), TrainError> {
        if !self.run.shards().exists() {
            return Ok(());
        }
        let is_known = |name: &String| known.shards.contains(name);
        let (old, new): (Vec<String>, Vec<String>) =
            self.index.list()?.into_iter().partition(is_known);
        let read = self.index.count(&new).and_then(|_| {
            if old.is_empty() {
                Ok(())
            } else {
                self.index.window(&old, known.window_rows).map(drop)
            }
        });
        match read {
            // A generator has removed an old one.
            Err(error) if error.is_gone() => Ok(()),
            read => read,
        }
    }

    /// The games in the shards that the trainer does not know.
    fn count_new_games(&mut self, known: &Known) -> Result<u64, TrainError> {
        if !self.run.shards().exists() {
            return Ok(0);
        }
        let names = list_shards(&self.run.shards())?.into_keys();
        let names = names.map(|name| name.to_string());
        let new: Vec<String> = names.filter(|name| !known.shards.contains(name)).collect();
        Ok(self.index.count(&new)?.games)
    }

    /// Whether `uniform` plays the next games: a random first network is no stronger.
    pub(super) fn is_without_network(&self, trained: u32) -> bool {
        trained == 0 && !self.began_trained && self.config.training_loop.first_games > 0
    }

    /// Lets the newest network, or `uniform`, play the missing games.
    fn play(
        &mut self,
        is_first: bool,
        mut there: u64,
        wanted: u64,
        known: &Known,
    ) -> Result<(), TrainError> {
        let (name, player) = if is_first {
            (UNIFORM.to_owned(), UNIFORM.into())
        } else {
            let (generation, network) = self.newest()?;
            (format!("network {generation}"), network)
        };
        let workers = Workers {
            threads: self.workers.all_threads,
            ..self.workers.generator.clone()
        };
        // The other program may have been stopped alone: then games are missing.
        while there < wanted {
            self.wait_for_config()?;
            let missing = wanted - there;
            say(&format!("{name} plays {} games", grouped(missing)));
            self.selfplay
                .generate(&self.run, &player, missing, self.seed, &workers)?;
            if self.stop.is_requested() {
                return Err(TrainError::Stopped);
            }
            let now = self.count_new_games(known)?;
            if now <= there {
                return Err(TrainError::Other(format!(
                    "`selfplay generate` ended without an error, but {} has no more games than before: {} are missing",
                    self.run.shards().display(),
                    wanted - now
                )));
            }
            there = now;
        }
        Ok(())
    }

    /// Waits until the generator has played enough.
    fn wait(&mut self, mut there: u64, wanted: u64, known: &Known) -> Result<(), TrainError> {
        let mut progress = Progress::new("wait for new games", wanted);
        while there < wanted {
            self.workers_seen.look(&self.run, Instant::now());
            progress.show(there, || match &self.generator {
                Some(_) if self.workers_seen.counts().generators_running == 0 => {
                    "the generator starts".to_owned()
                }
                _ => self.workers_seen.in_words(),
            });
            if !self.stop.sleep(INTERVAL) {
                return Err(TrainError::Stopped);
            }
            there = self.count_new_games(known)?;
        }
        progress.finish(&format!("{} games", grouped(there)));
        Ok(())
    }
}
