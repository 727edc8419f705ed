//! The other program: how it is found, asked and understood.

use super::child;
use crate::commands::Workplace;
use crate::error::TrainError;
use crate::stop::Stop;
use engine::config::Config;
use engine::run::RunDirectory;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program `selfplay`, and how it is to work.
#[derive(Debug)]
pub(super) struct Selfplay {
    path: PathBuf,
    workplace: Workplace,
    stop: Stop,
}

/// A match of a run's network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    /// The network.
    pub(super) generation: u32,
    /// Whom it plays.
    pub(super) opponent: Opponent,
    /// How many games, an even number.
    pub(super) games: u32,
    /// What the setups follow from.
    pub(super) seed: u64,
}

/// Whom a new network is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opponent {
    /// The run's first network, which knows nothing.
    First,
    /// Any legal step, without a search.
    Random,
}

/// What a match's result says. The file holds more: it is kept as `selfplay pit --json` prints it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct MatchResult {
    /// Games played.
    pub(super) games: u64,
    /// Those of them that were stopped at the turn limit, half a point each.
    pub(super) unfinished: u64,
    /// The new network's points a game, 0 to 1.
    pub(super) score: f64,
    /// How much stronger it is.
    pub(super) elo: f64,
    /// The lower end of the Elo difference's 95% interval.
    pub(super) elo_low: f64,
    /// Its upper end.
    pub(super) elo_high: f64,
}

impl Opponent {
    pub(super) const ALL: [Self; 2] = [Self::First, Self::Random];

    /// Where the result of a network's match against it is kept.
    pub(super) fn result_file(self, run: &RunDirectory, generation: u32) -> PathBuf {
        let name = match self {
            Self::First => "first",
            Self::Random => "random",
        };
        run.pit()
            .join(format!("{generation:05}-against-{name}.json"))
    }

    fn player(self, run: &RunDirectory) -> PathBuf {
        match self {
            Self::First => run.network(0),
            Self::Random => "random".into(),
        }
    }
}

impl MatchResult {
    /// Reads what `selfplay pit --json` printed; `what` names it in errors.
    fn parse(text: &str, what: impl FnOnce() -> String) -> Result<Self, TrainError> {
        serde_json::from_str(text).map_err(|error| TrainError::Answer {
            what: what(),
            reason: error.to_string(),
        })
    }

    /// Reads a result that was kept; none if there is none.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, TrainError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, || path.display().to_string()).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TrainError::Io {
                what: "read",
                path: path.to_owned(),
                error,
            }),
        }
    }
}

impl Selfplay {
    /// Finds the program beside this one.
    pub(super) fn find(workplace: Workplace, stop: Stop) -> Result<Self, TrainError> {
        let name = format!("selfplay{}", std::env::consts::EXE_SUFFIX);
        let own = std::env::current_exe().map_err(|error| TrainError::Io {
            what: "find",
            path: "this program's own file".into(),
            error,
        })?;
        let path = own.with_file_name(name);
        if !path.is_file() {
            return Err(TrainError::NoProgram { path });
        }
        Ok(Self {
            path,
            workplace,
            stop,
        })
    }

    /// Lets a player, a network's file or `uniform`, play games into the run's shards, fewer if the user asks to stop.
    pub(super) fn generate(
        &self,
        run: &RunDirectory,
        player: &Path,
        games: u64,
        seed: u64,
    ) -> Result<(), TrainError> {
        let mut command = self.command("generate");
        command.arg("--run").arg(run.root());
        command.arg("--network").arg(player);
        command.args(["--games", &games.to_string(), "--seed", &seed.to_string()]);
        child::run(&mut command, "selfplay generate", &self.stop)?;
        Ok(())
    }

    /// Plays a match, and returns its result as JSON; none if the user asked to stop before its end.
    pub(super) fn pit(
        &self,
        run: &RunDirectory,
        config: &Config,
        pit: Match,
    ) -> Result<Option<String>, TrainError> {
        let mut command = self.command("pit");
        command.arg("--a").arg(run.network(pit.generation));
        command.arg("--b").arg(pit.opponent.player(run));
        command.arg("--config").arg(run.config());
        command.arg("--out").arg(run.pit());
        command.args([
            "--games",
            &pit.games.to_string(),
            "--seed",
            &pit.seed.to_string(),
        ]);
        command.args([
            "--evaluations",
            &config.cycle.pit_evaluations.to_string(),
            "--json",
        ]);
        let Some(output) = child::run(&mut command, "selfplay pit", &self.stop)? else {
            return Ok(None);
        };
        MatchResult::parse(&output, || "the result of selfplay pit".into())?;
        Ok(Some(output))
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(name);
        command.args(["--device", &self.workplace.device.to_string()]);
        command.args(["--threads", &self.workplace.thread_count().to_string()]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::network::Device;

    #[test]
    fn a_program_that_isn_t_there_is_named() {
        let workplace = Workplace {
            device: Device::Cpu,
            threads: None,
        };
        // Tests lie in a folder of their own, without it.
        let message = Selfplay::find(workplace, Stop::default())
            .unwrap_err()
            .to_string();
        assert!(message.contains("deps/selfplay is not there"), "{message}");
    }

    #[test]
    fn a_result_is_read_as_selfplay_prints_it() {
        let text = r#"{"a":{"player":"x","evaluations":32},"b":{"player":"random"},"seed":1,"games":200,"wins_a":189,"losses_a":8,
            "unfinished":3,"pairs":[0,0,4,10,86],"score":0.955,"elo":530.5,"elo_low":440.0,"elo_high":621.0,"records":"pit/x"}"#;
        let result = MatchResult::parse(text, String::new).unwrap();
        assert_eq!(
            (
                result.games,
                result.unfinished,
                result.score,
                result.elo_high
            ),
            (200, 3, 0.955, 621.0)
        );
        let fault = |text: &str| {
            MatchResult::parse(text, || "x.json".into())
                .unwrap_err()
                .to_string()
        };
        assert!(fault("{}").starts_with("x.json: missing field"));
        assert!(fault("").starts_with("x.json: "));
    }
}
