//! The players that searches may use, and their evaluators: the built-in network, those of the run, and `material`.

use super::error::{ApiError, ApiResult};
use crate::worker::devices::Devices;
use crate::worker::player::{Player, PlayerName};
use anyhow::Result;
use engine::config::SearchConfig;
use engine::run::{RunDirectory, network_name};
use engine::search::Evaluator;
use network::NetworkSource;
use std::sync::{Mutex, PoisonError};

const MATERIAL: &str = "material";

/// Evaluators that wait for the next search.
const MAX_IDLE: usize = 4;

/// An evaluator, and the name of its player.
struct NamedEvaluator {
    player: String,
    evaluator: Box<dyn Evaluator>,
}

/// The players of a server.
pub(super) struct Players {
    run: Option<RunDirectory>,
    devices: Devices,
    threads: usize,
    search: SearchConfig,
    idle: Mutex<Vec<NamedEvaluator>>,
}

impl Players {
    pub(super) fn new(
        run: Option<RunDirectory>,
        devices: Devices,
        threads: usize,
        search: SearchConfig,
    ) -> Self {
        Self {
            run,
            devices,
            threads,
            search,
            idle: Mutex::default(),
        }
    }

    /// The settings of searches.
    pub(super) fn search(&self) -> &SearchConfig {
        &self.search
    }

    /// The names of all players.
    pub(super) fn names(&self) -> Vec<String> {
        let networks = self
            .run
            .as_ref()
            .map(|run| run.find_networks().unwrap_or_default().0);
        let networks = networks.into_iter().flatten().rev();
        let named = networks.map(|(generation, _)| network_name(generation));
        let built_in = std::iter::once(NetworkSource::BUILT_IN.to_owned());
        built_in.chain(named).chain([MATERIAL.to_owned()]).collect()
    }

    /// Refuses a name that is no player's: searches never open another file.
    fn find(&self, player: &str) -> ApiResult<PlayerName> {
        let unknown = || {
            ApiError::missing(format!(
                "there is no player {player}: GET /api/about lists them"
            ))
        };
        match player {
            NetworkSource::BUILT_IN => Ok(PlayerName::BUILT_IN),
            MATERIAL => Ok(PlayerName::Material),
            _ => {
                let run = self.run.as_ref().ok_or_else(unknown)?;
                let (networks, _) = run.find_networks().map_err(ApiError::failed)?;
                let found = networks
                    .into_iter()
                    .find(|(generation, _)| network_name(*generation) == player);
                found
                    .map(|(_, path)| PlayerName::of_file(path))
                    .ok_or_else(unknown)
            }
        }
    }

    /// Checks that there is such a player.
    pub(super) fn check(&self, player: &str) -> ApiResult<()> {
        self.find(player).map(|_| ())
    }

    /// Works with an evaluator of a player. The evaluator is kept for later work, unless this work fails: then it may be unusable.
    pub(super) fn with<T>(
        &self,
        player: &str,
        work: impl FnOnce(&mut dyn Evaluator) -> Result<T>,
    ) -> ApiResult<T> {
        let mut evaluator = self.open(player)?;
        let done = work(evaluator.evaluator.as_mut())?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MAX_IDLE {
            idle.remove(0);
        }
        idle.push(evaluator);
        Ok(done)
    }

    /// An evaluator of a player: an idle one, or a new one.
    fn open(&self, player: &str) -> ApiResult<NamedEvaluator> {
        let name = self.find(player)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = idle.iter().position(|one| one.player == player) {
            return Ok(idle.swap_remove(index));
        }
        drop(idle);
        let evaluator = Player::open_alone(&name, &self.devices, self.threads)?;
        let evaluator =
            evaluator.ok_or_else(|| ApiError::wrong(format!("{player} doesn't search")))?;
        Ok(NamedEvaluator {
            player: player.to_owned(),
            evaluator,
        })
    }
}
