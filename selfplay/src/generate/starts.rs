//! Where games start: on the empty board, in a file's positions, in the middle of earlier games, or without many of the pieces.

use crate::openings;
use anyhow::Result;
use arimaa::notation::WrittenGame;
use arimaa::rules::{Bitboard, Board, Kind, Piece, Position, Side, Square};
use engine::config::{MIN_PIECES, OpeningsConfig};
use engine::encoding::READABLE_VERSIONS;
use engine::record::{
    GameId, GameRecord, ShardReader, Start, StartPosition, TurnOrigin, TurnRecord, list_shards,
};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use std::collections::VecDeque;
use std::fs;
use std::iter::repeat_n;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The newest games, from which forks are made.
const FORKABLE_GAMES: usize = 2_048;

/// Where games can start.
#[derive(Debug)]
pub(crate) struct Starts {
    config: OpeningsConfig,
    /// Beginnings from a file. A game that is over is resumed from any of its turns, another one from its end.
    openings: Vec<WrittenGame>,
    forkable: Mutex<VecDeque<Forkable>>,
}

/// An earlier game, from the empty board on.
#[derive(Debug)]
struct Forkable {
    id: GameId,
    turns: Vec<Box<[u16]>>,
}

/// How a game begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Begun {
    pub(crate) start: Start,
    /// The first turns, which are given.
    pub(crate) turns: Vec<TurnRecord>,
}

impl Starts {
    /// Reads the file of openings, if the configuration uses it, and the newest games of a folder of shards, if it has forks.
    pub(crate) fn open(config: &OpeningsConfig, shards: Option<&Path>) -> Result<Self> {
        let openings = if config.file_share > 0.0 {
            let what = format!("selfplay.openings.file {}", config.file);
            openings::read_openings(Path::new(&config.file), &what)?
        } else {
            Vec::new()
        };
        let starts = Self {
            config: config.clone(),
            openings,
            forkable: Mutex::default(),
        };
        if let Some(folder) = shards.filter(|_| config.fork_share > 0.0) {
            starts.remember_newest(folder)?;
        }
        Ok(starts)
    }

    /// Where the next game starts. A fork without an earlier game starts on the empty board.
    pub(crate) fn draw(&self, max_turns: usize, rng: &mut impl Rng) -> Begun {
        let drawn: f32 = rng.random();
        let Self { config, .. } = self;
        let begun = if drawn < config.fork_share {
            self.fork(max_turns, rng)
        } else if drawn < config.fork_share + config.file_share {
            self.opening(max_turns, rng)
        } else if drawn < config.fork_share + config.file_share + config.sparse_share {
            Some(self.sparse(rng))
        } else {
            None
        };
        begun.unwrap_or(Begun {
            start: Start::Empty,
            turns: Vec::new(),
        })
    }

    /// Keeps a finished game for forks.
    pub(crate) fn remember(&self, record: &GameRecord) {
        if self.config.fork_share <= 0.0 || !is_forkable(record) {
            return;
        }
        let turns = record.turns.iter();
        let game = Forkable {
            id: record.id,
            turns: turns.map(|turn| turn.actions.clone().into()).collect(),
        };
        let mut forkable = self.forkable.lock().unwrap_or_else(PoisonError::into_inner);
        forkable.push_back(game);
        if forkable.len() > FORKABLE_GAMES {
            forkable.pop_front();
        }
    }

