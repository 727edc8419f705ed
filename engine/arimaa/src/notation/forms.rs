//! How the types with a text of their own are serialised: as text where people read the format, as numbers elsewhere.

use super::picture::BoardPicture;
use super::record::TurnLabel;
use crate::rules::{
    Action, Bitboard, Board, Direction, Game, Kind, Piece, Position, Setup, Side, Square, Step,
    Steps, Turn,
};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// A type with a text for people and a plain form for other formats.
trait Forms: fmt::Display + FromStr<Err: fmt::Display> {
    /// The plain form.
    type Plain: Serialize + DeserializeOwned;
    /// What a text or a plain form of this type is, for errors.
    const WHAT: &str;

    fn plain(&self) -> Self::Plain;

    /// The value of a plain form, checked; else what is wrong with it.
    fn from_plain(plain: Self::Plain) -> Result<Self, String>;
}

fn serialize<T: Forms, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(value)
    } else {
        value.plain().serialize(serializer)
    }
}

fn deserialize<'de, T: Forms, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    if deserializer.is_human_readable() {
        deserializer.deserialize_str(Text(PhantomData))
    } else {
        T::from_plain(T::Plain::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Reads a value from its text.
struct Text<T>(PhantomData<T>);

impl<T: Forms> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Serialises types by their [`Forms`].
macro_rules! serialise_by_forms {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }
    )*};
}

serialise_by_forms!(
    Square,
    Direction,
    Piece,
    Step,
    Action,
    Setup,
    Turn,
    Board,
    Position,
    Game,
    TurnLabel,
    BoardPicture
);

/// A number that is no value of a type.
fn no_value(number: impl fmt::Display, what: &str) -> String {
    format!("{number} is no {what}")
}

/// Its index.
impl Forms for Square {
    type Plain = u8;
    const WHAT: &str = "a square";

    fn plain(&self) -> u8 {
        self.index() as u8
    }

    fn from_plain(index: u8) -> Result<Self, String> {
        Self::new(index).ok_or_else(|| no_value(index, Self::WHAT))
    }
}

/// Its index.
impl Forms for Direction {
    type Plain = u8;
    const WHAT: &str = "a direction";

    fn plain(&self) -> u8 {
        self.index() as u8
    }

    fn from_plain(index: u8) -> Result<Self, String> {
        let direction = Self::ALL.get(usize::from(index)).copied();
        direction.ok_or_else(|| no_value(index, Self::WHAT))
    }
}

/// Its index.
impl Forms for Piece {
    type Plain = u8;
    const WHAT: &str = "a piece";

    fn plain(&self) -> u8 {
        self.index() as u8
    }

    fn from_plain(index: u8) -> Result<Self, String> {
        let piece = Self::ALL.get(usize::from(index)).copied();
        piece.ok_or_else(|| no_value(index, Self::WHAT))
    }
}

/// Its action's index as Gold sees the board.
impl Forms for Step {
    type Plain = u8;
    const WHAT: &str = "a step";

    fn plain(&self) -> u8 {
        Action::Step(*self).index(Side::Gold) as u8
    }

    fn from_plain(index: u8) -> Result<Self, String> {
        match Action::from_index(usize::from(index), Side::Gold) {
            Some(Action::Step(step)) => Ok(step),
            _ => Err(no_value(index, Self::WHAT)),
        }
    }
}

/// Its index as Gold sees the board.
impl Forms for Action {
    type Plain = u16;
    const WHAT: &str = "an action";

    fn plain(&self) -> u16 {
        self.index(Side::Gold) as u16
    }

    fn from_plain(index: u16) -> Result<Self, String> {
        Self::from_index(usize::from(index), Side::Gold).ok_or_else(|| no_value(index, Self::WHAT))
    }
}

/// Its kinds.
impl Forms for Setup {
    type Plain = [Kind; 16];
    const WHAT: &str = "a setup";

    fn plain(&self) -> [Kind; 16] {
        *self.kinds()
    }

