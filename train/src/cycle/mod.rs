//! `train loop`: generate, train, publish, compare, and again.
//!
//! What is done is known from what is there, and from nothing else: the games that the newest network has played (shards name
//! it), the networks, the results of their matches. So the loop may be killed at any moment, and goes on when it is started again.

mod child;
mod estimate;
mod selfplay;
mod table;

pub(crate) use table::Table;

use crate::commands::{Workplace, begin_run, run_seed};
use crate::error::TrainError;
use crate::lock::RunLock;
use crate::plan::Demand;
use crate::stop::Stop;
use crate::terminal::{grouped, print};
use crate::training::{Ending, train};
use anyhow::{Context, Result};
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::network::identity;
use engine::progress::{in_words, say};
use engine::run::{RunDirectory, write_file};
use engine::shard::{ShardReader, list_shards};
use selfplay::{Match, Opponent, Selfplay};
use std::path::PathBuf;
use std::time::Instant;

/// Generate games, train a network on them and compare it, generation after generation
///
/// A new run is made, one that is there is gone on with.
#[derive(Debug, Args)]
pub(crate) struct LoopArguments {
    /// The folder of the run
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    #[command(flatten)]
    config: ConfigArguments,
    /// The run's seed: the first network, each game and the order of training follow from it; with several threads games are stored in the order of their ends, which training sees [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    workplace: Workplace,
}

/// The player that knows nothing, and what shards call it.
const UNIFORM: &str = "uniform";

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    /// The user asked to stop.
    Stop,
}

/// The loop of one run.
struct Cycle {
    run: RunDirectory,
    config: Config,
    seed: u64,
    workplace: Workplace,
    selfplay: Selfplay,
    stop: Stop,
}

/// Runs `train loop`.
pub(crate) fn run(arguments: &LoopArguments) -> Result<()> {
    let run = RunDirectory::new(&arguments.run);
    let config = configuration(&run, &arguments.config)?;
    if arguments.config.print_config {
        return Ok(print(config.to_toml().trim_end())?);
    }
    arguments.workplace.device.open()?;
    let stop = Stop::listen().context("can't listen for signals")?;
    let selfplay = Selfplay::find(arguments.workplace, stop.clone())?;
    let _lock = RunLock::take(&run)?;
    arguments.workplace.apply()?;
    let seed = begin_or_go_on(&run, &config, arguments.seed)?;
    let cycle = Cycle {
        run,
        config,
        seed,
        workplace: arguments.workplace,
        selfplay,
        stop,
    };
    match cycle.go()? {
        Flow::GoOn => cycle.report()?,
        Flow::Stop => print(&format!(
            "stopped: `train loop --run {}` goes on from here",
            cycle.run.root().display()
        ))?,
    }
    Ok(())
}

/// The run's own configuration, which a given one must be equal to; a new run's is the given one.
pub(crate) fn configuration(
    run: &RunDirectory,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    run.check_format()?;
    let path = run.config();
    if !path.exists() {
        return Ok(arguments.resolve(None)?);
    }
    let saved = Config::load(&path)?;
    let given = arguments.resolve(Some(&path))?;
    match first_difference(&saved, &given) {
        None => Ok(saved),
        Some((key, saved, given)) => Err(TrainError::OtherConfig {
            run: run.root().to_owned(),
            key,
            given,
            saved,
        }),
    }
}

/// The first key that differs, with both values.
fn first_difference(saved: &Config, given: &Config) -> Option<(String, String, String)> {
    let table =
        |config: &Config| toml::from_str::<toml::Table>(&config.to_toml()).unwrap_or_default();
    difference_of_tables(&table(saved), &table(given))
}

fn difference_of_tables(
    saved: &toml::Table,
    given: &toml::Table,
) -> Option<(String, String, String)> {
    saved.iter().find_map(|(key, value)| {
        let other = given.get(key);
        if other == Some(value) {
            return None;
        }
        if let (Some(saved), Some(given)) =
            (value.as_table(), other.and_then(toml::Value::as_table))
        {
            let (below, saved, given) = difference_of_tables(saved, given)?;
            return Some((format!("{key}.{below}"), saved, given));
        }
        let other = other.map_or_else(String::new, ToString::to_string);
        Some((key.clone(), value.to_string(), other))
    })
}

