//! The position to analyze, and the game that led to it.

use crate::inspect::{self, GameChoice};
use anyhow::{Context, Result, anyhow, bail};
use arimaa::notation::{TurnLabel, parse_record};
use arimaa::rules::{Game, Position};
use clap::{ArgGroup, Args};
use engine::config::printed_or;
use engine::files;
use std::path::{Path, PathBuf};

/// The source of the position.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("subject").args(["position", "record", "shard"]))]
#[command(group = printed_or(["position", "record", "shard"]))]
pub(super) struct SubjectArguments {
    /// Position: side to move and the squares from a8 to h1, as in "g [r …]"
    #[arg(long, value_name = "POSITION")]
    position: Option<Position>,
    /// A game's record, one turn a line after its number and side, as `selfplay pit` writes them. The earlier positions of the game count
    /// as repetitions
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Shard, folder of shards or run that holds the game
    #[arg(long, value_name = "PATH", requires = "game")]
    shard: Option<PathBuf>,
    /// Game of the shards, as in `selfplay inspect --game`: its place among the readable games, from 0, or an id like 3-1041
    #[arg(long, value_name = "K|ID", conflicts_with_all = ["position", "record"])]
    game: Option<GameChoice>,
    /// Search the position before this turn of the record, such as `12s` [default: the position after the last turn]
    #[arg(long, value_name = "TURN", conflicts_with = "position")]
    turn: Option<TurnLabel>,
}

/// The most bytes of a record; a usual one has a few thousand.
const MAX_BYTES: u64 = 1 << 24;

impl SubjectArguments {
    /// The game up to the position, and its name in messages.
    pub(super) fn game(&self) -> Result<(Game, String)> {
        let (game, name) = match (&self.position, &self.record, &self.shard, self.game) {
            (Some(position), ..) => {
                return Ok((Game::from_position(*position), "--position".into()));
            }
            (_, Some(path), ..) => (read_record(path)?, path.display().to_string()),
            (_, _, Some(path), Some(choice)) => (
                read_shard(path, choice)?,
                format!("game {choice} of {}", path.display()),
            ),
            _ => bail!("--position, --record or --shard must name the position"),
        };
        let game = match self.turn {
            Some(turn) => before(turn, &game).with_context(|| name.clone())?,
            None => game,
        };
        let due = TurnLabel::due(&game);
        Ok((game, format!("{name}, turn {due}")))
    }
}

fn read_record(path: &Path) -> Result<Game> {
    let bytes = files::read_whole(path, MAX_BYTES)
        .with_context(|| format!("can't read the record {}", path.display()))?;
    String::from_utf8(bytes)
        .map_err(|_| anyhow!("this is not a record: it is not text"))
        .and_then(|text| Ok(parse_record(&text)?))
        .with_context(|| path.display().to_string())
}

fn read_shard(path: &Path, choice: GameChoice) -> Result<Game> {
    let (found, _) = inspect::find_game(inspect::shards_at(path)?, choice)?;
    let game = found.record.to_game();
    game.map_err(|error| found.fault(error).into())
}

/// The game as it stood when a turn was due.
fn before(turn: TurnLabel, record: &Game) -> Result<Game> {
    let mut game = Game::from_position(*record.start());
    let first = TurnLabel::due(&game);
    let mut played = record.turns().iter();
    while TurnLabel::due(&game) != turn {
        let Some(next) = played.next() else {
            let last = TurnLabel::due(&game);
            bail!(
                "there is no turn {turn}: turn {first} is the first, and at the end {last} is due"
            );
        };
        game.play_unchecked(next.clone());
    }
    Ok(game)
}
