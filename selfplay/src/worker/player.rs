//! Players: a network, or a player without one.

use crate::worker::channel::{EvaluationChannel, LocalChannel};
use crate::worker::devices::{Devices, note};
use crate::worker::parallel::ParallelEvaluator;
use anyhow::{Context, Result, bail};
use engine::record;
use engine::search::{Evaluator, Material, Null, Uniform};
use network::{
    Architecture, Device, EvaluationService, Network, NetworkEvaluator, NetworkSource,
    ServedNetwork, ServiceDevice,
};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Random networks of one size are all the same network.
const RANDOM_NETWORK_SEED: u64 = 0;

/// The fewest queries for each of several threads: a CPU evaluates a batch of 2 in the time of two batches of 1.
const MIN_PART: usize = 2;

/// The prefix of a network that plays without a search.
const POLICY: &str = "policy:";

/// The prefix of an external engine's command.
const AEI: &str = "aei:";

/// A player as named on the command line: `uniform`, `material`, `random`, `policy:` with a network, `aei:` with a command, or else a
/// network: `tusker`, or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlayerName {
    /// Searches with equal priors and equal values.
    Uniform,
    /// Searches with a hand-made evaluator: pieces, traps, advanced rabbits.
    Material,
    /// Takes any legal step, without a search.
    Random,
    /// Searches with a network.
    Network(NetworkSource),
    /// Plays a network's policy, without a search.
    Policy(NetworkSource),
    /// An external engine, started by this command. It plays in matches alone.
    Engine(String),
    /// Searches with a random network of this size. It and the next are measured only: they have no name on the command line.
    RandomNetwork(Architecture),
    /// Does everything that a player with a network does, except the evaluation.
    Null,
}

impl FromStr for PlayerName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "uniform" => Self::Uniform,
            "material" => Self::Material,
            "random" => Self::Random,
            other => match (other.strip_prefix(POLICY), other.strip_prefix(AEI)) {
                (Some(network), _) => Self::Policy(network.parse()?),
                (None, Some(command)) => Self::Engine(command.into()),
                (None, None) => Self::Network(other.parse()?),
            },
        })
    }
}

impl fmt::Display for PlayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Material => f.write_str("material"),
            Self::Random => f.write_str("random"),
            Self::Network(network) => network.fmt(f),
            Self::Policy(network) => write!(f, "{POLICY}{network}"),
            Self::Engine(command) => write!(f, "{AEI}{command}"),
            Self::RandomNetwork(Architecture { blocks, channels }) => {
                write!(f, "random:{blocks}x{channels}")
            }
            Self::Null => f.write_str("null"),
        }
    }
}

impl PlayerName {
    /// Searches with the network that is built into the program.
    pub(crate) const BUILT_IN: Self = Self::Network(NetworkSource::BuiltIn);

    /// Searches with the network of a file.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self::Network(NetworkSource::File(path))
    }

    /// Why the player has no search of its own, if it has none.
    pub(crate) fn without_search(&self) -> Option<&'static str> {
        match self {
            Self::Random => Some("`random` doesn't search"),
            Self::Policy(_) => Some("the policy of a network plays without a search"),
            Self::Engine(_) => {
                Some("an external engine plays in matches alone, with its own options and a clock")
            }
            _ => None,
        }
    }
}

/// A player that has been found and checked.
#[derive(Debug, Clone)]
pub(crate) struct Player {
    name: PlayerName,
    devices: Devices,
    identity: String,
    /// How its network is computed, by device.
    forms: Vec<ServiceDevice>,
    leaves_at_once: u32,
    /// The network in the evaluation service; none if each worker has an evaluator of its own.
    served: Option<Arc<ServedNetwork>>,
}

impl Player {
    /// Checks that the player can play, for many workers: a network is loaded, and its computed form is compared with the exact one. On
    /// GPUs it is loaded into the service that evaluates for all workers.
    pub(crate) fn open(name: &PlayerName, devices: &Devices) -> Result<Self> {
        if let (PlayerName::Engine(_), Some(reason)) = (name, name.without_search()) {
            bail!("{name}: {reason}");
        }
        let mut player = Self::named(name, devices)?;
        let Some((network, identity)) = load(name)? else {
            return Ok(player);
        };
        player.identity = identity;
        if devices.is_local() {
            // Every worker will make its own. Errors and notes are reported now.
            let evaluator = player.network(&network)?;
            evaluator.notes().iter().for_each(|found| note(found));
            player.leaves_at_once = evaluator.leaves_at_once();
            player.forms = vec![ServiceDevice {
                device: Device::Cpu,
                precision: evaluator.precision(),
                drift: evaluator.drift(),
                tuning: None,
            }];
        } else {
            let served = player.load_into_service(&network)?;
            player.forms = served.devices().to_vec();
            player.leaves_at_once = served.client().leaves_at_once();
            player.served = Some(served);
        }
        Ok(player)
    }

