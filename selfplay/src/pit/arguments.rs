//! `selfplay pit` on the command line.

use super::engines::{OptionSetting, TimeControl};
use super::order::{
    MOST_EVALUATIONS, MOST_GAMES, MOST_OPENING_TURNS, MatchOrder, OpeningsOrder, PlayerOrder,
    Schedule, Source,
};
use super::sprt::{SprtOrder, usual_error};
use crate::crew::CrewArguments;
use crate::source::BUILT_IN;
use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use engine::config::ConfigArguments;
use std::path::PathBuf;

/// The options of `selfplay pit`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("who").required(true).args(["b", "players", "match_file"]))]
pub(crate) struct PitArguments {
    /// The first of two players: `tusker` (the network that is built in), a network's file, `policy:` and one of these, `uniform`,
    /// `material`, `random`, or `aei:` and a command [default: tusker]
    #[arg(long, value_name = "PLAYER", requires = "b")]
    a: Option<String>,
    /// The second
    #[arg(long, value_name = "PLAYER")]
    b: Option<String>,
    /// Several players, all with the same settings
    #[arg(long, value_name = "PLAYER", num_args = 2..)]
    players: Option<Vec<String>>,
    /// A file that says everything about the match; `configs/match.toml` explains every key
    #[arg(long = "match", value_name = "FILE", conflicts_with_all = [
        "games", "evaluations", "clock", "schedule", "openings", "opening_turns", "opening_player", "seed", "sprt",
    ])]
    match_file: Option<PathBuf>,
    /// How many games any two that meet play, an even number
    #[arg(long, value_name = "N", value_parser = even, required_unless_present = "match_file")]
    games: Option<u64>,
    /// Which of several players meet
    #[arg(
        long,
        value_name = "WHO",
        requires = "players",
        default_value = "round-robin"
    )]
    schedule: Schedule,
    /// Evaluations a turn, for players that search and have no limit of their own
    #[arg(long, value_name = "N", value_parser = evaluations())]
    evaluations: Option<u32>,
    /// How long engines of others may think: `TURN/RESERVE/PERCENT/MAX`, all but the first may be left out. TURN is the time of a
    /// turn; what it leaves goes by PERCENT into the reserve, up to MAX, and what it takes beyond is taken from there. Examples: 2s,
    /// 15s/2m, 30s/5m/100/10m. Each worker plays one game at a time then
    #[arg(long, value_name = "CONTROL")]
    clock: Option<TimeControl>,
    #[command(flatten)]
    a_order: FirstArguments,
    #[command(flatten)]
    b_order: SecondArguments,
    /// Where games begin: behind `sampled` setups; on the empty board, so that the players set up their `own` pieces; or where the
    /// games and positions of a file end, pair k at the k-th, and again from the first
    #[arg(long, value_name = "sampled|own|FILE", default_value = "sampled")]
    openings: String,
    /// Turns behind sampled setups that are sampled too
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_OPENING_TURNS)))]
    opening_turns: u32,
    /// Who samples them: `random`, or the policy of a network, as it is [default: random]
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
    pub(super) crew: CrewArguments,
    /// The folder that the match's games are written into, in a new folder of the match's own
    #[arg(long, value_name = "DIR", default_value = "pit")]
    pub(super) out: PathBuf,
    /// Go on with this match where it was stopped, killed or cut off: it is found in --out by what is played. A match that isn't there
    /// is an error that says what is; `or-begin` begins it
    #[arg(long, value_name = "or-begin", num_args = 0..=1, require_equals = true, default_missing_value = "must")]
    pub(super) resume: Option<Resume>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What is a's own.