    fn from_plain(kinds: [Kind; 16]) -> Result<Self, String> {
        Self::new(kinds).map_err(|faults| faults.to_string())
    }
}

/// A turn's plain form.
#[derive(Serialize, Deserialize)]
enum PlainTurn {
    Setup(Setup),
    Steps(Steps),
}

impl Forms for Turn {
    type Plain = PlainTurn;
    const WHAT: &str = "a turn";

    fn plain(&self) -> PlainTurn {
        match self {
            Self::Setup(setup) => PlainTurn::Setup(*setup),
            Self::Steps(steps) => PlainTurn::Steps(steps.clone()),
        }
    }

    fn from_plain(plain: PlainTurn) -> Result<Self, String> {
        match plain {
            PlainTurn::Setup(setup) => Ok(Self::Setup(setup)),
            PlainTurn::Steps(steps) if steps.is_empty() => {
                Err(crate::rules::TurnError::Empty.to_string())
            }
            PlainTurn::Steps(steps) => Ok(Self::Steps(steps)),
        }
    }
}

/// Two squares a byte from a1 on, the first in the low half: 0 for an empty square, else the piece's index and 1.
impl Forms for Board {
    type Plain = [u8; 32];
    const WHAT: &str = "a board";

    fn plain(&self) -> [u8; 32] {
        let mut halves = [0; 32];
        for (square, piece) in self.iter() {
            let number = piece.index() as u8 + 1;
            halves[square.index() / 2] |= number << (4 * (square.index() % 2));
        }
        halves
    }

    fn from_plain(halves: [u8; 32]) -> Result<Self, String> {
        let mut board = Self::EMPTY;
        for square in Square::all() {
            let number = halves[square.index() / 2] >> (4 * (square.index() % 2)) & 15;
            if let Some(index) = number.checked_sub(1) {
                board.put(square, Piece::from_plain(index)?);
            }
        }
        Ok(board)
    }
}

/// Its board and the side to move.
impl Forms for Position {
    type Plain = (Board, Side);
    const WHAT: &str = "a position";

    fn plain(&self) -> (Board, Side) {
        (*self.board(), self.side())
    }

    fn from_plain((board, side): (Board, Side)) -> Result<Self, String> {
        Self::new(board, side).map_err(|faults| faults.to_string())
    }
}

/// Its start and its turns.
impl Forms for Game {
    type Plain = (Position, Vec<Turn>);
    const WHAT: &str = "a game's record";

    fn plain(&self) -> (Position, Vec<Turn>) {
        (*self.start(), self.turns().to_vec())
    }

    fn from_plain((start, turns): (Position, Vec<Turn>)) -> Result<Self, String> {
        let mut game = Self::from_position(start);
        for (index, turn) in turns.iter().enumerate() {
            game.play(turn)
                .map_err(|error| format!("turn {} of the game: {error}", index + 1))?;
        }
        Ok(game)
    }
}

/// Its number and side.
impl Forms for TurnLabel {
    type Plain = (u32, Side);
    const WHAT: &str = "a turn's number and side";

    fn plain(&self) -> (u32, Side) {
        (self.number, self.side)
    }

    fn from_plain((number, side): (u32, Side)) -> Result<Self, String> {
        match number {
            0 => Err("turns are numbered from 1".to_owned()),
            _ => Ok(Self { number, side }),
        }
    }
}

/// The number of its turn and its position.
impl Forms for BoardPicture {
    type Plain = (u32, Position);
    const WHAT: &str = "a picture of a board";

    fn plain(&self) -> (u32, Position) {
        (self.turn_number, self.position)
    }

    fn from_plain((turn_number, position): (u32, Position)) -> Result<Self, String> {
        TurnLabel::from_plain((turn_number, position.side()))?;
        Ok(Self {
            turn_number,
            position,
        })
    }
}

/// A list of squares where people read the format, else the bits.
impl Serialize for Bitboard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_seq(*self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Bitboard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let squares = Vec::<Square>::deserialize(deserializer)?;
            Ok(squares.into_iter().collect())
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}
