//! Games to show: one of each network, without noise.

use super::state::TrainingLoop;
use crate::error::TrainError;
use engine::config::{AutoOr, Config};
use engine::progress::say;
use engine::record::{ShardReader, list_shards};
use engine::run::network_name;

impl TrainingLoop {
    /// Lets the newest network play a game to be shown, unless it has played one.
    pub(super) fn show(&self) -> Result<(), TrainError> {
        let wanted = self.config.training_loop.show_evaluations;
        let (generation, path) = self.newest()?;
        if wanted == AutoOr::Fixed(0) || generation == 0 || self.has_shown(generation)? {
            return Ok(());
        }
        self.wait_for_config()?;
        let evaluations = match wanted {
            AutoOr::Fixed(evaluations) => evaluations,
            // The game has everything else from the file as it is now.
            AutoOr::Auto => {
                let config = Config::load(&self.run.config())?;
                config.selfplay.evaluations.saturating_mul(10)
            }
        };
        say(&format!("network {generation} plays a game to be shown"));
        let (run, workers) = (&self.run, &self.workers.matches);
        self.selfplay
            .show(run, &path, evaluations, generation.into(), workers)
    }

    /// Whether a network's game is there. One in a damaged shard is played again.
    fn has_shown(&self, generation: u32) -> Result<bool, TrainError> {
        if !self.run.show().exists() {
            return Ok(false);
        }
        let name = network_name(generation);
        let shards = list_shards(&self.run.show())?;
        let mut shards = shards.into_values().rev();
        Ok(shards.any(|path| {
            ShardReader::open(path).is_ok_and(|shard| shard.header().evaluator.name == name)
        }))
    }
}