    /// An external engine that was started and answers as `identity`.
    pub(crate) fn of_engine(name: &PlayerName, devices: &Devices, identity: &str) -> Self {
        Self {
            name: name.clone(),
            devices: devices.clone(),
            identity: format!("{name} ({identity})"),
            forms: Vec::new(),
            leaves_at_once: 1,
            served: None,
        }
    }

    fn load_into_service(&self, network: &Network) -> Result<Arc<ServedNetwork>> {
        let service = self.devices.service()?;
        Ok(service.load(network, self.devices.precision, self.short_name())?)
    }

    /// An evaluator for a single search; none for a player that doesn't search. On a CPU a network is evaluated on so many
    /// threads, the calling one among them: each has a copy of its own, and batches are divided. A GPU gets whole batches. `material`
    /// and `uniform` stay on one thread: they are faster than a message to another. [`leaves_at_once`](Evaluator::leaves_at_once) is the
    /// best number of leaves in a batch.
    pub(crate) fn open_alone(
        name: &PlayerName,
        devices: &Devices,
        threads: usize,
    ) -> Result<Option<Box<dyn Evaluator>>> {
        if let (PlayerName::Policy(_) | PlayerName::Engine(_), Some(reason)) =
            (name, name.without_search())
        {
            bail!("{name}: {reason}");
        }
        let player = Self::named(name, devices)?;
        let Some((network, _)) = load(name)? else {
            return player.evaluator();
        };
        if !devices.is_local() {
            return Ok(Some(Box::new(player.load_into_service(&network)?.client())));
        }
        let first = player.network(&network)?;
        first.notes().iter().for_each(|found| note(found));
        if threads <= 1 {
            return Ok(Some(Box::new(first)));
        }
        // The precision is known: the other threads need not test the network again.
        let devices = Devices::of(devices.list.clone(), first.precision());
        let player = Self::named(name, &devices)?;
        let mut evaluators: Vec<Box<dyn Evaluator>> = vec![Box::new(first)];
        for evaluator in player.networks(threads - 1)? {
            evaluators.push(Box::new(evaluator));
        }
        Ok(Some(Box::new(ParallelEvaluator::new(
            evaluators, MIN_PART,
        )?)))
    }

    /// So many evaluators of the player's network, made at the same time.
    fn networks(&self, count: usize) -> Result<Vec<NetworkEvaluator>> {
        let make = || match load(&self.name)? {
            Some((network, _)) => self.network(&network),
            None => bail!("{}: this player has no network", self.name),
        };
        std::thread::scope(|scope| {
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, make);
            let started: io::Result<Vec<_>> = (0..count).map(start).collect();
            let threads = started.with_context(|| {
                format!("can't start {count} more threads for the network; use fewer threads")
            })?;
            let made = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| bail!("{}: preparing the network panicked", self.name))
            });
            made.collect()
        })
    }

    fn named(name: &PlayerName, devices: &Devices) -> Result<Self> {
        // A missing device is an error for every player.
        for device in &devices.list {
            device.open()?;
        }
        Ok(Self {
            name: name.clone(),
            devices: devices.clone(),
            identity: name.to_string(),
            forms: Vec::new(),
            leaves_at_once: 1,
            served: None,
        })
    }

    /// How its network is computed, by device; nothing for a player without one.
    pub(crate) fn forms(&self) -> &[ServiceDevice] {
        &self.forms
    }

    /// How many leaves of a single search are best evaluated together, on one thread or by the service.
    pub(crate) fn leaves_at_once(&self) -> u32 {
        self.leaves_at_once
    }

    /// The service that evaluates it; none if each worker has an evaluator of its own.
    pub(crate) fn service(&self) -> Option<&EvaluationService> {
        Some(self.served.as_deref()?.service())
    }

    /// Its identity, independent of file names: a network's hash, or the name of a player without one.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The devices that evaluate its network.
    pub(crate) fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Its name and identity, as shards hold them.
    pub(crate) fn shard_evaluator(&self) -> record::EvaluatorId {
        record::EvaluatorId {
            name: self.short_name(),
            identity: self.identity.clone(),
        }
    }

    /// A network's file name without folder and ending; else the name itself.
    pub(crate) fn short_name(&self) -> String {
        match &self.name {
            PlayerName::Network(network) => network.short_name(),
            PlayerName::Policy(network) => format!("{POLICY}{}", network.short_name()),
            PlayerName::Engine(command) => {
                let program = command.split_whitespace().next().unwrap_or_default();
                let name = Path::new(program).file_stem().unwrap_or_default();
                format!("{AEI}{}", name.to_string_lossy())
            }
            other => other.to_string(),
        }
    }

    /// A channel to its evaluator for one thread; none for a player that needs none.
    pub(crate) fn channel(&self) -> Result<Option<Box<dyn EvaluationChannel>>> {
        if let Some(network) = &self.served {
            return Ok(Some(Box::new(network.client())));
        }
        let evaluator = self.evaluator()?;
        Ok(evaluator
            .map(|evaluator| Box::new(LocalChannel::new(evaluator)) as Box<dyn EvaluationChannel>))
    }

    /// An evaluator for the calling thread; none for a player that needs none.
    pub(crate) fn evaluator(&self) -> Result<Option<Box<dyn Evaluator>>> {
        if let Some(network) = &self.served {
            return Ok(Some(Box::new(network.client())));
        }
        Ok(match &self.name {
            PlayerName::Random | PlayerName::Engine(_) => None,
            PlayerName::Uniform => Some(Box::new(Uniform)),
            PlayerName::Material => Some(Box::new(Material::default())),
            PlayerName::Null => Some(Box::new(Null::default())),
            PlayerName::Network(_) | PlayerName::Policy(_) | PlayerName::RandomNetwork(_) => {
                match load(&self.name)? {
                    Some((network, _)) => Some(Box::new(self.network(&network)?)),
                    None => None,
                }
            }
        })
    }

    fn network(&self, network: &Network) -> Result<NetworkEvaluator> {
        let precision = self.devices.precision;
        Ok(NetworkEvaluator::new(
            network,
            precision,
            self.short_name(),
        )?)
    }
}

