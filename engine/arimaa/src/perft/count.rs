//! Distinct turns of positions, and sequences of them.

use crate::notation::{NotationError, board_letters, format_step, parse_board};
use crate::rules::{
    Board, Game, History, Phase, Position, PositionError, Side, StepState, TurnEnumerator,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A side as the lines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideLetter {
    /// Gold.
    #[serde(rename = "g")]
    Gold,
    /// Silver.
    #[serde(rename = "s")]
    Silver,
}

impl From<SideLetter> for Side {
    fn from(letter: SideLetter) -> Self {
        match letter {
            SideLetter::Gold => Self::Gold,
            SideLetter::Silver => Self::Silver,
        }
    }
}

impl From<Side> for SideLetter {
    fn from(side: Side) -> Self {
        match side {
            Side::Gold => Self::Gold,
            Side::Silver => Self::Silver,
        }
    }
}

/// A line with a position to count.
#[derive(Debug, Clone, Deserialize)]
pub struct PositionLine {
    /// What to call it.
    pub id: String,
    /// The board in 64 letters between brackets, as [`parse_board`] reads it.
    pub position: String,
    /// The side to move, at the start of its turn.
    pub side: SideLetter,
}

/// A line with what was found of a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundLine<Value> {
    /// What the position is called.
    pub id: String,
    /// What was found.
    #[serde(flatten)]
    pub found: Value,
}

/// What can be played in a position, repetition and the end of the game left aside, with a checksum of where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How much can be played.
    #[serde(flatten)]
    pub turns: TurnCount,
    /// The [`checksum`] of the end boards in 16 hexadecimal digits.
    pub turns_checksum: String,
}

/// What can be played in a position, repetition and the end of the game left aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCount {
    /// How many different boards a legal turn of one to four steps can end on.
    pub distinct_turns: u64,
    /// Whether there is a legal turn.
    pub has_legal_turn: bool,
    /// All legal first steps, like `Ed2n`, sorted.
    pub first_steps: Vec<String>,
}

/// The numbers of sequences of turns from a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCounts {
    /// How many [`sequences`] of one turn, of two turns and so on there are.
    pub sequences: Vec<u64>,
}