    /// Keeps the games of the newest shards, by the times of the files. What can't be read is skipped.
    fn remember_newest(&self, folder: &Path) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let mut shards = Vec::new();
        for (name, path) in list_shards(folder)? {
            if let Ok(written) = fs::metadata(&path).and_then(|file| file.modified()) {
                shards.push((written, name, path));
            }
        }
        shards.sort_unstable();
        let mut newest_first = Vec::new();
        let mut found = 0;
        for (_, _, path) in shards.iter().rev() {
            if found >= FORKABLE_GAMES {
                break;
            }
            let Ok(reader) = ShardReader::open(path) else {
                continue;
            };
            if READABLE_VERSIONS.contains(&reader.header().encoding_version) {
                let is_good = |record: &GameRecord| is_forkable(record) && record.to_game().is_ok();
                let games: Vec<GameRecord> = reader.flatten().filter(is_good).collect();
                found += games.len();
                newest_first.push(games);
            }
        }
        // The oldest games come first: where there are too many, they are forgotten.
        let games = newest_first.iter().rev().flatten();
        games.for_each(|record| self.remember(record));
        Ok(())
    }

    /// The first turns of an earlier game: the setups at least, and not its last turn.
    fn fork(&self, max_turns: usize, rng: &mut impl Rng) -> Option<Begun> {
        let forkable = self.forkable.lock().unwrap_or_else(PoisonError::into_inner);
        if forkable.is_empty() {
            return None;
        }
        let game = &forkable[rng.random_range(0..forkable.len())];
        let turns = rng.random_range(2..game.turns.len()).min(max_turns - 1);
        let given = game.turns[..turns].iter().map(|actions| TurnRecord {
            actions: actions.to_vec(),
            origin: TurnOrigin::Given,
            rows: Vec::new(),
        });
        Some(Begun {
            start: Start::Fork { game: game.id },
            turns: given.collect(),
        })
    }

    fn opening(&self, max_turns: usize, rng: &mut impl Rng) -> Option<Begun> {
        if self.openings.is_empty() {
            return None;
        }
        let WrittenGame {
            game, conclusion, ..
        } = &self.openings[rng.random_range(0..self.openings.len())];
        let turns = if game.outcome().is_some() || conclusion.is_some() {
            rng.random_range(0..game.turns().len())
        } else {
            game.turns().len()
        };
        let start = if *game.start() == Position::INITIAL {
            Start::Opening
        } else {
            Start::Position(StartPosition::new(game.start()))
        };
        let first = game.start().side();
        let sides = [first, first.opponent()].into_iter().cycle();
        let given = game.turns().iter().take(turns.min(max_turns - 1));
        Some(Begun {
            start,
            turns: given
                .zip(sides)
                .map(|(turn, side)| TurnRecord::given(turn, side))
                .collect(),
        })
    }

    /// A position in play with some of the pieces of each side, as many of both.
    fn sparse(&self, rng: &mut impl Rng) -> Begun {
        let pieces = rng.random_range(MIN_PIECES..=self.config.sparse_pieces);
        let mut board = Board::EMPTY;
        for side in Side::ALL {
            put_some_pieces(&mut board, side, pieces as usize, rng);
        }
        let side = Side::ALL[usize::from(rng.random::<bool>())];
        Begun {
            start: Start::Position(StartPosition::new(&Position::in_play(board, side))),
            turns: Vec::new(),
        }
    }
}

/// Puts random pieces of a side, a rabbit among them, on random squares of its first two ranks.
fn put_some_pieces(board: &mut Board, side: Side, pieces: usize, rng: &mut impl Rng) {
    let mut kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .flat_map(|kind| repeat_n(kind, kind.full_count() as usize))
        .collect();
    // The first rabbit stays the first.
    kinds[1..].shuffle(rng);
    let mut squares: Vec<Square> = Bitboard::home(side).into_iter().collect();
    squares.shuffle(rng);
    for (square, kind) in squares.into_iter().zip(kinds).take(pieces) {
        board.put(square, Piece::new(side, kind));
    }
}

