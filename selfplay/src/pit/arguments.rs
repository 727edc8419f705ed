//! `selfplay pit` on the command line.

use super::external_engine::TimeControl;
use super::spec::{MOST_GAMES, MOST_OPENING_TURNS, MatchSpec, OpeningsSpec, Schedule, SpecOrigin};
use super::sprt::{SprtOrder, usual_error};
use crate::worker::source::BUILT_IN;
use crate::worker::worker_pool::WorkerArguments;
use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use engine::config::{ConfigArguments, MOST_EVALUATIONS, PlayerSpec};
use std::path::PathBuf;

/// The options of `selfplay pit`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("opponents").required(true).args(["b", "players", "match_file"]))]
pub(crate) struct PitArguments {
    /// The first of two players, with settings of its own: one argument of words, such as `material evaluations=64 search.mode=puct`.
    /// The first word is `tusker` (the built-in network), a network's file, `policy:` and one of these, `uniform`, `material`,
    /// `random`, or `aei:` and a command. The settings are name, evaluations, time (seconds a turn), temperature (of a policy),
    /// device, clock and option (of an external engine), and search.KEY (keys of `match.search`) [default: tusker]
    #[arg(long, value_name = "PLAYER", requires = "b")]
    a: Option<PlayerSpec>,
    /// The second
    #[arg(long, value_name = "PLAYER")]
    b: Option<PlayerSpec>,
    /// Flags of earlier versions: an error that names what replaced them
    #[arg(long = "a-evaluations", hide = true, value_parser = replaced, aliases = [
        "a-time", "a-temperature", "a-device", "a-set", "a-option", "a-clock", "b-evaluations", "b-time", "b-temperature", "b-device",
        "b-set", "b-option", "b-clock",
    ])]
    _replaced: Option<String>,
    /// Several players, each as --a
    #[arg(long, value_name = "PLAYER", num_args = 2..)]
    players: Option<Vec<PlayerSpec>>,
    /// A file that says everything about the match; `configs/match.toml` explains every key
    #[arg(long = "match", value_name = "FILE", conflicts_with_all = [
        "games", "evaluations", "clock", "schedule", "openings", "opening_turns", "opening_player", "seed", "sprt",
    ])]
    match_file: Option<PathBuf>,
    /// Games of each two that meet, an even number
    #[arg(long, value_name = "N", value_parser = even, required_unless_present = "match_file")]
    games: Option<u64>,
    /// Which of several players meet
    #[arg(
        long,
        value_name = "SCHEDULE",
        requires = "players",
        default_value = "round-robin"
    )]
    schedule: Schedule,
    /// Evaluations a turn, for players that search and have no limit of their own
    #[arg(long, value_name = "N", value_parser = evaluations())]
    evaluations: Option<u32>,
    /// Time control of external engines: `TURN/RESERVE/PERCENT/MAX`, all but the first may be left out. TURN is the time of a
    /// turn; what it leaves goes by PERCENT into the reserve, up to MAX, and what it takes beyond is taken from there. Examples: 2s,
    /// 15s/2m, 30s/5m/100/10m. Each worker plays one game at a time then
    #[arg(long, value_name = "CONTROL")]
    clock: Option<TimeControl>,
    /// Where games begin: behind `sampled` setups; on the empty board, so that the players set up their `own` pieces; or where the
    /// games and positions of a file end, pair k at the k-th, and again from the first
    #[arg(long, value_name = "sampled|own|FILE", default_value = "sampled")]
    openings: String,
    /// Turns behind sampled setups that are sampled too
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_OPENING_TURNS)))]
    opening_turns: u32,
    /// Player that samples opening turns: `random`, or one with a policy [default: random]
    #[arg(long, value_name = "PLAYER", requires = "opening_turns")]
    opening_player: Option<String>,
    /// The openings and all else that is random follow from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Stop as soon as it is decided whether a is ELO0 (H0) or ELO1 (H1) stronger than b: a sequential probability ratio
    /// test on the pairs, in the order of their numbers
    #[arg(long, value_name = "ELO0,ELO1", value_parser = two_numbers, allow_hyphen_values = true)]
    sprt: Option<(f64, f64)>,
    /// How often the test may take H1 where H0 is true [default: 0.05]
    #[arg(long, value_name = "SHARE", requires = "sprt")]
    alpha: Option<f64>,
    /// How often the test may take H0 where H1 is true [default: 0.05]
    #[arg(long, value_name = "SHARE", requires = "sprt")]
    beta: Option<f64>,
    #[command(flatten)]
    pub(super) config: ConfigArguments,
    #[command(flatten)]
    pub(super) workers: WorkerArguments,
    /// The folder that the match's games are written into, in a new folder of the match's own
    #[arg(long, value_name = "DIR", default_value = "pit")]
    pub(super) out: PathBuf,
    /// Resume this match: it is found in --out by what is played. If it is not there, that is an error; `or-begin` begins it
    #[arg(long, value_name = "or-begin", num_args = 0..=1, require_equals = true, default_missing_value = "must")]
    pub(super) resume: Option<Resume>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What to do if there is no match to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Resume {
    /// It is an error
    Must,
    /// Begin it
    OrBegin,
}

fn replaced(_: &str) -> Result<String, String> {
    Err("a player's settings are words of its own argument: --a \"material evaluations=64 search.mode=puct\"".into())
}

fn even(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(games @ 2..=MOST_GAMES) if games % 2 == 0 => Ok(games),
        _ => Err(format!(
            "a match is made of pairs of games: an even number from 2 to {MOST_GAMES}"
        )),
    }
}

fn evaluations() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MOST_EVALUATIONS))
}

fn two_numbers(text: &str) -> Result<(f64, f64), String> {
    let numbers = text.split_once(',');
    numbers
        .and_then(|(one, other)| Some((one.trim().parse().ok()?, other.trim().parse().ok()?)))
        .ok_or_else(|| "expected two numbers, as in 0,10".into())
}

impl PitArguments {
    /// The match that is requested, and where it is specified.
    pub(super) fn spec(&self) -> Result<(MatchSpec, SpecOrigin)> {
        if let Some(path) = &self.match_file {
            return Ok((MatchSpec::load(path)?, SpecOrigin::File(path.clone())));
        }
        let (players, origin) = match &self.players {
            Some(players) => (players.clone(), SpecOrigin::Players),
            None => {
                let first = self.a.clone().unwrap_or_else(|| PlayerSpec::of(BUILT_IN));
                let players = [first].into_iter().chain(self.b.clone());
                (players.collect(), SpecOrigin::Pair)
            }
        };
        let sprt = self.sprt.map(|(elo0, elo1)| SprtOrder {
            elo0,
            elo1,
            alpha: self.alpha.unwrap_or_else(usual_error),
            beta: self.beta.unwrap_or_else(usual_error),
        });
        let spec = MatchSpec {
            players,
            // Where it is left out there is a file.
            games: self.games.unwrap_or_default(),
            schedule: self.schedule,
            evaluations: self.evaluations,
            clock: self.clock,
            openings: OpeningsSpec::from(self.openings.clone()),
            opening_turns: self.opening_turns,
            opening_player: self.opening_player.clone(),
            seed: self.seed,
            max_turns: None,
            sprt,
        };
        Ok((spec, origin))
    }
}
