//! `selfplay analyze`: searches one position, and reports the best turns.

mod subject;

use crate::output;
use crate::worker::batch::search_to_end;
use crate::worker::devices::DeviceArguments;
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool;
use anyhow::{Context, Result};
use arimaa::rules::Side;
use clap::Args;
use engine::config::{AutoOr, Config, ConfigArguments, MATCH_SET_HELP, SearchMode};
use engine::progress::{in_words, say};
use engine::search::{Budget, Search, SearchOptions, SearchReport};
use engine::stop::{Exit, Stop};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subject::SubjectArguments;

/// The position, the limits, and the output.
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.help(MATCH_SET_HELP)))]
pub(crate) struct AnalyzeArguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// Evaluator: `tusker` (the built-in network), a network's file, `material` (hand-made) or `uniform`
    /// (equal values and priors: it finds proofs alone)
    #[arg(long, value_name = "PLAYER", default_value_t = PlayerName::BUILT_IN)]
    network: PlayerName,
    #[command(flatten)]
    limits: LimitArguments,
    /// Search mode, in place of `match.search.mode`
    #[arg(long, value_name = "MODE")]
    mode: Option<SearchMode>,
    /// MiB for the tree, in place of `match.search.memory_mib`. A full tree is searched without growing
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    memory: Option<u32>,
    /// Number of turns to list; the chosen one is always listed
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    top: u32,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArguments,
    /// Threads that evaluate a network on the CPU [default: one a core]. Unless `match.search.parallel_leaves` is set, another
    /// number of threads may give another result, since the search has more leaves in flight. `material` and `uniform` take one
    /// thread, and a GPU its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// The limits of the search.
#[derive(Debug, Args)]
struct LimitArguments {
    /// Limit of evaluations [default: 1000, if nothing else limits the search]
    #[arg(long, value_name = "N", value_parser = count())]
    evaluations: Option<u32>,
    /// Limit of simulations
    #[arg(long, value_name = "N", value_parser = count())]
    visits: Option<u32>,
    /// Limit of seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// End as soon as the rest of the limits can change the chosen turn only by a proof
    #[arg(long)]
    stop_when_decided: bool,
    /// Search until Ctrl-C, or until there is nothing more to evaluate
    #[arg(long, conflicts_with_all = ["evaluations", "visits", "time"])]
    until_stopped: bool,
}

fn count() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000_000)
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 0.001..=1e9) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("seconds are a number from 0.001 to 1000000000".into()),
    }
}

/// Evaluations of a search without a limit.
const DEFAULT_EVALUATIONS: u32 = 1_000;

impl LimitArguments {
    fn budget(&self, memory_mib: u32) -> Budget {
        let is_limited = self.visits.is_some() || self.time.is_some() || self.until_stopped;
        let usual = (!is_limited).then_some(DEFAULT_EVALUATIONS);
        Budget {
            evaluations: self.evaluations.or(usual),
            visits: self.visits,
            time: self.time,
            memory_mib,
            stops_when_decided: self.stop_when_decided,
        }
    }
}

/// Runs `selfplay analyze`.
pub(crate) fn run(arguments: &AnalyzeArguments) -> Result<ExitCode> {
    let config = arguments.config()?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (game, name) = arguments.subject.game()?;
    let mut search = Search::new(game.position(), game.history(), arguments.options(&config))
        .with_context(|| name)?;
    let threads = arguments
        .threads
        .map_or_else(worker_pool::cores, usize::from);
    let devices = arguments.device.devices(&config)?;
    devices.open("--device")?;
    let mut evaluator = Player::open_alone(&arguments.network, &devices, threads)?
        .context("--network random: this player doesn't search")?;
    if config.matches.search.parallel_leaves.fixed().is_none() {
        let options = SearchOptions {
            parallel_leaves: evaluator.leaves_at_once(),
            ..arguments.options(&config)
        };
        search.restart(game.position(), game.history(), options)?;
    }
    let stop = Stop::listen()?;
    search.stop_with(Arc::clone(stop.flag()));
    let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
    let mut progress = SearchProgress::new();
    let (evaluator, history) = (evaluator.as_mut(), game.history());
    search_to_end(&mut search, evaluator, history, &mut rng, |search| {
        progress.show(search);
    })?;
    let report = search.report(arguments.top as usize);
    let text = if arguments.json {
        serde_json::to_string(&report)?
    } else {
        report.to_string()
    };
    output::print(&(text + "\n"))?;
    let is_done = !stop.is_requested() || arguments.limits.until_stopped;
    Ok(Exit::of(is_done).into())
}

