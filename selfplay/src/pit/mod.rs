//! `selfplay pit`: two players against each other, in pairs of games with colours swapped.

mod contender;
mod game;
mod report;
mod statistics;

use crate::batch::Batcher;
use crate::crew::{self, CrewArguments};
use crate::line::Line;
use crate::output;
use crate::player::{Player, PlayerName};
use anyhow::{Context, Result};
use clap::Args;
use contender::{Contender, Order};
use engine::config::{Config, ConfigArguments};
use engine::notation::format_record;
use engine::progress::Progress;
use engine::rules::{Game, Side};
use engine::run::{make_folder, write_file};
use game::{Chooser, PitGame};
use report::{PlayerReport, Report, Usage};
use statistics::{GameResult, Score};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// Let two players play a match: pairs of games from the same setups with colours swapped
#[derive(Debug, Args)]
pub(crate) struct PitArguments {
    /// The first player: a network's file, `uniform` (a search that knows nothing), `material` (a search that counts by hand) or
    /// `random` (any legal step)
    #[arg(long, value_name = "PLAYER")]
    a: PlayerName,
    /// The second player
    #[arg(long, value_name = "PLAYER")]
    b: PlayerName,
    /// How many games to play, an even number
    #[arg(long, value_name = "N", value_parser = even)]
    games: u64,
    /// Evaluations a turn, for players that search
    #[arg(long, value_name = "N", value_parser = evaluations())]
    #[arg(required_unless_present_all = ["a_evaluations", "b_evaluations"])]
    evaluations: Option<u32>,
    /// Evaluations a turn for a alone
    #[arg(long, value_name = "N", value_parser = evaluations())]
    a_evaluations: Option<u32>,
    /// Evaluations a turn for b alone
    #[arg(long, value_name = "N", value_parser = evaluations())]
    b_evaluations: Option<u32>,
    /// Replace a value of the configuration's section `search` for a alone, e.g. `search.mode=gumbel`; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    a_set: Vec<String>,
    /// The same for b
    #[arg(long, value_name = "KEY=VALUE")]
    b_set: Vec<String>,
    /// The setups and all else that is random follow from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    config: ConfigArguments,
    #[command(flatten)]
    crew: CrewArguments,
    /// The folder that the match's games are written into, in a new folder of the match's own
    #[arg(long, value_name = "DIR", default_value = "pit")]
    out: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The most games of a match.
const MOST_GAMES: u64 = 1_000_000;

fn even(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(games @ 2..=MOST_GAMES) if games % 2 == 0 => Ok(games),
        _ => Err(format!(
            "a match is made of pairs of games: an even number from 2 to {MOST_GAMES}"
        )),
    }
}

fn evaluations() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=10_000_000)
}

/// What all workers share.
struct Match {
    /// a and b.
    contenders: [Contender; 2],
    max_turns: usize,
    seed: u64,
    games: u64,
    games_in_flight: usize,
    next_game: AtomicU64,
    stop: AtomicBool,
}

/// A game that is over.
struct Finished {
    number: u64,
    game: Game,
}