#[derive(Debug, Args)]
struct FirstArguments {
    /// Evaluations a turn for a alone
    #[arg(long, value_name = "N", value_parser = evaluations(), requires = "b")]
    a_evaluations: Option<u32>,
    /// Seconds a turn for a: such games can't be repeated, and each worker plays one at a time
    #[arg(long, value_name = "SECONDS", requires = "b")]
    a_time: Option<f64>,
    /// Where a is a `policy:`: at 0 it takes the likeliest step each time, at 1 it draws from the policy as it is [default: 0]
    #[arg(long, value_name = "T", requires = "b")]
    a_temperature: Option<f32>,
    /// Where a's network is evaluated, in place of --device
    #[arg(long, value_name = "DEVICE", requires = "b")]
    a_device: Option<String>,
    /// Replace a value of the configuration's section `search` for a alone, e.g. `search.mode=gumbel`; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "b")]
    a_set: Vec<String>,
    /// Where a is an engine of others: an option that it is told before the match, e.g. `hash=500`; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "b")]
    a_option: Vec<OptionSetting>,
    /// Where a is an engine of others: its clock, in place of --clock
    #[arg(long, value_name = "CONTROL", requires = "b")]
    a_clock: Option<TimeControl>,
}

/// What is b's own.
#[derive(Debug, Args)]
struct SecondArguments {
    /// The same for b
    #[arg(long, value_name = "N", value_parser = evaluations(), requires = "b")]
    b_evaluations: Option<u32>,
    /// The same for b
    #[arg(long, value_name = "SECONDS", requires = "b")]
    b_time: Option<f64>,
    /// The same for b
    #[arg(long, value_name = "T", requires = "b")]
    b_temperature: Option<f32>,
    /// The same for b
    #[arg(long, value_name = "DEVICE", requires = "b")]
    b_device: Option<String>,
    /// The same for b
    #[arg(long, value_name = "KEY=VALUE", requires = "b")]
    b_set: Vec<String>,
    /// The same for b
    #[arg(long, value_name = "NAME=VALUE", requires = "b")]
    b_option: Vec<OptionSetting>,
    /// The same for b
    #[arg(long, value_name = "CONTROL", requires = "b")]
    b_clock: Option<TimeControl>,
}

/// What to do about a match that isn't there to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Resume {
    /// It is an error
    Must,
    /// Begin it
    OrBegin,
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
    /// The match that is asked for, and where that stands.
    pub(super) fn order(&self) -> Result<(MatchOrder, Source)> {
        if let Some(path) = &self.match_file {
            return Ok((MatchOrder::load(path)?, Source::File(path.clone())));
        }
        let (players, source) = match &self.players {
            Some(players) => {
                let order = |player: &String| PlayerOrder {
                    player: player.clone(),
                    ..PlayerOrder::default()
                };
                (players.iter().map(order).collect(), Source::Players)
            }
            None => (self.two(), Source::Pair),
        };
        let sprt = self.sprt.map(|(elo0, elo1)| SprtOrder {
            elo0,
            elo1,
            alpha: self.alpha.unwrap_or_else(usual_error),
            beta: self.beta.unwrap_or_else(usual_error),
        });
        let order = MatchOrder {
            players,
            // Where it is left out there is a file.
            games: self.games.unwrap_or_default(),
            schedule: self.schedule,
            evaluations: self.evaluations,
            clock: self.clock,
            openings: OpeningsOrder::from(self.openings.clone()),
            opening_turns: self.opening_turns,
            opening_player: self.opening_player.clone(),
            seed: self.seed,
            max_turns: None,
            sprt,
        };
        Ok((order, source))
    }

    /// a and b.
    fn two(&self) -> Vec<PlayerOrder> {
        let (a, b) = (&self.a_order, &self.b_order);
        let player = self.a.clone().unwrap_or_else(|| BUILT_IN.into());
        let first = PlayerOrder {
            name: None,
            player,
            evaluations: a.a_evaluations,
            time: a.a_time,
            temperature: a.a_temperature,
            device: a.a_device.clone(),
            set: a.a_set.clone(),
            option: a.a_option.clone(),
            clock: a.a_clock,
        };
        let second = self.b.as_ref().map(|player| PlayerOrder {
            name: None,
            player: player.clone(),
            evaluations: b.b_evaluations,
            time: b.b_time,
            temperature: b.b_temperature,
            device: b.b_device.clone(),
            set: b.b_set.clone(),
            option: b.b_option.clone(),
            clock: b.b_clock,
        });
        [first].into_iter().chain(second).collect()
    }
}
