//! `selfplay pit`: two players against each other, in pairs of games with colours swapped.

mod game;
mod statistics;

use crate::batch::Batcher;
use crate::crew::{self, CrewArguments};
use crate::output;
use crate::player::{Player, PlayerName};
use anyhow::{Context, Result};
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::notation::format_record;
use engine::progress::Progress;
use engine::rules::{Game, Side};
use engine::run::{make_folder, write_file};
use engine::search::{Evaluator, SearchOptions};
use game::{Chooser, PitGame};
use serde::Serialize;
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    evaluations: u32,
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

/// The result as printed with `--json`.
#[derive(Debug, Serialize)]
struct Report {
    a: String,
    b: String,
    evaluations: u32,
    seed: u64,
    #[serde(flatten)]
    score: Score,
    records: PathBuf,
}

/// What all workers share.
struct Match {
    players: [Player; 2],
    config: Config,
    evaluations: u32,
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
    let open = |name: &PlayerName| Player::open(name, arguments.crew.device);
    let players = [open(&arguments.a)?, open(&arguments.b)?];
    let pit = Match {
        players,
        evaluations: arguments.evaluations,
        seed: arguments.seed,
        games: arguments.games,
        games_in_flight: arguments
            .crew
            .games_in_flight(arguments.games, config.selfplay.games_in_flight),
        next_game: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        config,
    };
    let folder = claim_folder(&arguments.out, &pit)?;
    let results = pit.play(arguments.crew.threads(), &folder)?;
    let pairs = whole_pairs(&results);
    let report = Report {
        a: arguments.a.to_string(),
        b: arguments.b.to_string(),
        evaluations: pit.evaluations,
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

impl Match {
    /// Plays all games, or as many as are over when the user asks to stop. Returns a's results by game number.
    fn play(&self, threads: usize, folder: &Path) -> Result<Vec<Option<GameResult>>> {
        let [a, b] = self.players.each_ref().map(Player::short_name);
        let mut progress = Progress::new(&format!("{a} against {b}"), self.games);
        let mut results = vec![None; self.games as usize];
        let mut done = 0;
        crew::run(
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
        Ok(results)
    }

    /// One worker: plays games until there are none left to begin.
    fn work(&self, finished: &Sender<Finished>) -> Result<()> {
        let mut evaluators: Vec<Box<dyn Evaluator>> = Vec::new();
        let mut choosers = [Chooser::Random; 2];
        for (player, chooser) in self.players.iter().zip(&mut choosers) {
            if let Some(evaluator) = player.evaluator()? {
                let options = SearchOptions::strongest(&self.config.search, self.evaluations);
                *chooser = Chooser::Search {
                    evaluator: evaluators.len(),
                    options,
                    reuse_tree: self.config.search.reuse_tree,
                };
                evaluators.push(evaluator);
            }
        }
        let mut batcher = Batcher::default();
        let mut games: Vec<PitGame> = Vec::new();
        let max_turns = self.config.pit.max_turns as usize;
        while !self.stop.load(Relaxed) {
            while games.len() < self.games_in_flight {
                let number = self.next_game.fetch_add(1, Relaxed);
                if number >= self.games {
                    break;
                }
                games.push(PitGame::new(number, choosers, self.seed, max_turns));
            }
            if games.is_empty() {
                break;
            }
            batcher.round(&mut games, &mut evaluators)?;
            for over in games.extract_if(.., |game| game.is_over()) {
                let over = Finished {
                    number: over.number,
                    game: over.game().clone(),
                };
                if finished.send(over).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
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
    let [a, b] = pit.players.each_ref().map(Player::short_name);
    let name = format!("{a}-{b}-{}-{}", pit.evaluations, pit.seed);
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

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            games,
            wins_a,
            losses_a,
            score,
            elo,
            elo_low,
            elo_high,
            ..
        } = self;
        write!(
            f,
            "{wins_a} won, {losses_a} lost of {games}: {:.1}%, Elo {elo:+.0} [{elo_low:+.0}, {elo_high:+.0}]",
            100.0 * score
        )
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} against {}, {} evaluations a turn",
            self.a, self.b, self.evaluations
        )?;
        writeln!(f, "{}", self.score)?;
        if self.score.unfinished > 0 {
            writeln!(
                f,
                "{} games stopped at the turn limit, half a point each",
                self.score.unfinished
            )?;
        }
        writeln!(f, "games: {}", self.records.display())
    }
}