impl AnalyzeArguments {
    /// The configuration with the options that replace keys of it.
    fn config(&self) -> Result<Config> {
        let mut config = self.config.resolve_without_selfplay(&[])?;
        if let Some(mode) = self.mode {
            config.matches.search.mode = AutoOr::Fixed(mode);
        }
        config.matches.search.memory_mib = self.memory.unwrap_or(config.matches.search.memory_mib);
        Ok(config)
    }

    fn options(&self, config: &Config) -> SearchOptions {
        let budget = self.limits.budget(config.matches.search.memory_mib);
        SearchOptions::strongest_within(&config.matches.search, budget)
    }
}

/// The progress of a search at a terminal: a line after a second, then each time after twice as long.
struct SearchProgress {
    begun: Instant,
    next: Option<Duration>,
}

impl SearchProgress {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            begun: Instant::now(),
            next: is_terminal.then_some(Duration::from_secs(1)),
        }
    }

    fn show(&mut self, search: &Search) {
        let passed = self.begun.elapsed();
        if let Some(next) = self.next.filter(|&next| passed >= next) {
            say(&progress_line(passed, &search.report(1)));
            self.next = Some(2 * next);
        }
    }
}

/// The time, the evaluations, and the best turn so far.
fn progress_line(passed: Duration, report: &SearchReport) -> String {
    let mut line = format!("{}, {} evaluations", in_words(passed), report.evaluations);
    if let Some(value) = report.gold_value {
        line += &format!(": {} wins {:.1}%", Side::Gold, 100.0 * value);
    }
    if let Some(best) = report.turns.first() {
        line += &format!(", {}", best.turn);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::rules::Game;

    #[test]
    fn only_finite_positive_times_are_accepted() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["0", "-1", "nan", "inf", "1e300", "", "2s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_evaluations_apply_only_without_other_limits() {
        let nothing = || LimitArguments {
            evaluations: None,
            visits: None,
            time: None,
            stop_when_decided: false,
            until_stopped: false,
        };
        let evaluations = |limits: LimitArguments| limits.budget(1).evaluations;
        assert_eq!(evaluations(nothing()), Some(DEFAULT_EVALUATIONS));
        let both = LimitArguments {
            evaluations: Some(7),
            visits: Some(9),
            ..nothing()
        };
        assert_eq!(evaluations(both), Some(7));
        for other in [
            LimitArguments {
                visits: Some(9),
                ..nothing()
            },
            LimitArguments {
                time: Some(Duration::from_secs(1)),
                ..nothing()
            },
            LimitArguments {
                until_stopped: true,
                ..nothing()
            },
        ] {
            assert_eq!(evaluations(other), None);
        }
    }

    #[test]
    fn progress_shows_the_time_the_evaluations_and_the_best_turn() {
        let position = "g [r                                  Er                          R]";
        let game = Game::from_position(position.parse().unwrap());
        let options = SearchOptions::strongest(&Config::default().matches.search, 64);
        let mut search = Search::new(game.position(), game.history(), options).unwrap();
        search_to_end(
            &mut search,
            &mut engine::search::Material::default(),
            game.history(),
            &mut ChaCha8Rng::seed_from_u64(0),
            |_| (),
        )
        .unwrap();
        let report = search.report(1);
        let line = progress_line(Duration::from_secs(90), &report);
        let begin = format!("1m30s, {} evaluations: Gold wins ", report.evaluations);
        assert!(line.starts_with(&begin), "{line}");
        assert!(
            line.ends_with(&format!("%, {}", report.turns[0].turn)),
            "{line}"
        );
    }
}
