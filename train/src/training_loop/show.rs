//! Games to show: one of each network, without noise.

use super::state::{LoopFlow, TrainingLoop};
use crate::error::TrainError;
use engine::config::AutoOr;
use engine::progress::say;
use engine::record::{ShardReader, list_shards};
use engine::run::network_name;

impl TrainingLoop {
    /// Lets the newest network play a game to be shown, unless it has played one.
    pub(super) fn show(&self) -> Result<(), TrainError> {
        let evaluations = match self.config.training_loop.show_evaluations {
            AutoOr::Fixed(evaluations) => evaluations,
            AutoOr::Auto => self.config.selfplay.evaluations.saturating_mul(10),
        };
        let (generation, path) = self.newest()?;
        if evaluations == 0 || generation == 0 || self.has_shown(generation)? {
            return Ok(());
        }
        if self.wait_for_config()? == LoopFlow::Stop {
            return Ok(());
        }
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