/// Makes the run if it is new, and returns its seed.
fn begin_or_go_on(
    run: &RunDirectory,
    config: &Config,
    seed: Option<u64>,
) -> Result<u64, TrainError> {
    run.ensure_format()?;
    if run.list_networks()?.is_empty() {
        let seed = seed.unwrap_or(0);
        begin_run(run, config, seed)?;
        return Ok(seed);
    }
    if !run.config().exists() {
        // A first network that was brought along, or a run whose beginning was killed. The other program must not take its own
        // defaults for the run's configuration.
        write_file(&run.config(), config.to_toml().as_bytes())?;
    }
    let saved = run_seed(run)?;
    match seed {
        Some(given) if given != saved => Err(TrainError::OtherSeed {
            run: run.root().to_owned(),
            given,
            saved,
        }),
        _ => Ok(saved),
    }
}

impl Cycle {
    /// Goes through the generations that are left.
    fn go(&self) -> Result<Flow, TrainError> {
        self.announce()?;
        // The first network's match is the measure of all that follows; a later one's may be what a kill has left undone.
        if self.compare(self.newest()?)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        let generations = self.config.cycle.generations;
        loop {
            let newest = self.newest()?;
            if newest >= generations {
                return Ok(Flow::GoOn);
            }
            let begun = Instant::now();
            let next = newest + 1;
            say(&format!("\n== generation {next} of {generations}"));
            if self.generate(newest)? == Flow::Stop
                || self.train()? == Flow::Stop
                || self.compare(next)? == Flow::Stop
            {
                return Ok(Flow::Stop);
            }
            let took = begun.elapsed();
            let left = match generations - next {
                0 => String::new(),
                left => format!(", {left} left: about {} more", in_words(took * left)),
            };
            say(&format!("generation {next} took {}{left}", in_words(took)));
        }
    }

    /// The newest network's generation.
    fn newest(&self) -> Result<u32, TrainError> {
        let newest = self.run.list_networks()?.pop();
        newest
            .map(|(generation, _)| generation)
            .ok_or_else(|| TrainError::NoRun {
                path: self.run.root().to_owned(),
                missing: "network",
            })
    }

    /// Says what there is to do, and roughly how long that takes.
    fn announce(&self) -> Result<(), TrainError> {
        let cycle = &self.config.cycle;
        let newest = self.newest()?;
        if newest >= cycle.generations {
            say(&format!(
                "run {}: all {} generations are there",
                self.run.root().display(),
                cycle.generations
            ));
            return Ok(());
        }
        let first = match cycle.first_games {
            0 => String::new(),
            games => format!(" (the first: {} without a network)", grouped(games.into())),
        };
        let time = estimate::of_generations(&self.run, &self.config, newest, self.workplace)?;
        say(&format!(
            "run {}: {} of {} generations to go, {} games of self-play at {} evaluations a turn each{}, then training, then {} \
             games against the first network and as many against `random` (the last network: {}).\n\
             Very roughly {} on {} threads ({}); measured after the first generation.",
            self.run.root().display(),
            cycle.generations - newest,
            cycle.generations,
            grouped(cycle.games_per_generation.into()),
            self.config.search.evaluations,
            first,
            cycle.pit_games,
            cycle.final_pit_games,
            in_words(time),
            self.workplace.thread_count(),
            self.workplace.device,
        ));
        Ok(())
    }

    /// Lets a network play the games that it still has to. Those of the first are `uniform`'s, unless the configuration says
    /// otherwise.
    fn generate(&self, generation: u32) -> Result<Flow, TrainError> {
        let network = self.run.network(generation);
        let (name, player, identity, wanted) = match (generation, self.config.cycle.first_games) {
            (0, games @ 1..) => ("uniform".into(), UNIFORM.into(), UNIFORM.into(), games),
            _ => (
                format!("network {generation}"),
                network.clone(),
                identity(&network)?,
                self.config.cycle.games_per_generation,
            ),
        };
        let wanted = u64::from(wanted);
        let mut played = self.games_of(&identity)?;
        if played > 0 {
            say(&format!(
                "{name} has played {} games of {} already",
                grouped(played),
                grouped(wanted)
            ));
        }
        // Somebody may have stopped the other program alone: what is missing is played then.
        while played < wanted {
            self.selfplay
                .generate(&self.run, &player, wanted - played, self.seed)?;
            if self.stop.asked() {
                return Ok(Flow::Stop);
            }
            let before = std::mem::replace(&mut played, self.games_of(&identity)?);
            if played == before {
                return Err(TrainError::NoProgress {
                    games: wanted - played,
                    folder: self.run.shards(),
                });
            }
        }
        Ok(Flow::GoOn)
    }

