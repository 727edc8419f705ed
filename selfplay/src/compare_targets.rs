//! `selfplay compare-targets`: which policy targets prefer what a deep search prefers.
//!
//! From turn starts of recorded games, self-play's search makes policy targets with each variant of the settings, and one deep search
//! values all first actions. A target is worth the mean of these values by its own shares.

use crate::inspect::{games_of, shards_of};
use crate::output::{print, table};
use crate::worker::batch::search_to_end;
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool::{self, WorkerArguments};
use anyhow::{Context, Result, bail, ensure};
use arimaa::rules::{Game, Phase, Side};
use clap::Args;
use engine::config::{AutoOr, Config, ConfigArguments, MAX_EVALUATIONS, SearchMode};
use engine::progress::Progress;
use engine::search::{Decision, Evaluator, FirstAction, Search, SearchOptions};
use engine::stop::Exit;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// The exploration factor of the deep search: it has to value actions that the policy dislikes, too.
const DEEP_EXPLORATION: f32 = 1.5;

/// Leaves of the deep search that are evaluated together.
const DEEP_LEAVES: u32 = 16;

/// The states, the variants and the deep search.
#[derive(Debug, Args)]
pub(crate) struct CompareTargetsArguments {
    /// Shards, folders of shards, or run directories
    #[arg(required_unless_present = "print_config", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Network: `tusker` (built in), a network's file, `material` or `uniform`
    #[arg(long, value_name = "PLAYER", default_value_t = PlayerName::BUILT_IN)]
    network: PlayerName,
    /// Settings that replace those of the configuration, e.g. "selfplay.targets.kind=visits selfplay.evaluations=96"; may be repeated
    #[arg(long, value_name = "SETTINGS")]
    variant: Vec<String>,
    /// Turn starts: one of each of the first N games
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    states: u32,
    /// Evaluations of the deep search
    #[arg(long, value_name = "N", default_value_t = 2_400, value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_EVALUATIONS)))]
    deep: u32,
    /// Seed of the choice of states and of the searches
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    workers: WorkerArguments,
    #[command(flatten)]
    config: ConfigArguments,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `selfplay compare-targets`.
pub(crate) fn run(arguments: &CompareTargetsArguments) -> Result<ExitCode> {
    let config = arguments.config.resolve(None)?;
    if arguments.config.print_config {
        print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = &arguments.network;
    if let Some(reason) = name.without_search() {
        bail!("--network {name}: {reason}");
    }
    let variants = arguments.variants(&config)?;
    let requested = arguments.workers.stop.listen()?;
    let games = Mutex::new(arguments.games()?.into_iter().zip(0..));
    let devices = arguments.workers.device.devices(&config)?;
    devices.open("--device")?;
    let player = Player::open(name, &devices)?;
    let stop = AtomicBool::new(false);
    let work = |found: &Sender<(u64, Option<Comparison>)>| {
        let evaluator = player.evaluator()?;
        let mut searcher = Searcher {
            evaluator: evaluator.with_context(|| format!("{name} has no evaluator"))?,
            variants: &variants,
            deep: deep_options(&config, arguments.deep),
        };
        while !stop.load(Relaxed) {
            let next = games.lock().unwrap_or_else(|held| held.into_inner()).next();
            let Some((game, number)) = next else { break };
            let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
            rng.set_stream(number);
            let comparison = searcher.compare(&game, &mut rng)?;
            if found.send((number, comparison)).is_err() {
                break;
            }
        }
        Ok(())
    };
    let mut progress = Progress::new("compare-targets", Some(arguments.states.into()));
    let mut comparisons = Vec::new();
    let threads = arguments.workers.threads();
    worker_pool::run(threads, &stop, &requested, work, |found| {
        comparisons.extend(found);
        progress.show(comparisons.len() as u64, || "states".into());
        Ok(())
    })?;
    progress.finish(&format!("{} states", comparisons.len()));
    // Added in the games' order: the same states give exactly the same sums.
    comparisons.sort_by_key(|&(number, _)| number);
    let compared: Vec<Comparison> = comparisons.into_iter().filter_map(|(_, of)| of).collect();
    if compared.len() < 2 && requested.is_requested() {
        return Ok(Exit::Interrupted.into());
    }
    ensure!(
        compared.len() > 1,
        "there are fewer than two states without a proof and with a choice"
    );
    let report = TargetReport::new(&arguments.variant, &compared);
    print(&if arguments.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_text()
    })?;
    Ok(Exit::of(!requested.is_requested()).into())
}

impl CompareTargetsArguments {
    /// The configuration, and those that the variants make of it.
    fn variants(&self, config: &Config) -> Result<Vec<Config>> {
        let mut variants = vec![config.clone()];
        for text in &self.variant {
            let mut settings = text.split_whitespace();
            let variant =
                settings.try_fold(config.clone(), |config, setting| config.with(setting))?;
            variant.validate()?;
            ensure!(
                variant.selfplay != config.selfplay || variant == *config,
                "--variant {text:?} changes no target: only keys of `selfplay` do"
            );
            variants.push(variant);
        }
        Ok(variants)
    }