/// Runs `selfplay pit`.
pub(crate) fn run(arguments: &PitArguments) -> Result<ExitCode> {
    let config = arguments.config.resolve(None)?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let pit = Match {
        contenders: arguments.contenders(&config)?,
        max_turns: config.pit.max_turns as usize,
        seed: arguments.seed,
        games: arguments.games,
        games_in_flight: arguments
            .crew
            .games_in_flight(arguments.games, config.selfplay.games_in_flight),
        next_game: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let folder = claim_folder(&arguments.out, &pit)?;
    let (results, [usage_a, usage_b]) = pit.play(arguments.crew.threads(), &folder)?;
    let pairs = whole_pairs(&results);
    let [a, b] = &pit.contenders;
    let report = Report {
        a: PlayerReport::new(a, usage_a),
        b: PlayerReport::new(b, usage_b),
        seed: pit.seed,
        score: Score::of_pairs(&pairs),
        records: folder,
    };
    let text = if arguments.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_string()
    };
    output::print(&text)?;
    let stopped = report.score.games < pit.games;
    Ok(if stopped {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

impl PitArguments {
    fn contenders(&self, config: &Config) -> Result<[Contender; 2]> {
        let orders = [
            Order {
                letter: 'a',
                name: &self.a,
                evaluations: self.a_evaluations,
                settings: &self.a_set,
            },
            Order {
                letter: 'b',
                name: &self.b,
                evaluations: self.b_evaluations,
                settings: &self.b_set,
            },
        ];
        // Where it is left out, both have their own.
        let evaluations = self.evaluations.unwrap_or_default();
        let place = self.crew.device.place(config)?;
        let [a, b] = orders.map(|order| {
            Contender::new(order, config, evaluations, |name| {
                Player::open(name, &place)
            })
        });
        Ok([a?, b?])
    }
}

impl Match {
    /// Plays all games, or as many as are over when the user asks to stop. Returns a's results by game number, and what the turns
    /// of a and b took.
    fn play(&self, threads: usize, folder: &Path) -> Result<(Vec<Option<GameResult>>, [Usage; 2])> {
        let [a, b] = self.contenders.each_ref().map(Contender::label);
        let mut progress = Progress::new(&format!("{a} against {b}"), self.games);
        let mut results = vec![None; self.games as usize];
        let mut done = 0;
        let of_workers = crew::run(
            threads,
            &self.stop,
            |finished| self.work(finished),
            |over| {
                if let Some(Finished { number, game }) = over {
                    let record = folder.join(format!("{number:06}.txt"));
                    write_file(&record, format_record(&game).as_bytes())?;
                    results[number as usize] = Some(result_for_a(number, &game));
                    done += 1;
                }
                progress.show(done, || Score::of_pairs(&whole_pairs(&results)).to_string());
                Ok(())
            },
        )?;
        progress.finish(&format!("{done} games"));
        let mut usage = [Usage::default(); 2];
        for of_worker in of_workers {
            add_all(&mut usage, of_worker);
        }
        Ok((results, usage))
    }

    /// One worker: plays games until there are none left to begin. Returns what the turns of a and b took, those of games that were
    /// given up too.
    fn work(&self, finished: &Sender<Finished>) -> Result<[Usage; 2]> {
        let mut lines: Vec<Box<dyn Line>> = Vec::new();
        let mut choosers = [Chooser::Random; 2];
        for (contender, chooser) in self.contenders.iter().zip(&mut choosers) {
            if let Some((line, options)) = contender.searcher()? {
                *chooser = Chooser::Search {
                    evaluator: lines.len(),
                    options,
                    reuse_tree: contender.reuses_tree(),
                };
                lines.push(line);
            }
        }
        let mut batcher = Batcher::new(lines, self.games_in_flight, None);
        let mut usage = [Usage::default(); 2];
        let (mut is_heard, mut is_done) = (true, false);
        while is_heard && !is_done && !self.stop.load(Relaxed) {
            batcher.round(
                || {
                    if self.stop.load(Relaxed) {
                        return Ok(None);
                    }
                    let number = self.next_game.fetch_add(1, Relaxed);
                    let new = || PitGame::new(number, choosers, self.seed, self.max_turns);
                    Ok((number < self.games).then(new))
                },
                |over: PitGame| {
                    add_all(&mut usage, over.usage());
                    let over = Finished {
                        number: over.number,
                        game: over.game().clone(),
                    };
                    is_heard &= finished.send(over).is_ok();
                    Ok(())
                },
            )?;
            is_done = batcher.games().next().is_none();
        }
        for given_up in batcher.games() {
            add_all(&mut usage, given_up.usage());
        }
        for (chooser, usage) in choosers.iter().zip(&mut usage) {
            if let Chooser::Search { evaluator, .. } = chooser {
                usage.time += batcher.time_of(*evaluator);
            }
        }
        Ok(usage)
    }
}

fn add_all(sums: &mut [Usage; 2], others: [Usage; 2]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        sum.add(other);
    }
}

fn result_for_a(number: u64, game: &Game) -> GameResult {
    let a = if PitGame::a_has_gold(number) {
        Side::Gold
    } else {
        Side::Silver
    };
    match game.outcome() {
        Some(outcome) if outcome.winner == a => GameResult::Win,
        Some(_) => GameResult::Loss,
        None => GameResult::Unfinished,
    }
}

/// The pairs of which both games are over: a match that was stopped counts only these.
fn whole_pairs(results: &[Option<GameResult>]) -> Vec<[GameResult; 2]> {
    results
        .chunks_exact(2)
        .filter_map(|pair| Some([pair[0]?, pair[1]?]))
        .collect()
}

/// Makes a folder for this match's games that no other match has.
fn claim_folder(out: &Path, pit: &Match) -> Result<PathBuf> {
    make_folder(out)?;
    let [a, b] = pit
        .contenders
        .each_ref()
        .map(|contender| contender.player.short_name());
    let mut evaluations: Vec<String> = pit
        .contenders
        .iter()
        .filter_map(|contender| contender.search.as_ref())
        .map(|search| search.config.evaluations.to_string())
        .collect();
    evaluations.dedup();
    let seed = pit.seed.to_string();
    let parts = [a, b].into_iter().chain(evaluations).chain([seed]);
    let name = parts.collect::<Vec<_>>().join("-");
    for attempt in 1.. {
        let folder = match attempt {
            1 => out.join(&name),
            _ => out.join(format!("{name}.{attempt}")),
        };
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("can't make the folder {}", folder.display()));
            }
        }
    }
    unreachable!("the attempts never end")
}
