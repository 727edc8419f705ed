//! `selfplay pit` on the command line.

use super::part::Part;
use super::spec::{MatchSpec, SpecOrigin};
use crate::worker::worker_pool::WorkerArguments;
use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use engine::config::{ConfigArguments, MATCH_SET_HELP, PlayerSpec, printed_or};
use network::NetworkSource;
use std::path::PathBuf;

/// The options of `selfplay pit`.
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.help(MATCH_SET_HELP)))]
#[command(group = ArgGroup::new("opponents").args(["b", "players", "match_file"]))]
#[command(group = printed_or(["b", "players", "match_file"]))]
pub(crate) struct PitArguments {
    /// First of two players: one argument of words, such as `material evaluations=64 search.mode=puct`. The first word is `tusker` (the
    /// built-in network), a network's file, `policy:` followed by one of these, `uniform`, `material`, `random`, or `aei:` followed by
    /// a command. The settings are name, evaluations, time (seconds a turn), temperature (of a policy), device, clock and option (of an
    /// external engine), and search.KEY (keys of `match.search`) [default: tusker]
    #[arg(long, value_name = "PLAYER", requires = "b")]
    a: Option<PlayerSpec>,
    /// Second of two players
    #[arg(long, value_name = "PLAYER")]
    b: Option<PlayerSpec>,
    /// Two to 100 players, each written like --a
    #[arg(long, value_name = "PLAYER", num_args = 2..)]
    players: Option<Vec<PlayerSpec>>,
    /// A file that specifies the whole match; `configs/match.toml` explains every key
    #[arg(long = "match", value_name = "FILE", conflicts_with_all = [
        "games", "evaluations", "clock", "schedule", "openings", "opening_turns", "opening_player", "seed", "sprt",
    ])]
    match_file: Option<PathBuf>,
    #[command(flatten)]
    spec: MatchSpec,
    /// How often the test may accept H1 although H0 is true [default: 0.05]
    #[arg(long, value_name = "SHARE", requires = "sprt")]
    alpha: Option<f64>,
    /// How often the test may accept H0 although H1 is true [default: 0.05]
    #[arg(long, value_name = "SHARE", requires = "sprt")]
    beta: Option<f64>,
    #[command(flatten)]
    pub(super) config: ConfigArguments,
    #[command(flatten)]
    pub(super) workers: WorkerArguments,
    /// The folder for matches; each match gets a new folder in it
    #[arg(long, value_name = "DIR", default_value = "pit")]
    pub(super) out: PathBuf,
    /// Resume this match, which is found in --out by its settings, also if it is over. A missing match is an error; `or-begin` begins
    /// it [default: resume the match unless it is over or being played, else begin a new one]
    #[arg(long, value_name = "or-begin", num_args = 0..=1, require_equals = true, default_missing_value = "must")]
    pub(super) resume: Option<Resume>,
    /// Play only part K of N of the games, in a folder of its own: others play the other parts, on any machines
    #[arg(long, value_name = "K/N", conflicts_with = "sprt")]
    pub(super) part: Option<Part>,
    /// Play nothing: put together the games of the match's parts in --out, and print the result of the whole match
    #[arg(long, conflicts_with_all = ["part", "resume", "sprt"])]
    pub(super) join: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The reaction to a missing match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Resume {
    /// It is an error
    Must,
    /// Begin it
    OrBegin,
}

impl PitArguments {
    /// The match that is requested, and the place where it is specified.
    pub(super) fn spec(&self) -> Result<(MatchSpec, SpecOrigin)> {
        if let Some(path) = &self.match_file {
            return Ok((MatchSpec::load(path)?, SpecOrigin::File(path.clone())));
        }
        let (players, origin) = match &self.players {
            Some(players) => (players.clone(), SpecOrigin::Players),
            None => {
                let first = self
                    .a
                    .clone()
                    .unwrap_or_else(|| PlayerSpec::of(NetworkSource::BUILT_IN));
                let players = [first].into_iter().chain(self.b.clone());
                (players.collect(), SpecOrigin::Pair)
            }
        };
        let mut spec = MatchSpec {
            players,
            ..self.spec.clone()
        };
        if let Some(sprt) = &mut spec.sprt {
            sprt.alpha = self.alpha.unwrap_or(sprt.alpha);
            sprt.beta = self.beta.unwrap_or(sprt.beta);
        }
        Ok((spec, origin))
    }
}