/// Why a line holds no position.
#[derive(Debug, thiserror::Error)]
pub enum PositionLineError {
    /// The board can't be read.
    #[error("position: {0}")]
    Board(#[from] NotationError),
    /// The board is no position.
    #[error("position: {0}")]
    Position(#[from] PositionError),
}

impl PositionLine {
    /// The position of the line.
    ///
    /// # Errors
    /// The board can't be read, or is no position.
    pub fn position(&self) -> Result<Position, PositionLineError> {
        Ok(Position::new(self.board()?, self.side.into())?)
    }

    /// The position of the line, also where no game reaches it.
    ///
    /// # Errors
    /// The board can't be read.
    pub fn any_position(&self) -> Result<Position, PositionLineError> {
        Ok(Position::in_play(self.board()?, self.side.into()))
    }

    fn board(&self) -> Result<Board, NotationError> {
        parse_board(&self.position)
    }
}

/// Counts the turns of a position, as though it stood for the first time. A setup, which is not made of steps, has none.
pub fn count(position: &Position, enumerator: &mut TurnEnumerator) -> Count {
    let turns = count_turns(position, enumerator);
    let ends = enumerator.enumerate(position, &History::default());
    let checksum = checksum(ends.iter().map(|(end, _)| *end.board()));
    Count {
        turns,
        turns_checksum: format!("{checksum:016x}"),
    }
}

/// [`count`] without the checksum, which takes most of its time.
pub fn count_turns(position: &Position, enumerator: &mut TurnEnumerator) -> TurnCount {
    let history = History::default();
    let state = StepState::new(position);
    let mut first_steps: Vec<String> = state
        .legal_actions(&history)
        .steps()
        .map(|step| format_step(step, &state))
        .collect();
    first_steps.sort_unstable();
    let turns = enumerator.enumerate(position, &history);
    TurnCount {
        distinct_turns: turns.len() as u64,
        has_legal_turn: !turns.is_empty(),
        first_steps,
    }
}

/// A checksum of a set of boards: the sum, modulo 2^64, of FNV-1a-64 over each board's 64 letters from a8 to h1.
pub fn checksum(boards: impl Iterator<Item = Board>) -> u64 {
    boards.map(|board| hash(&board)).fold(0, u64::wrapping_add)
}

/// FNV-1a-64 (Fowler, Noll and Vo) over a board's 64 letters.
fn hash(board: &Board) -> u64 {
    board_letters(board).fold(0xcbf2_9ce4_8422_2325, |hash, letter| {
        (hash ^ u64::from(letter)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Counts the sequences of `depth` distinct turns with which a game can continue: at each position one turn for each different end
/// position, none once the game is over. Repetition counts as in the game. A setup's turns are not counted.
pub fn sequences(game: &Game, depth: u32) -> u64 {
    let position = game.position();
    if depth == 0 {
        return 1;
    }
    if position.phase() == Phase::Setup || game.outcome().is_some() {
        return 0;
    }
    let mut enumerator = TurnEnumerator::new();
    let turns = enumerator.enumerate(position, game.history());
    if depth == 1 {
        return turns.len() as u64;
    }
    let ends: Vec<Position> = turns.iter().map(|(end, _)| end).collect();
    ends.par_iter()
        .with_min_len(16)
        .map_init(
            || (game.history().clone(), TurnEnumerator::new()),
            |(history, enumerator), end| sequences_below(end, history, depth - 1, enumerator),
        )
        .sum()
}

/// Counts the sequences of `depth` turns, at least one, after a turn that ended in `position`. The history is left as it was.
fn sequences_below(
    position: &Position,
    history: &mut History,
    depth: u32,
    enumerator: &mut TurnEnumerator,
) -> u64 {
    if position.outcome_on_board().is_some() {
        return 0;
    }
    history.push(position);
    let turns = enumerator.enumerate(position, history);
    let total = if depth == 1 {
        turns.len() as u64
    } else {
        let ends: Vec<Position> = turns.iter().map(|(end, _)| end).collect();
        ends.iter()
            .map(|end| sequences_below(end, history, depth - 1, enumerator))
            .sum()
    };
    history.pop(position);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse_position;
    use crate::rules::distinct_turns;

    #[test]
    fn the_checksum_is_fnv_1a_of_64_letters() {
        // 64 blanks, by the definition: ((offset ^ 0x20) * prime), 64 times.
        let mut expected: u64 = 0xcbf29ce484222325;
        for _ in 0..64 {
            expected ^= 0x20;
            expected = expected.wrapping_mul(0x100000001b3);
        }
        assert_eq!(hash(&Board::EMPTY), expected);
        let boards = [Board::EMPTY; 3];
        assert_eq!(checksum(boards.into_iter()), expected.wrapping_mul(3));
    }

    #[test]
    fn a_cornered_rabbit_has_its_few_turns() {
        let position =
            parse_position("s [                                                R      H        r]");
        assert!(position.is_err(), "65 squares");
        // A silver rabbit on h2 goes south, or west along the rank, or both.
        let text = format!("s [{}R{}r{}]", " ".repeat(8), " ".repeat(46), " ".repeat(8));
        let position = parse_position(&text).unwrap();
        let counted = count_turns(&position, &mut TurnEnumerator::new());
        assert_eq!(counted.first_steps, ["rh2s", "rh2w"]);
        // g2, f2, e2, d2, and h1, g1, f1, e1 with a step south on the way.
        assert_eq!(counted.distinct_turns, 8);
        assert!(counted.has_legal_turn);
    }

    #[test]
    fn sequences_stop_at_the_end_of_the_game_and_follow_repetition() {
        let text = format!("s [{}R{}r{}]", " ".repeat(8), " ".repeat(46), " ".repeat(8));
        let game = Game::from_position(parse_position(&text).unwrap());
        assert_eq!(sequences(&game, 0), 1);
        assert_eq!(sequences(&game, 1), 8);
        // After the four turns that reach rank 1 the game is over; after the others Gold's rabbit on a7 has 8 turns of its own:
        // b7, c7, d7, e7, a8, b8, c8, d8.
        assert_eq!(sequences(&game, 2), 4 * 8);
        let by_hand: u64 = distinct_turns(game.position(), game.history())
            .iter()
            .map(|(_, turn)| {
                let mut next = game.clone();
                next.play(turn).unwrap();
                sequences(&next, 2)
            })
            .sum();
        assert_eq!(sequences(&game, 3), by_hand);
    }
}