    /// Each game as it stood when one of its turns was due, setups and finished games left aside.
    fn games(&self) -> Result<Vec<Game>> {
        let mut games = Vec::new();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for found in games_of(shards_of(&self.paths)?) {
            if games.len() == self.states as usize {
                return Ok(games);
            }
            let found = found?;
            let game = found.record.to_game();
            let game = game.map_err(|error| found.fault(error))?;
            games.extend(turn_start(&game, &mut rng));
        }
        let found = games.len();
        ensure!(
            found == self.states as usize,
            "there are {found} games with turns behind the setups: name more shards, or set --states to {found} or less"
        );
        Ok(games)
    }
}

/// The game before one of its turns behind the setups; none if it has none.
fn turn_start(record: &Game, rng: &mut ChaCha8Rng) -> Option<Game> {
    let mut game = Game::from_position(*record.start());
    let is_setup = |game: &Game| game.position().phase() == Phase::Setup;
    let mut turns = record.turns().iter();
    while is_setup(&game) {
        game.play_unchecked(turns.next()?.clone());
    }
    let left = turns.len();
    if left == 0 {
        return None;
    }
    let played = turns.take(rng.random_range(0..left));
    played.for_each(|turn| game.play_unchecked(turn.clone()));
    Some(game)
}

/// A search that makes no step final: all its visits pass through the turn's start.
fn deep_options(config: &Config, evaluations: u32) -> SearchOptions {
    let mut search = config.matches.search;
    search.mode = AutoOr::Fixed(SearchMode::Puct);
    search.puct.exploration = DEEP_EXPLORATION;
    search.puct.min_turn_visits = 1;
    search.parallel_leaves = AutoOr::Fixed(DEEP_LEAVES);
    SearchOptions::strongest(&search, evaluations)
}

/// The searches of a worker.
struct Searcher<'a> {
    evaluator: Box<dyn Evaluator>,
    variants: &'a [Config],
    deep: SearchOptions,
}

/// What a state says of the targets.
struct Comparison {
    /// The value of the priors by the deep search: win probability of the mover.
    priors: f64,
    /// Whether the likeliest action by the priors is the deep search's most visited one.
    priors_agree: bool,
    /// The deep search's value less the evaluator's: win probability of the mover.
    deep_gain: f64,
    variants: Vec<Target>,
}

/// A variant's policy target.
struct Target {
    /// Its value by the deep search: win probability of the mover.
    value: f64,
    /// Whether its largest share is on the deep search's most visited action.
    agrees: bool,
    /// Its divergence from the priors, in nats.
    surprise: f64,
    /// The search's value less the evaluator's: win probability of the mover.
    gain: f64,
}