    /// How many games the network of this identity has played in the run's shards.
    fn games_of(&self, identity: &str) -> Result<u64, TrainError> {
        if !self.run.shards().exists() {
            return Ok(0);
        }
        let mut games = 0;
        for path in list_shards(&self.run.shards())?.values() {
            let mut reader = ShardReader::open(path)?;
            if reader.header().evaluator.identity == identity {
                games += reader.frame_offsets()?.len() as u64;
            }
        }
        Ok(games)
    }

    /// Trains the next network, with the run's configuration as it is in its file by now.
    fn train(&self) -> Result<Flow, TrainError> {
        let config = Config::load(&self.run.config())?;
        let demand = Demand {
            steps: None,
            least_new_games: 0,
            wait: false,
        };
        match train(
            &self.run,
            &config,
            demand,
            self.workplace.device,
            &self.stop,
        )? {
            Ending::Published { .. } => Ok(Flow::GoOn),
            Ending::Stopped {
                generation,
                step,
                steps,
                ..
            } => {
                say(&format!(
                    "network {generation} is stopped at step {step} of {steps}"
                ));
                Ok(Flow::Stop)
            }
            Ending::NotBegun => Ok(Flow::Stop),
        }
    }

    /// Plays a network's matches that have no result yet. The first network does not play itself.
    fn compare(&self, generation: u32) -> Result<Flow, TrainError> {
        let cycle = &self.config.cycle;
        let games = match generation {
            last if last == cycle.generations => cycle.final_pit_games,
            _ => cycle.pit_games,
        };
        for opponent in Opponent::ALL {
            let path = opponent.result_file(&self.run, generation);
            let of_itself = generation == 0 && opponent == Opponent::First;
            if games == 0 || of_itself || path.exists() {
                continue;
            }
            let pit = Match {
                generation,
                opponent,
                games,
                seed: self.seed.wrapping_add(generation.into()),
            };
            let result = self.selfplay.pit(&self.run, &self.config, pit)?;
            match result {
                Some(result) => write_file(&path, result.as_bytes())?,
                None => return Ok(Flow::Stop),
            }
            if self.stop.asked() {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::GoOn)
    }

    /// The table of all generations, and where everything is.
    fn report(&self) -> Result<()> {
        let run = &self.run;
        print(&format!("\n{}", Table::of_run(run)?))?;
        for (what, path) in [
            ("configuration", run.config()),
            ("networks", run.networks()),
            ("games", run.shards()),
            ("checkpoints", run.checkpoints()),
            ("matches", run.pit()),
            ("logs", run.logs()),
        ] {
            if path.exists() {
                print(&format!("{what:<14} {}", path.display()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_its_configuration_gets_the_given_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let mut config = Config::default();
        (config.network.blocks, config.network.channels) = (1, 8);
        assert_eq!(begin_or_go_on(&run, &config, Some(7)).unwrap(), 7);
        let network = std::fs::read(run.network(0)).unwrap();
        std::fs::remove_file(run.config()).unwrap();
        assert_eq!(begin_or_go_on(&run, &config, None).unwrap(), 7);
        assert_eq!(Config::load(&run.config()).unwrap(), config);
        assert_eq!(std::fs::read(run.network(0)).unwrap(), network);
    }

    #[test]
    fn the_first_key_that_differs_is_named_with_both_values() {
        let config = Config::default();
        assert_eq!(first_difference(&config, &config), None);
        let other = config
            .with("train.batch_size=64")
            .unwrap()
            .with("loop.generations=3")
            .unwrap();
        let difference = first_difference(&config, &other);
        let deeper = config.with("selfplay.handicap.share=0.5").unwrap();
        assert_eq!(
            first_difference(&config, &deeper),
            Some(("selfplay.handicap.share".into(), "0.0".into(), "0.5".into()))
        );
        let expected = ("train.batch_size".into(), "256".into(), "64".into());
        assert!(
            difference == Some(expected)
                || difference.is_some_and(|(key, ..)| key == "loop.generations")
        );
    }
}