/// A player's network, and the identity of it; nothing for a player without one.
fn load(name: &PlayerName) -> Result<Option<(Network, String)>> {
    Ok(match name {
        PlayerName::Network(network) | PlayerName::Policy(network) => {
            let file = network.load()?;
            Some((file.network, file.identity))
        }
        PlayerName::RandomNetwork(architecture) => Some((
            Network::with_random_heads(*architecture, RANDOM_NETWORK_SEED)?,
            name.to_string(),
        )),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::current_player::LoadedPlayer;
    use crate::generate::starts::Starts;
    use crate::generate::worker::GenerationTask;
    use engine::config::Config;
    use engine::record::GameRecord;
    use network::Precision;
    use std::sync::mpsc::channel;

    fn devices(device: Device) -> Devices {
        Devices::of(vec![device], Precision::Fp32)
    }

    /// Plays a few games on two workers.
    fn play(player: Player) -> Vec<GameRecord> {
        let mut config = Config::default();
        config.selfplay.evaluations = 16;
        config.selfplay.max_turns = 20;
        let starts = Starts::open(&config.selfplay.openings, None).unwrap();
        let loaded = LoadedPlayer::new(player, 2).unwrap();
        let mut work = GenerationTask::new(config, loaded, starts, 2);
        (work.seed, work.games) = (3, 6);
        let (finished, records) = channel();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| work.run(&finished.clone()).unwrap());
            }
        });
        drop(finished);
        let mut records: Vec<GameRecord> = records.into_iter().collect();
        records.sort_by_key(|record| record.id.counter);
        records
    }

    /// As on a GPU, but on the CPU.
    #[test]
    fn a_service_evaluates_for_all_workers() {
        // A new network finds all steps equally likely, in whatever way it is computed: the games are the same.
        let architecture = Architecture {
            blocks: 1,
            channels: 8,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.safetensors");
        let network = Network::new(architecture, 0).unwrap();
        network.save(&path, &Default::default()).unwrap();
        let name = PlayerName::of_file(path);
        let here = devices(Device::Cpu);
        let local = Player::open(&name, &here).unwrap();
        let there = devices(Device::CpuService);
        let served = Player::open(&name, &there).unwrap();
        assert!(local.service().is_none() && served.service().is_some());
        let service = there.service().unwrap();
        assert_eq!(service.device_counters().len(), 1);
        let (local, served) = (play(local), play(served));
        assert_eq!((local.len(), served.len()), (6, 6));
        for record in &served {
            engine::record::replay(record).unwrap();
        }
        assert_eq!(local, served);
        let rows: u64 = service
            .device_counters()
            .iter()
            .map(|device| device.rows)
            .sum();
        assert!(rows > 1_000, "{rows}");
    }

    #[test]
    fn a_missing_device_is_an_error_for_every_player() {
        let missing = devices(Device::Cuda(900));
        let architecture = Architecture {
            blocks: 1,
            channels: 8,
        };
        for name in [PlayerName::Uniform, PlayerName::RandomNetwork(architecture)] {
            let error = Player::open(&name, &missing).unwrap_err().to_string();
            assert!(error.contains("device cuda:900"), "{error}");
        }
    }
}