impl Searcher<'_> {
    /// Compares the variants' targets in a state; none where something is proven or nothing is to choose.
    fn compare(&mut self, game: &Game, rng: &mut ChaCha8Rng) -> Result<Option<Comparison>> {
        let side = game.position().side();
        let deep = self.search(game, self.deep, rng)?;
        let actions = deep.first_actions();
        let Some(decision) = deep.decision().filter(|of| of.proven_winner.is_none()) else {
            return Ok(None);
        };
        if actions.len() < 2 {
            return Ok(None);
        }
        let visits = actions.iter().map(|action| f64::from(action.visits));
        let best = place_of_greatest(visits);
        let values = values_of(&actions, decision, side);
        let worth =
            |policy: &[f64]| -> f64 { policy.iter().zip(&values).map(|(a, b)| a * b).sum() };
        let total: f64 = actions.iter().map(|action| f64::from(action.prior)).sum();
        let priors: Vec<f64> = actions
            .iter()
            .map(|action| f64::from(action.prior) / total)
            .collect();
        let mut comparison = Comparison {
            priors: worth(&priors),
            priors_agree: place_of_greatest(priors.iter().copied()) == best,
            deep_gain: gain(decision, side),
            variants: Vec::new(),
        };
        let seed = rng.random();
        for variant in self.variants {
            let selfplay = &variant.selfplay;
            let temperature = selfplay.exploration.final_temperature;
            let options = SearchOptions::exploring(selfplay, selfplay.evaluations, temperature);
            // The same random numbers for each, so that only the settings differ.
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let search = self.search(game, options, &mut rng)?;
            let decision = search.decision().context("a search has not decided")?;
            let target = decision.targets.first().filter(|target| target.step == 0);
            let Some(target) = target.filter(|target| !target.proven) else {
                return Ok(None);
            };
            let policy: Vec<f64> = target.policy.iter().copied().map(f64::from).collect();
            comparison.variants.push(Target {
                value: worth(&policy),
                agrees: place_of_greatest(policy.iter().copied()) == best,
                surprise: target.surprise.into(),
                gain: gain(decision, side),
            });
        }
        Ok(Some(comparison))
    }

    fn search(
        &mut self,
        game: &Game,
        options: SearchOptions,
        rng: &mut ChaCha8Rng,
    ) -> Result<Search> {
        let history = game.history();
        let mut search = Search::new(game.position(), history, options)?;
        search_to_end(&mut search, self.evaluator.as_mut(), history, rng, |_| ())?;
        Ok(search)
    }
}

/// The values of the first actions, win probabilities of `side`; one without a visit has the state's.
fn values_of(actions: &[FirstAction], decision: &Decision, side: Side) -> Vec<f64> {
    let of_state = seen_by(side, decision.value);
    let values = actions
        .iter()
        .map(|action| action.value.map_or(of_state, f64::from));
    values.collect()
}

/// The search's value less the evaluator's, for the mover.
fn gain(decision: &Decision, side: Side) -> f64 {
    seen_by(side, decision.value) - seen_by(side, decision.own_value)
}

fn seen_by(side: Side, of_gold: f32) -> f64 {
    match side {
        Side::Gold => of_gold.into(),
        Side::Silver => 1.0 - f64::from(of_gold),
    }
}

/// The place of the greatest number, the first of equal ones.
fn place_of_greatest(numbers: impl Iterator<Item = f64>) -> usize {
    let greatest = numbers
        .enumerate()
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    greatest.map_or(0, |(place, _)| place)
}

/// A mean and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Estimate {
    mean: f64,
    error: f64,
}

impl Estimate {
    fn of(numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let count = numbers.clone().count() as f64;
        let mean = numbers.clone().sum::<f64>() / count;
        let squares: f64 = numbers.map(|number| (number - mean).powi(2)).sum();
        Self {
            mean,
            error: (squares / (count - 1.0) / count).sqrt(),
        }
    }

    fn cell(self, decimals: usize) -> String {
        let Self { mean, error } = self;
        format!("{mean:+.decimals$} ±{error:.decimals$}")
    }
}

/// The result. Values are win probabilities of the mover by the deep search.
#[derive(Debug, Serialize)]
struct TargetReport {
    /// Compared states.
    states: usize,
    /// The deep search's value less the evaluator's.
    deep_gain: Estimate,
    /// Share of the states in which the likeliest action is the deep search's most visited one.
    priors_agree: f64,
    variants: Vec<VariantReport>,
}

