//! The loop of one run: its parts, and its newest networks.

use super::child::BackgroundProcess;
use super::page::Page;
use super::self_play_meter::SelfPlayMeter;
use super::selfplay::{Selfplay, Workers};
use crate::commands::run::Workplace;
use crate::data::Index;
use crate::error::TrainError;
use crate::ratings::clock::TrainingClock;
use crate::trainer::metrics::LoopPhase;
use crate::trainer::workers_seen::WorkersSeen;
use engine::config::{Config, LoopOrder};
use engine::run::RunDirectory;
use engine::stop::Stop;
use network::Device;
use std::path::PathBuf;
use std::time::Instant;

/// The loop of one run.
pub(super) struct TrainingLoop {
    pub(super) run: RunDirectory,
    pub(super) config: Config,
    pub(super) seed: u64,
    /// Whether the first network was trained elsewhere.
    pub(super) began_trained: bool,
    pub(super) workplace: Workplace,
    pub(super) workers: LoopWorkers,
    pub(super) selfplay: Selfplay,
    /// The generator that plays beside the trainer.
    pub(super) generator: Option<BackgroundProcess>,
    pub(super) page: Option<Page>,
    pub(super) workers_seen: WorkersSeen,
    /// The shards that were read.
    pub(super) index: Index,
    pub(super) clock: TrainingClock,
    /// What the loop does now.
    pub(super) phase: Option<CurrentPhase>,
    pub(super) self_play: SelfPlayMeter,
    pub(super) stop: Stop,
}

/// The phase that the loop is in.
#[derive(Debug)]
pub(super) struct CurrentPhase {
    pub(super) phase: LoopPhase,
    pub(super) generation: u32,
    pub(super) begun: Instant,
}

/// The devices and threads of the loop's parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopWorkers {
    pub(super) all_threads: usize,
    pub(super) generator: Workers,
    /// The trainer has the same threads.
    pub(super) matches: Workers,
}

impl LoopWorkers {
    /// In turns, each part has all threads; side by side they share them, at least one each.
    pub(super) fn new(config: &Config, workplace: Workplace, generator_devices: &[Device]) -> Self {
        let all = workplace.thread_count();
        let (generator, own) = match config.training_loop.order {
            LoopOrder::InTurns | LoopOrder::External => (all, all),
            LoopOrder::SideBySide => {
                let share = config.training_loop.generator_threads.fixed();
                let share = share.map_or(all / 2, |threads| threads as usize).max(1);
                (share, all.saturating_sub(share).max(1))
            }
        };
        let own_device = workplace.device.to_string();
        let devices: Vec<String> = generator_devices.iter().map(Device::to_string).collect();
        Self {
            all_threads: all,
            generator: Workers {
                devices: if devices.is_empty() {
                    own_device.clone()
                } else {
                    devices.join(",")
                },
                threads: generator,
            },
            matches: Workers {
                devices: own_device,
                threads: own,
            },
        }
    }
}

impl TrainingLoop {
    /// The newest network that plays.
    pub(super) fn newest(&self) -> Result<(u32, PathBuf), TrainError> {
        let newest = self.run.list_networks()?.pop();
        newest.ok_or_else(|| TrainError::NoRun {
            path: self.run.root().to_owned(),
            missing: "network",
        })
    }

    /// The last trained generation; its network may be rejected.
    pub(super) fn trained(&self) -> Result<u32, TrainError> {
        let newest = self.run.newest_trained()?;
        Ok(newest.map_or(0, |(generation, _)| generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_shared_out_only_side_by_side() {
        let workplace = |threads| Workplace {
            device: Device::Cpu,
            threads: Some(threads),
        };
        let shares = |settings: &[&str], threads| {
            let set = |config: Config, setting: &&str| config.with(setting).unwrap();
            let config = settings.iter().fold(Config::default(), set);
            let workers = LoopWorkers::new(&config, workplace(threads), &[]);
            (workers.generator.threads, workers.matches.threads)
        };
        assert_eq!(shares(&[], 5), (5, 5));
        let side = "loop.order=side_by_side";
        assert_eq!(shares(&[side], 5), (2, 3));
        assert_eq!(shares(&[side], 1), (1, 1));
        assert_eq!(shares(&[side, "loop.generator_threads=4"], 5), (4, 1));
        assert_eq!(shares(&[side, "loop.generator_threads=9"], 5), (9, 1));
        let devices = [Device::Cuda(1), Device::Cuda(2)];
        let workers = LoopWorkers::new(&Config::default(), workplace(2), &devices);
        assert_eq!(workers.generator.devices, "cuda:1,cuda:2");
        assert_eq!(workers.matches.devices, "cpu");
    }
}
