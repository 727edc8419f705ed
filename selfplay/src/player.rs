//! Who plays: a network, or one of the players that need none.

use crate::cache::{CachedLine, EvaluationCache};
use crate::line::{Line, LocalLine};
use anyhow::Result;
use engine::network::{Architecture, Device, Network, NetworkEvaluator, Precision};
use engine::search::{Evaluator, Material, Null, Uniform};
use engine::shard;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Random networks of one size are all the same network.
const RANDOM_NETWORK_SEED: u64 = 0;

/// A player as named on the command line: `uniform`, `material`, `random`, or else a network's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlayerName {
    /// Searches without knowing anything: all steps equally likely, every position even.
    Uniform,
    /// Searches by what is counted by hand: pieces, traps, rabbits on their way.
    Material,
    /// Takes any legal step, without a search.
    Random,
    /// Searches with a network.
    Network(PathBuf),
    /// Searches with a random network of this size. It and the next are measured only: they have no name on the command line.
    RandomNetwork(Architecture),
    /// Does everything that a player with a network does but for the network.
    Null,
}

impl FromStr for PlayerName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "uniform" => Self::Uniform,
            "material" => Self::Material,
            "random" => Self::Random,
            path => Self::Network(path.into()),
        })
    }
}

impl fmt::Display for PlayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Material => f.write_str("material"),
            Self::Random => f.write_str("random"),
            Self::Network(path) => write!(f, "{}", path.display()),
            Self::RandomNetwork(Architecture { blocks, channels }) => {
                write!(f, "random:{blocks}x{channels}")
            }
            Self::Null => f.write_str("null"),
        }
    }
}

/// A player that has been found and checked.
#[derive(Debug, Clone)]
pub(crate) struct Player {
    name: PlayerName,
    device: Device,
    identity: String,
}

impl Player {
    /// Checks that the player can play: a network is loaded once, whole.
    pub(crate) fn open(name: &PlayerName, device: Device) -> Result<Self> {
        // A device that is asked for and missing is an error, whoever plays.
        device.open()?;
        let identity = match name {
            PlayerName::Network(path) => Network::load(path)?.identity,
            PlayerName::RandomNetwork(architecture) => {
                Network::new(*architecture, RANDOM_NETWORK_SEED)?;
                name.to_string()
            }
            other => other.to_string(),
        };
        Ok(Self {
            name: name.clone(),
            device,
            identity,
        })
    }

    /// Its name and identity, as shards hold them.
    pub(crate) fn shard_evaluator(&self) -> shard::Evaluator {
        shard::Evaluator {
            name: self.short_name(),
            identity: self.identity.clone(),
        }
    }

    /// A network's file name without folder and ending; else the name itself.
    pub(crate) fn short_name(&self) -> String {
        match &self.name {
            PlayerName::Network(path) => path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            other => other.to_string(),
        }
    }

    /// A line to its evaluator for one thread, behind a cache if there is one; none for a player that doesn't search.
    pub(crate) fn line(
        &self,
        cache: Option<&Arc<EvaluationCache>>,
    ) -> Result<Option<Box<dyn Line>>> {
        let Some(evaluator) = self.evaluator()? else {
            return Ok(None);
        };
        let line = Box::new(LocalLine::new(evaluator));
        Ok(Some(match cache {
            Some(cache) => Box::new(CachedLine::new(line, Arc::clone(cache), &self.identity)),
            None => line,
        }))
    }

    /// An evaluator for one thread; none for a player that doesn't search.
    pub(crate) fn evaluator(&self) -> Result<Option<Box<dyn Evaluator>>> {
        Ok(match &self.name {
            PlayerName::Random => None,
            PlayerName::Uniform => Some(Box::new(Uniform)),
            PlayerName::Material => Some(Box::new(Material::default())),
            PlayerName::Null => Some(Box::new(Null::default())),
            PlayerName::Network(path) => Some(self.network(&Network::load(path)?.network)?),
            PlayerName::RandomNetwork(architecture) => {
                Some(self.network(&Network::new(*architecture, RANDOM_NETWORK_SEED)?)?)
            }
        })
    }

    fn network(&self, network: &Network) -> Result<Box<dyn Evaluator>> {
        let name = self.short_name();
        let evaluator = NetworkEvaluator::new(network, self.device, Precision::Auto, name)?;
        Ok(Box::new(evaluator))
    }
}
