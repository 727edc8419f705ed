//! `selfplay inspect`: reads shards, replays every game in them, and says what they hold or what is wrong with them.

use crate::output::{complain, print};
use anyhow::{Context, bail, ensure};
use engine::notation::{format_board_picture, format_turn};
use engine::rules::{Outcome, Phase, Reason, Side};
use engine::shard::{
    Ending, Evaluator, FrameLocation, GameRecord, Header, ReplayError, ReplayedTurn, ShardError,
    ShardFault, ShardReader, list_shards, replay,
};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to inspect, and what to print of it.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArguments {
    /// Shards, folders of shards, or run directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print the totals as one JSON object
    #[arg(long)]
    json: bool,
    /// Print one game with its boards instead, counting the readable games of all shards in order from 0
    #[arg(long, value_name = "K", conflicts_with = "json")]
    game: Option<u64>,
}

/// Inspects; the exit code is 1 where anything is wrong with a shard.
pub(crate) fn run(arguments: &InspectArguments) -> anyhow::Result<ExitCode> {
    let mut shards = Vec::new();
    for path in &arguments.paths {
        shards.extend(shards_at(path)?);
    }
    let good = match arguments.game {
        Some(number) => print_game(&shards, number)?,
        None => print_totals(&shards, arguments.json)?,
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The shards that a path stands for: itself, or all in the folder, or in the `shards` folder of a run.
pub(crate) fn shards_at(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("can't read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let of_run = path.join("shards");
    let folder = if of_run.is_dir() { &of_run } else { path };
    let shards: Vec<PathBuf> = list_shards(folder)?.into_values().collect();
    ensure!(!shards.is_empty(), "{} holds no shards", folder.display());
    Ok(shards)
}

/// Prints the totals, and on stderr every fault; whether all is well.
fn print_totals(shards: &[PathBuf], json: bool) -> anyhow::Result<bool> {
    let inspected: Vec<Inspected> = shards
        .par_iter()
        .map(|path| Inspected::of_shard(path))
        .collect();
    for fault in inspected.iter().flat_map(|shard| &shard.faults) {
        complain(format_args!("{fault}"));
    }
    let totals = Totals::of_shards(&inspected);
    if json {
        print(&format!("{}\n", serde_json::to_string(&totals)?))?;
    } else {
        print(&totals.to_string())?;
    }
    Ok(totals.bad_frames == 0)
}

/// What one shard holds.
#[derive(Default)]
struct Inspected {
    bytes: u64,
    evaluator: Option<Evaluator>,
    counts: Counts,
    /// In the order of the file.
    faults: Vec<ShardError>,
}

impl Inspected {
    fn of_shard(path: &Path) -> Self {
        let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        match ShardReader::open(path) {
            Ok(reader) => Self::of_reader(reader, bytes),
            Err(fault) => Self {
                bytes,
                faults: vec![fault],
                ..Self::default()
            },
        }
    }

    fn of_reader(mut reader: ShardReader, bytes: u64) -> Self {
        let path = reader.path().to_owned();
        let evaluator = Some(reader.header().evaluator.clone());
        let games = std::iter::from_fn(move || {
            let game = reader.next()?;
            Some((reader.last_location(), game))
        });
        // One thread at a time reads, all of them replay.
        let results: Vec<Result<Counts, ShardError>> = games
            .par_bridge()
            .map(|(at, game)| {
                let game = game?;
                Counts::of_game(&game).map_err(|error| in_frame(&path, at, error))
            })
            .collect();
        let mut inspected = Self {
            bytes,
            evaluator,
            ..Self::default()
        };
        for result in results {
            match result {
                Ok(counts) => inspected.counts.add(&counts),
                Err(fault) => inspected.faults.push(fault),
            }
        }
        inspected.faults.sort_by_key(|fault| fault.offset);
        inspected
    }
}

/// A game's fault with its place.
pub(crate) fn in_frame(path: &Path, at: FrameLocation, error: ReplayError) -> ShardError {
    ShardError {
        path: path.to_owned(),
        frame: Some(at.frame),
        offset: at.offset,
        fault: ShardFault::Game(error),
    }
}

/// What can be counted of good games.
#[derive(Default)]
struct Counts {
    games: u64,
    turns: u64,
    rows: u64,
    won_by_gold: u64,
    unfinished: u64,
    endings: Endings,
}

/// How many games ended in which way.
#[derive(Default, Serialize)]
struct Endings {
    goal: u64,
    elimination: u64,
    immobilization: u64,
}

impl Counts {
    fn of_game(record: &GameRecord) -> Result<Self, ReplayError> {
        let turns = replay(record)?;
        let mut counts = Self {
            games: 1,
            turns: turns.len() as u64,
            rows: turns.iter().map(|turn| turn.rows.len() as u64).sum(),
            ..Self::default()
        };
        match record.ending {
            Ending::Unfinished { .. } => counts.unfinished = 1,
            Ending::Resigned { winner } | Ending::Forfeited { winner } => {
                counts.won_by_gold = u64::from(winner == Side::Gold);
            }
            Ending::Won(Outcome { winner, reason }) => {
                counts.won_by_gold = u64::from(winner == Side::Gold);
                *match reason {
                    Reason::Goal => &mut counts.endings.goal,
                    Reason::Elimination => &mut counts.endings.elimination,
                    Reason::Immobilization => &mut counts.endings.immobilization,
                } = 1;
            }
        }
        Ok(counts)
    }

    fn add(&mut self, other: &Self) {
        self.games += other.games;
        self.turns += other.turns;
        self.rows += other.rows;
        self.won_by_gold += other.won_by_gold;
        self.unfinished += other.unfinished;
        self.endings.goal += other.endings.goal;
        self.endings.elimination += other.endings.elimination;
        self.endings.immobilization += other.endings.immobilization;
    }
}

/// What all shards hold together. The fields are the keys of the JSON object.
#[derive(Serialize)]
struct Totals {
    shards: u64,
    bytes: u64,
    /// Games that were read and replayed without a fault; only these count below.
    games: u64,
    /// Turns of both sides, setups included.
    turns: u64,
    rows: u64,
    /// Everything that was wrong: unreadable headers and frames, games that break the rules, missing ends.
    bad_frames: u64,
    /// Turns a game; null without games.
    mean_turns: Option<f64>,
    /// Gold's share of the games that were won; null without any.
    gold_share: Option<f64>,
    endings: Endings,
    unfinished: u64,
    evaluators: Vec<EvaluatorTotal>,
}

/// The games of one evaluator.
#[derive(Serialize)]
struct EvaluatorTotal {
    #[serde(flatten)]
    evaluator: Evaluator,
    games: u64,
}

impl Totals {
    fn of_shards(inspected: &[Inspected]) -> Self {
        let mut counts = Counts::default();
        let mut evaluators: BTreeMap<&Evaluator, u64> = BTreeMap::new();
        for shard in inspected {
            counts.add(&shard.counts);
            if let Some(evaluator) = &shard.evaluator {
                *evaluators.entry(evaluator).or_default() += shard.counts.games;
            }
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Self {
            shards: inspected.len() as u64,
            bytes: inspected.iter().map(|shard| shard.bytes).sum(),
            games: counts.games,
            turns: counts.turns,
            rows: counts.rows,
            bad_frames: inspected
                .iter()
                .map(|shard| shard.faults.len() as u64)
                .sum(),
            mean_turns: share(counts.turns, counts.games),
            gold_share: share(counts.won_by_gold, counts.games - counts.unfinished),
            endings: counts.endings,
            unfinished: counts.unfinished,
            evaluators: evaluators
                .into_iter()
                .map(|(evaluator, games)| EvaluatorTotal {
                    evaluator: evaluator.clone(),
                    games,
                })
                .collect(),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = self.bytes as f64 / 1024.0;
        writeln!(f, "shards      {} ({kib:.1} KiB)", self.shards)?;
        writeln!(f, "games       {}", self.games)?;
        write!(f, "turns       {}", self.turns)?;
        match self.mean_turns {
            Some(mean) => writeln!(f, " ({mean:.1} a game)")?,
            None => writeln!(f)?,
        }
        writeln!(f, "rows        {}", self.rows)?;
        writeln!(
            f,
            "endings     {} by goal, {} by elimination, {} by immobilization, {} unfinished",
            self.endings.goal,
            self.endings.elimination,
            self.endings.immobilization,
            self.unfinished
        )?;
        if let Some(share) = self.gold_share {
            writeln!(f, "won by Gold {:.1}%", share * 100.0)?;
        }
        for total in &self.evaluators {
            let Evaluator { name, identity } = &total.evaluator;
            writeln!(f, "evaluator   {name} ({identity}): {} games", total.games)?;
        }
        writeln!(f, "bad frames  {}", self.bad_frames)
    }
}

/// A game that was looked for in shards.
pub(crate) struct FoundGame {
    /// Its shard, and where in it.
    pub(crate) path: PathBuf,
    pub(crate) at: FrameLocation,
    header: Header,
    pub(crate) record: GameRecord,
    /// Whether everything before it could be read.
    all_readable: bool,
}

/// Finds a game by its number among the readable ones of all shards; what can't be read on the way is complained of.
pub(crate) fn find_game(shards: &[PathBuf], number: u64) -> anyhow::Result<FoundGame> {
    let mut all_readable = true;
    let mut before = 0;
    for path in shards {
        let mut reader = ShardReader::open(path)?;
        while let Some(game) = reader.next() {
            match game {
                Ok(record) if before == number => {
                    return Ok(FoundGame {
                        path: path.clone(),
                        at: reader.last_location(),
                        header: reader.header().clone(),
                        record,
                        all_readable,
                    });
                }
                Ok(_) => before += 1,
                Err(fault) => {
                    complain(format_args!("{fault}"));
                    all_readable = false;
                }
            }
        }
    }
    bail!("there is no game {number}: the shards hold {before} readable games, counted from 0")
}

/// Prints one game; whether all that was read on the way to it is well.
fn print_game(shards: &[PathBuf], number: u64) -> anyhow::Result<bool> {
    let found = find_game(shards, number)?;
    let turns = replay(&found.record).map_err(|error| in_frame(&found.path, found.at, error))?;
    print(&describe(&found, &turns)?)?;
    Ok(found.all_readable)
}

/// A game as text: where it is from, then board and turn by turn, then how it ended.
fn describe(found: &FoundGame, turns: &[ReplayedTurn]) -> anyhow::Result<String> {
    let FoundGame {
        path,
        at,
        header,
        record,
        ..
    } = found;
    let mut text = String::new();
    writeln!(
        text,
        "game {} from {}, frame {} at byte {}",
        record.id,
        path.display(),
        at.frame,
        at.offset
    )?;
    writeln!(
        text,
        "seed {}, evaluator {} ({}), program {}",
        record.seed, header.evaluator.name, header.evaluator.identity, header.program_version
    )?;
    for (index, turn) in turns.iter().enumerate() {
        let label = record.turn_number(index);
        writeln!(text)?;
        if turn.position.phase() == Phase::Play {
            text.push_str(&format_board_picture(&turn.position, label.number));
        }
        writeln!(
            text,
            "{label} {}\n   Gold's win probability {:.3} (evaluator alone: {:.3}), {} visits, {} rows",
            format_turn(&turn.turn, &turn.position),
            turn.origin.search().map_or(0.5, |search| search.value),
            turn.origin
                .search()
                .map_or(0.5, |search| search.network_value),
            turn.origin.search().map_or(0, |search| search.visits),
            turn.rows.len()
        )?;
    }
    let game = record.to_game()?;
    let next = record.turn_number(turns.len());
    writeln!(text)?;
    text.push_str(&format_board_picture(game.position(), next.number));
    match record.ending {
        Ending::Won(outcome) => writeln!(text, "{outcome} after {} turns", turns.len())?,
        Ending::Unfinished { .. } => writeln!(text, "unfinished after {} turns", turns.len())?,
        Ending::Resigned { winner } | Ending::Forfeited { winner } => {
            writeln!(text, "{winner} wins after {} turns", turns.len())?;
        }
    }
    Ok(text)
}