/// The result of a variant.
#[derive(Debug, Serialize)]
struct VariantReport {
    settings: String,
    /// The target's value less that of the priors.
    above_priors: Estimate,
    /// The target's value less that of the configuration's target.
    above_configured: Estimate,
    /// Share of the states in which the target's largest share is on the deep search's most visited action.
    agrees: f64,
    /// Mean divergence of the target from the priors, in nats.
    surprise: f64,
    /// The search's value less the evaluator's.
    gain: Estimate,
}

impl TargetReport {
    fn new(variants: &[String], compared: &[Comparison]) -> Self {
        let names = std::iter::once("as configured").chain(variants.iter().map(String::as_str));
        let share = |of: &dyn Fn(&Comparison) -> bool| {
            compared.iter().filter(|&state| of(state)).count() as f64 / compared.len() as f64
        };
        let report = |(place, settings): (usize, &str)| {
            let of_states = compared.iter().map(|state| (state, &state.variants[place]));
            VariantReport {
                settings: settings.to_owned(),
                above_priors: Estimate::of(
                    of_states.clone().map(|(state, of)| of.value - state.priors),
                ),
                above_configured: Estimate::of(
                    of_states
                        .clone()
                        .map(|(state, of)| of.value - state.variants[0].value),
                ),
                agrees: share(&|state| state.variants[place].agrees),
                surprise: Estimate::of(of_states.clone().map(|(_, of)| of.surprise)).mean,
                gain: Estimate::of(of_states.map(|(_, of)| of.gain)),
            }
        };
        Self {
            states: compared.len(),
            deep_gain: Estimate::of(compared.iter().map(|state| state.deep_gain)),
            priors_agree: share(&|state| state.priors_agree),
            variants: names.enumerate().map(report).collect(),
        }
    }

    fn to_text(&self) -> String {
        let header = [
            "settings",
            "value above priors",
            "above configured",
            "agrees",
            "surprise",
            "search - network",
        ];
        let rows = self.variants.iter().map(|variant| {
            [
                variant.settings.clone(),
                variant.above_priors.cell(4),
                variant.above_configured.cell(4),
                format!("{:.1}%", 100.0 * variant.agrees),
                format!("{:.2}", variant.surprise),
                variant.gain.cell(4),
            ]
        });
        format!(
            "{} states; the priors agree in {:.1}%; deep search - network {}\n\n{}\n",
            self.states,
            100.0 * self.priors_agree,
            self.deep_gain.cell(4),
            table(header, |column| column > 0, rows)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_a_mean_and_its_standard_error() {
        let found = Estimate::of([1.0, 2.0, 3.0, 6.0].into_iter());
        assert_eq!(found.mean, 3.0);
        // Deviations -2, -1, 0, 3: a variance of 14/3 of a number, 14/12 of the mean.
        assert!((found.error - (14f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(found.cell(2), "+3.00 ±1.08");
    }

    #[test]
    fn variants_are_compared_with_priors_and_with_the_first() {
        let target = |value, agrees| Target {
            value,
            agrees,
            surprise: 0.5,
            gain: 0.0,
        };
        let state = |priors, first, second| Comparison {
            priors,
            priors_agree: false,
            deep_gain: 0.0,
            variants: vec![target(first, true), target(second, false)],
        };
        let compared = [state(0.5, 0.6, 0.7), state(0.4, 0.4, 0.5)];
        let report = TargetReport::new(&["x=1".to_owned()], &compared);
        assert_eq!((report.states, report.priors_agree), (2, 0.0));
        let [first, second] = &report.variants[..] else {
            panic!()
        };
        assert_eq!(
            (first.settings.as_str(), second.settings.as_str()),
            ("as configured", "x=1")
        );
        assert!((first.above_priors.mean - 0.05).abs() < 1e-12);
        assert_eq!(
            first.above_configured,
            Estimate {
                mean: 0.0,
                error: 0.0
            }
        );
        assert!((second.above_configured.mean - 0.1).abs() < 1e-12);
        assert_eq!((first.agrees, second.agrees), (1.0, 0.0));
    }
}
