//! What is kept of a game. The order of the fields is the order of the bytes.

use arimaa::rules::{Bitboard, Board, Outcome, Piece, Position, PositionError, Side, Square, Turn};
use serde::{Deserialize, Serialize};

/// The version of the format of shards that this program writes and reads.
pub const FORMAT_VERSION: u32 = 3;

/// Which game it is: unique within a run.
///
/// ```
/// use engine::record::GameId;
/// let id = GameId { generator: 3, counter: 1041 };
/// assert_eq!(id.to_string(), "3-1041");
/// assert_eq!("3-1041".parse(), Ok(id));
/// assert!("3-+1041".parse::<GameId>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GameId {
    /// The number of the generator that started the game.
    pub generator: u32,
    /// The generator's own count of its games, from 0.
    pub counter: u64,
}

impl GameId {
    /// Whether the game is one of those that are never trained on, where these are so large a share of all games. It depends on nothing
    /// but the id, so that a game stays what it is from window to window.
    pub fn is_for_validation(self, share: f32) -> bool {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.generator.to_le_bytes());
        hash.update(&self.counter.to_le_bytes());
        let mut first = [0; 4];
        hash.finalize_xof().fill(&mut first);
        f64::from(u32::from_le_bytes(first)) < f64::from(share) * 2f64.powi(32)
    }
}

impl std::fmt::Display for GameId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.generator, self.counter)
    }
}

impl std::str::FromStr for GameId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = || {
            let (generator, counter) = text.split_once('-')?;
            (digits(generator) && digits(counter)).then_some(())?;
            Some(Self {
                generator: generator.parse().ok()?,
                counter: counter.parse().ok()?,
            })
        };
        parsed().ok_or_else(|| {
            format!(
                "`{text}` is not a game: it is like 3-1041, the generator's number and its game's"
            )
        })
    }
}

/// One game, from its start on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    /// Which game it is.
    pub id: GameId,
    /// The run's seed; the game's own randomness follows from it and the id.
    pub seed: u64,
    /// Where it started, and from where its given turns are.
    pub start: Start,
    /// The evaluators of its step states; turns name them by their place here.
    pub evaluators: Vec<EvaluatorId>,
    /// The turns; from the empty board on they begin with Gold's setup.
    pub turns: Vec<TurnRecord>,
    /// How it ended.
    pub ending: Ending,
    /// Where a side would have resigned, had the game not been one of those that are always played to their end.
    pub resignation_waived: Option<WaivedResignation>,
}

impl GameRecord {
    /// The rows of all its turns.
    pub fn row_count(&self) -> u64 {
        self.turns.iter().map(|turn| turn.rows.len() as u64).sum()
    }

    /// The evaluations that its searches requested of networks, as far as they were kept. Those of players without one, as `uniform`,
    /// cost next to nothing.
    pub fn network_evaluations(&self) -> u64 {
        let searches = self.turns.iter().filter_map(TurnRecord::search);
        let of_networks = searches.filter(|search| {
            let evaluator = self.evaluators.get(usize::from(search.evaluator));
            evaluator.is_some_and(|evaluator| evaluator.identity != evaluator.name)
        });
        of_networks
            .map(|search| u64::from(search.evaluations))
            .sum()
    }
}

/// How a game began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// On the empty board.
    Empty,
    /// On the empty board, with the first turns of an earlier game of the run ([`TurnOrigin::Given`]).
    Fork {
        /// The earlier game.
        game: GameId,
    },
    /// On the empty board, with the first turns of a game from elsewhere ([`TurnOrigin::Given`]).
    Opening,
    /// In a position from elsewhere, its game unknown.
    Position(StartPosition),
}

/// A position to start from: pieces and side to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartPosition {
    /// The squares of each piece as bits, by [`Piece::index`]: bit 0 is a1, bit 63 h8.
    pub pieces: [u64; 12],
    /// The side to move.
    pub side: Side,
}

impl StartPosition {
    /// The squares and the side of a position.
    pub fn new(position: &Position) -> Self {
        let board = position.board();
        let squares = |piece: Piece| board.pieces(piece.side, piece.kind).0;
        Self {
            pieces: Piece::ALL.map(squares),
            side: position.side(),
        }
    }

    /// The position, if there is one of these pieces.
    pub fn position(&self) -> Result<Position, StartFault> {
        let mut board = Board::EMPTY;
        for (piece, squares) in Piece::ALL.into_iter().zip(self.pieces) {
            for square in Bitboard(squares) {
                if board.piece_at(square).is_some() {
                    return Err(StartFault::TwoPieces(square));
                }
                board.put(square, piece);
            }
        }
        Ok(Position::new(board, self.side)?)
    }
}

/// Why a [`StartPosition`] is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartFault {
    /// A square has two pieces.
    #[error("two pieces stand on {0}")]
    TwoPieces(Square),
    /// There is no such position.
    #[error(transparent)]
    Position(#[from] PositionError),
}

/// A side that would have resigned, in a game that was played on to measure how often that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaivedResignation {
    /// The turns that had been played by then.
    pub turn: u32,
    /// The side that would have lost.
    pub loser: Side,
}

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Ending {
    /// By the rules.
    Won(Outcome),
    /// It was truncated at the turn limit. No side has lost.
    Unfinished {
        /// The last search's value, Gold's win probability; none where nothing was searched. Training does not use it.
        value: Option<f32>,
    },
    /// A side gave up.
    Resigned {
        /// The other side.
        winner: Side,
    },
    /// A side lost by something outside the game, as by its clock. Only games from elsewhere end so.
    Forfeited {
        /// The other side.
        winner: Side,
    },
}