/// Whether the game can be forked: a fork has both setups, and not the last turn.
fn is_forkable(record: &GameRecord) -> bool {
    !matches!(record.start, Start::Position(_)) && record.turns.len() > 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::notation::format_record;
    use engine::config::Config;
    use engine::encoding::ENCODING_VERSION;
    use engine::record::{
        Ending, EvaluatorId, Header, ShardName, ShardWriter, samples::random_game,
    };
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use std::time::{Duration, SystemTime};

    fn game(counter: u64, max_turns: usize) -> GameRecord {
        let id = GameId {
            generator: 4,
            counter,
        };
        random_game(id, 1, max_turns)
    }

    fn won() -> GameRecord {
        let is_won = |record: &GameRecord| matches!(record.ending, Ending::Won(_));
        (0..)
            .map(|counter| game(counter, 300))
            .find(is_won)
            .unwrap()
    }

    /// The record of a game that begins so and resumes nothing.
    fn record(begun: &Begun) -> GameRecord {
        GameRecord {
            start: begun.start,
            turns: begun.turns.clone(),
            ending: Ending::Unfinished { value: None },
            ..game(0, 0)
        }
    }

    fn from_file(text: &str) -> Result<Starts> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("openings.txt");
        fs::write(&path, text).unwrap();
        let config = OpeningsConfig {
            file_share: 1.0,
            file: path.display().to_string(),
            ..Config::default().selfplay.openings
        };
        Starts::open(&config, None)
    }

    #[test]
    fn files_hold_positions_and_records() {
        let begun = format_record(&game(1, 9).to_game().unwrap());
        let over = format_record(&won().to_game().unwrap());
        let silver = *game(1, 9).to_game().unwrap().position();
        let gold = *game(1, 10).to_game().unwrap().position();
        let resigned = format_record(&game(2, 15).to_game().unwrap());
        let text =
            format!("# mine\n{silver}\n{gold}\n\n{begun}\n\n\n{over}\n\n{resigned}8s resigns\n");
        let starts = from_file(&text).unwrap();
        let [first, second, opening, won, resigned] = &starts.openings[..] else {
            panic!("{:?}", starts.openings);
        };
        assert_eq!(
            [first, second].map(|it| *it.game.position()),
            [silver, gold]
        );
        assert_eq!(opening.game.turns().len(), 9);
        assert!(won.game.outcome().is_some() && opening.game.outcome().is_none());
        assert!(resigned.conclusion.is_some() && opening.conclusion.is_none());
        let positions = [silver, gold].map(|position| StartPosition::new(&position));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut lengths = [0; 3];
        for _ in 0..400 {
            let begun = starts.draw(20, &mut rng);
            let game = record(&begun).to_game().unwrap();
            assert_eq!(game.outcome(), None);
            assert!(game.turns().len() < 20);
            match (begun.start, begun.turns.len()) {
                (Start::Position(position), 0) if positions.contains(&position) => lengths[0] += 1,
                (Start::Opening, 9) => lengths[1] += 1,
                (Start::Opening, _) => lengths[2] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(lengths.iter().all(|&count| count > 60), "{lengths:?}");
    }

    #[test]
    fn bad_files_are_named_with_the_line() {
        let error = |text: &str| format!("{:#}", from_file(text).unwrap_err());
        let begun = format_record(&game(1, 3).to_game().unwrap());
        for (text, part) in [
            (
                format!("{begun}\n\n{begun}2s Ra1n Ra2q\n"),
                "line 9, column 4",
            ),
            ("\n# nothing\n".into(), "neither a position nor a game"),
            ("\ng [R ]".into(), "line 2, column"),
            (
                "g [R                                  Er                          r]".into(),
                "line 1: the game is over already",
            ),
        ] {
            let message = error(&text);
            assert!(
                message.contains(part) && message.contains("openings.txt"),
                "{message}"
            );
        }
        let config = OpeningsConfig {
            file_share: 0.1,
            file: "/nowhere/openings.txt".into(),
            ..Config::default().selfplay.openings
        };
        let message = format!("{:#}", Starts::open(&config, None).unwrap_err());
        assert!(
            message.contains("openings.file /nowhere/openings.txt"),
            "{message}"
        );
        let unused = OpeningsConfig {
            file_share: 0.0,
            ..config
        };
        assert!(Starts::open(&unused, None).is_ok());
    }

    #[test]
    fn sparse_games_start_with_the_same_number_of_pieces() {
        let config = OpeningsConfig {
            sparse_share: 0.5,
            sparse_pieces: 6,
            ..Config::default().selfplay.openings
        };
        let starts = Starts::open(&config, None).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut seen = std::collections::HashSet::new();
        let mut empty = 0;
        for _ in 0..400 {
            let begun = starts.draw(20, &mut rng);
            if begun.start == Start::Empty {
                empty += 1;
                continue;
            }
            let game = record(&begun).to_game().unwrap();
            assert!(game.outcome().is_none());
            let (board, side) = (*game.position().board(), game.position().side());
            let counts = Side::ALL.map(|side| board.side(side).count());
            assert_eq!(counts[0], counts[1]);
            for side in Side::ALL {
                assert!(board.pieces(side, Kind::Rabbit).count() > 0);
                assert!((board.side(side) & !Bitboard::home(side)).is_empty());
            }
            seen.insert((counts[0], side));
        }
        assert!((150..250).contains(&empty), "{empty}");
        let expected = (3..=6).flat_map(|count| Side::ALL.map(|side| (count, side)));
        assert_eq!(seen, expected.collect());
    }

    #[test]
    fn forks_come_from_the_newest_shards_by_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let write = |generator: u32, seconds: u64, games: &[GameRecord]| {
            let header = Header {
                encoding_version: ENCODING_VERSION,
                program_version: "0".into(),
                evaluator: EvaluatorId::default(),
                config_digest: String::new(),
                generator,
            };
            let name = ShardName {
                generator,
                sequence: 0,
            };
            let mut writer = ShardWriter::create(folder.path(), name, &header).unwrap();
            games.iter().for_each(|game| writer.push(game).unwrap());
            let path = writer.finish().unwrap();
            let file = fs::File::options().append(true).open(path).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_modified(time).unwrap();
        };
        // The highest number is not the newest. Games of setups alone fill the newest shard and can't be forked.
        write(9, 1, &[game(1, 4), game(2, 4)]);
        write(3, 2, &[game(3, 4), game(4, 4)]);
        let mut unforkable = game(5, 2);
        unforkable
            .turns
            .iter_mut()
            .for_each(|turn| turn.rows.clear());
        let mut newest = vec![unforkable; FORKABLE_GAMES];
        newest.push(game(6, 4));
        write(0, 3, &newest);
        let config = OpeningsConfig {
            fork_share: 0.5,
            ..Config::default().selfplay.openings
        };
        let starts = Starts::open(&config, Some(folder.path())).unwrap();
        let forkable = starts.forkable.lock().unwrap();
        let counters: Vec<u64> = forkable.iter().map(|game| game.id.counter).collect();
        assert_eq!(counters, [1, 2, 3, 4, 6], "the oldest first");
    }

    #[test]
    fn forks_leave_earlier_games_in_their_middle() {
        let config = OpeningsConfig {
            fork_share: 0.5,
            ..Config::default().selfplay.openings
        };
        let starts = Starts::open(&config, None).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        assert_eq!(
            starts.draw(50, &mut rng).start,
            Start::Empty,
            "nothing to fork"
        );
        let games = [game(1, 40), game(2, 2), won()];
        games.iter().for_each(|record| starts.remember(record));
        let (mut forks, mut lengths) = (0, std::collections::HashSet::new());
        for _ in 0..300 {
            let begun = starts.draw(30, &mut rng);
            let Start::Fork { game } = begun.start else {
                continue;
            };
            forks += 1;
            let of = games.iter().find(|record| record.id == game).unwrap();
            assert!(game.counter != 2, "there is nothing behind its setups");
            let turns = begun.turns.len();
            assert!((2..of.turns.len().min(30)).contains(&turns));
            for (given, turn) in begun.turns.iter().zip(&of.turns) {
                assert_eq!(given.actions, turn.actions);
                assert!(given.rows.is_empty(), "nothing is learned from it twice");
            }
            assert_eq!(record(&begun).to_game().unwrap().outcome(), None);
            lengths.insert(turns);
        }
        assert!((100..200).contains(&forks), "{forks} of 300");
        assert!(lengths.len() > 15, "{lengths:?}");
    }
}
