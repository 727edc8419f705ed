//! The program `selfplay`: finding and running it.

use super::child::{self, BackgroundProcess};
use crate::error::TrainError;
use crate::ratings::{MatchResult, Player};
use engine::config::{Config, PlayerSpec};
use engine::run::RunDirectory;
use engine::stop::{Stop, StopArguments};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The generator's name in errors.
const GENERATE: &str = "selfplay generate";

/// The time that the page's server has to end.
const PAGE_END_TIME: Duration = Duration::from_secs(5);

/// The settings of a game that is played as well as the network can.
const WITHOUT_NOISE: [&str; 11] = [
    "selfplay.exploration.temperature=0",
    "selfplay.exploration.final_temperature=0",
    "selfplay.exploration.dirichlet_share=0",
    "selfplay.exploration.gumbel_noise=0",
    "selfplay.openings.policy_share=0",
    "selfplay.openings.fork_share=0",
    "selfplay.openings.file_share=0",
    "selfplay.openings.sparse_share=0",
    "selfplay.handicap.share=0",
    "selfplay.soft_resignation.turns=0",
    "selfplay.resignation.turns=0",
];

/// The program `selfplay`.
#[derive(Debug)]
pub(super) struct Selfplay {
    path: PathBuf,
    stop: Stop,
    stop_arguments: StopArguments,
}

/// Its devices and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workers {
    /// Its option `--device`.
    pub(super) devices: String,
    /// Its option `--threads`.
    pub(super) threads: usize,
}

/// A match of a run's network.
#[derive(Debug, Clone)]
pub(super) struct Match {
    /// The network's file.
    pub(super) network: PathBuf,
    /// Its opponent.
    pub(super) opponent: Player,
    /// How many games, an even number.
    pub(super) games: u32,
    /// The seed of the setups.
    pub(super) seed: u64,
}

impl Selfplay {
    /// Finds the program beside this one.
    pub(super) fn find(stop: Stop, stop_arguments: StopArguments) -> Result<Self, TrainError> {
        let name = format!("selfplay{}", std::env::consts::EXE_SUFFIX);
        let own = std::env::current_exe()
            .map_err(TrainError::io("find", "this program's own file".as_ref()))?;
        let path = own.with_file_name(name);
        if !path.is_file() {
            return Err(TrainError::Other(format!(
                "{} not found: `train loop` starts the program `selfplay` from its own folder; build it with `cargo build --release`",
                path.display()
            )));
        }
        Ok(Self {
            path,
            stop,
            stop_arguments,
        })
    }

    /// Lets a player, a network's file or `uniform`, play games into the run's shards.
    pub(super) fn generate(
        &self,
        run: &RunDirectory,
        player: &Path,
        games: u64,
        seed: u64,
        workers: &Workers,
    ) -> Result<(), TrainError> {
        let mut command = self.generation(run, seed, workers);
        command.arg("--network").arg(player);
        command.args(["--games", &games.to_string()]);
        child::run(&mut command, GENERATE, &self.stop)?;
        Ok(())
    }

    /// Lets the run's newest network play, and each newer one in its turn, until the generator's end is requested.
    pub(super) fn start_generator(
        &self,
        run: &RunDirectory,
        seed: u64,
        workers: &Workers,
    ) -> Result<BackgroundProcess, TrainError> {
        let mut command = self.generation(run, seed, workers);
        BackgroundProcess::start(&mut command, GENERATE, self.stop.clone(), None)
    }

    /// Lets a network play one game with itself without noise, into the run's folder `show`.
    pub(super) fn show(
        &self,
        run: &RunDirectory,
        network: &Path,
        evaluations: u32,
        seed: u64,
        workers: &Workers,
    ) -> Result<(), TrainError> {
        let mut command = self.command("generate", workers);
        command.arg("--out").arg(run.show());
        command.arg("--config").arg(run.config());
        command.arg("--network").arg(network);
        command.args(["--games", "1", "--seed", &seed.to_string()]);
        let evaluations = format!("selfplay.evaluations={evaluations}");
        for setting in WITHOUT_NOISE.into_iter().chain([evaluations.as_str()]) {
            command.args(["--set", setting]);
        }
        child::run(&mut command, GENERATE, &self.stop)?;
        Ok(())
    }

    /// Serves the page of the run at an address until the server is dropped. `ended` is requested if it ends before.
    pub(super) fn start_page(
        &self,
        run: &RunDirectory,
        address: &str,
        ended: Stop,
    ) -> Result<BackgroundProcess, TrainError> {
        let mut command = Command::new(&self.path);
        command.arg("serve").arg("--run").arg(run.root());
        command.args(["--address", address]);
        BackgroundProcess::start(&mut command, "selfplay serve", ended, Some(PAGE_END_TIME))
    }

    /// Plays a match, or resumes it. Returns its result, and the same as JSON.
    pub(super) fn pit(
        &self,
        run: &RunDirectory,
        config: &Config,
        pit: &Match,
        workers: &Workers,
    ) -> Result<(MatchResult, String), TrainError> {
        let mut command = self.command("pit", workers);
        let network = PlayerSpec::of(pit.network.to_string_lossy());
        command.args(["--a", &network.to_string()]);
        command.args(["--b", &pit.opponent.spec(run).to_string()]);
        command.arg("--config").arg(run.config());
        command.arg("--out").arg(run.pit());
        command.arg("--resume=or-begin");
        command.args([
            "--games",
            &pit.games.to_string(),
            "--seed",
            &pit.seed.to_string(),
        ]);
        command.args([
            "--evaluations",
            &config.training_loop.match_evaluations.to_string(),
            "--json",
        ]);
        let output = child::run(&mut command, "selfplay pit", &self.stop)?;
        let result = MatchResult::parse(&output, || "the result of selfplay pit".into())?;
        Ok((result, output))
    }

    fn generation(&self, run: &RunDirectory, seed: u64, workers: &Workers) -> Command {
        let mut command = self.command("generate", workers);
        command.arg("--run").arg(run.root());
        command.args(["--seed", &seed.to_string()]);
        command
    }

    fn command(&self, name: &str, workers: &Workers) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(name);
        command.args(["--device", &workers.devices]);
        command.args(["--threads", &workers.threads.to_string()]);
        command.args(["--grace", &self.stop_arguments.grace.to_string()]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_isn_t_there_is_named() {
        // Tests lie in a folder of their own, without it.
        let message = Selfplay::find(Stop::default(), StopArguments { grace: 20 })
            .unwrap_err()
            .to_string();
        assert!(message.contains("deps/selfplay not found"), "{message}");
    }
}