impl Ending {
    /// The winner, in whatever way; none where the game is unfinished.
    pub fn winner(&self) -> Option<Side> {
        match *self {
            Self::Won(outcome) => Some(outcome.winner),
            Self::Unfinished { .. } => None,
            Self::Resigned { winner } | Self::Forfeited { winner } => Some(winner),
        }
    }
}

/// One turn, and how it was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The policy indices of its actions as the mover sees the board ([`Action::index`](arimaa::rules::Action::index)): one to
    /// four steps, or eight placements. The end of the turn is implied and never stored.
    pub actions: Vec<u16>,
    /// How it was chosen.
    pub origin: TurnOrigin,
    /// The step states of the turn that are worth training on, by ascending step.
    pub rows: Vec<RowRecord>,
}

impl TurnRecord {
    /// A legal turn of another game, without rows: the first of a fork, or of a game from elsewhere. A setup's pieces are placed as
    /// [`Setup::placements`](arimaa::rules::Setup::placements) orders them.
    pub fn given(turn: &Turn, mover: Side) -> Self {
        let actions = turn.actions(mover).into_iter();
        Self {
            actions: actions.map(|action| action.index(mover) as u16).collect(),
            origin: TurnOrigin::Given,
            rows: Vec::new(),
        }
    }

    /// The search that chose the turn, if one did.
    pub fn search(&self) -> Option<&SearchRecord> {
        self.origin.search()
    }
}

/// How a turn was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum TurnOrigin {
    /// Not by this game's player: it is a turn of the game that this one was forked from, or of one from elsewhere.
    Given,
    /// Drawn from the evaluator's policy, without a search.
    Policy {
        /// Its place in [`GameRecord::evaluators`].
        evaluator: u16,
        /// Its value of the turn's start: Gold's win probability, 0 to 1.
        network_value: f32,
    },
    /// By a search.
    Search(SearchRecord),
}

impl TurnOrigin {
    /// The search, if one chose the turn.
    pub fn search(&self) -> Option<&SearchRecord> {
        match self {
            Self::Search(search) => Some(search),
            Self::Given | Self::Policy { .. } => None,
        }
    }

    /// The place of its evaluator in [`GameRecord::evaluators`].
    pub fn evaluator(&self) -> Option<u16> {
        match self {
            Self::Given => None,
            Self::Policy { evaluator, .. } => Some(*evaluator),
            Self::Search(search) => Some(search.evaluator),
        }
    }
}

/// The search that chose a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The place of its evaluator in [`GameRecord::evaluators`].
    pub evaluator: u16,
    /// With the whole budget, or with a small one.
    pub kind: SearchKind,
    /// The evaluations that it was allowed; 0 where that was not kept.
    pub budget: u32,
    /// The evaluations that it requested; 0 where that was not kept.
    pub evaluations: u32,
    /// The visits that it used.
    pub visits: u32,
    /// Its value of the turn's start: Gold's win probability, 0 to 1.
    pub value: f32,
    /// The evaluator's own value of the turn's start: Gold's win probability, 0 to 1.
    pub network_value: f32,
}

/// How much a turn was searched. Earlier versions had playout-cap randomisation (Wu, Accelerating Self-Play Learning in Go, 2019), with
/// turns of both kinds; now all are searched in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchKind {
    /// To learn from.
    Full,
    /// To get on with the game.
    Fast,
}

/// One step state of a turn, with what the search would have a network answer there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowRecord {
    /// How many actions of the turn come before the state.
    pub step: u8,
    /// The visits behind the target.
    pub visits: u32,
    /// The policy target over all legal actions, the end of the turn included, in the order of
    /// [`ActionSet::in_index_order`](arimaa::rules::ActionSet::in_index_order) for the mover; the sum is exactly
    /// [`POLICY_TOTAL`](super::policy::POLICY_TOTAL).
    pub policy: Vec<u16>,
    /// How far the target is from the evaluator's own policy: the Kullback-Leibler divergence KL(target ‖ policy) in nats; finite,
    /// 0 or more; 0 where that was not kept.
    pub surprise: f32,
    /// The row's weight in training; finite, 0 or more.
    pub weight: f32,
}

/// What all games of a shard have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the encoding: what action indices mean.
    pub encoding_version: u32,
    /// The version of the program that wrote the shard.
    pub program_version: String,
    /// The evaluator of step states when the shard was begun. Turns of other evaluators name theirs.
    pub evaluator: EvaluatorId,
    /// [`digest`] of the resolved configuration's TOML.
    pub config_digest: String,
    /// The number of the generator that wrote the shard.
    pub generator: u32,
}

/// Identifies the evaluator of step states.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EvaluatorId {
    /// Its name: a network's file name, or a player without one: `uniform`, `material`.
    pub name: String,
    /// [`digest`] of the network's file, or the name again.
    pub identity: String,
}

/// The BLAKE3 hash of some bytes in 64 hexadecimal digits: the identity of networks and configurations.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_is_for_validation_by_its_id_alone() {
        let validation = |counter, share| {
            let generator = 3;
            GameId { generator, counter }.is_for_validation(share)
        };
        let share = (0..10_000)
            .filter(|&counter| validation(counter, 0.3))
            .count();
        assert!((2_800..3_200).contains(&share), "{share} of 10,000 games");
        assert!((0..1_000).all(|counter| !validation(counter, 0.0)));
    }
}
