//! Squares and directions.

use super::Side;
use std::fmt;
use std::str::FromStr;

/// One of the 64 squares. Index 0 is a1, 7 is h1, 63 is h8: `rank * 8 + file`, both from 0.
///
/// ```
/// use arimaa::rules::Square;
/// let square: Square = "c3".parse()?;
/// assert_eq!(square.index(), 18);
/// assert_eq!(square.to_string(), "c3");
/// # Ok::<(), arimaa::rules::SquareError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Square(u8);

/// Text that names no square.
///
/// ```
/// use arimaa::rules::{Square, SquareError};
/// assert_eq!("i9".parse::<Square>(), Err(SquareError("i9".to_owned())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[error("`{0}` is no square (a1 to h8)")]
pub struct SquareError(pub String);

impl Square {
    /// The square with an index of 0 (a1) to 63 (h8), if it is one.
    #[inline]
    pub const fn new(index: u8) -> Option<Self> {
        if index < 64 { Some(Self(index)) } else { None }
    }

    /// The square with this index; the index is taken modulo 64.
    #[inline]
    pub const fn wrapping(index: u8) -> Self {
        Self(index & 63)
    }

    /// The square of a file (0 = a) and a rank (0 = rank 1), both taken modulo 8.
    #[inline]
    pub const fn at(file: u8, rank: u8) -> Self {
        Self((rank & 7) * 8 + (file & 7))
    }

    /// 0 (a1) to 63 (h8).
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// 0 (a) to 7 (h).
    #[inline]
    pub const fn file(self) -> u8 {
        self.0 & 7
    }

    /// 0 (rank 1) to 7 (rank 8).
    #[inline]
    pub const fn rank(self) -> u8 {
        self.0 >> 3
    }

    /// How it is written: `a` to `h`, `1` to `8`.
    #[inline]
    pub const fn letters(self) -> [char; 2] {
        [(b'a' + self.file()) as char, (b'1' + self.rank()) as char]
    }

    /// The next square in a direction, if it is on the board.
    #[inline]
    pub const fn neighbour(self, direction: Direction) -> Option<Self> {
        // A table, because the direction is hardly ever predictable where steps are made.
        const NEIGHBOURS: [[Option<Square>; 64]; 4] = {
            let mut table = [[None; 64]; 4];
            let mut from = 0;
            while from < 64 {
                if from < 56 {
                    table[Direction::North.index()][from] = Some(Square(from as u8 + 8));
                }
                if from % 8 < 7 {
                    table[Direction::East.index()][from] = Some(Square(from as u8 + 1));
                }
                if from >= 8 {
                    table[Direction::South.index()][from] = Some(Square(from as u8 - 8));
                }
                if from % 8 > 0 {
                    table[Direction::West.index()][from] = Some(Square(from as u8 - 1));
                }
                from += 1;
            }
            table
        };
        NEIGHBOURS[direction.index()][self.0 as usize & 63]
    }

    /// The next square in a direction, which is known to be on the board.
    #[inline]
    pub(super) const fn beside(self, direction: Direction) -> Self {
        const OFFSETS: [u8; 4] = [8, 1, 64 - 8, 64 - 1];
        Self::wrapping(self.0 + OFFSETS[direction.index()])
    }

    /// The direction of the one step that leads from here to `to`, if they are neighbours.
    pub fn direction_to(self, to: Self) -> Option<Direction> {
        Direction::ALL
            .into_iter()
            .find(|&direction| self.neighbour(direction) == Some(to))
    }

    /// The square on the other side of the line between files d and e.
    #[inline]
    pub const fn mirror(self) -> Self {
        Self(self.0 ^ 7)
    }

    /// The square on the other side of the line between ranks 4 and 5.
    #[inline]
    pub const fn flip(self) -> Self {
        Self(self.0 ^ 56)
    }

    /// This square as `side` sees it, playing north: itself for Gold, flipped for Silver. Its own inverse.
    #[inline]
    pub const fn seen_by(self, side: Side) -> Self {
        match side {
            Side::Gold => self,
            Side::Silver => self.flip(),
        }
    }

    /// All squares, a1 to h8.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..64).map(Self)
    }
}

impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [file, rank] = self.letters();
        write!(f, "{file}{rank}")
    }
}

impl fmt::Debug for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Square {
    type Err = SquareError;

    fn from_str(text: &str) -> Result<Self, SquareError> {
        match *text.as_bytes() {
            [file @ b'a'..=b'h', rank @ b'1'..=b'8'] => Ok(Self::at(file - b'a', rank - b'1')),
            _ => Err(SquareError(text.to_owned())),
        }
    }
}

/// A direction, always as Gold sees the board: north is towards rank 8.
///
/// ```
/// use arimaa::rules::{Direction, Side};
/// let direction: Direction = "n".parse()?;
/// assert_eq!(direction.seen_by(Side::Silver), Direction::South);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Towards rank 8.
    North,
    /// Towards file h.
    East,
    /// Towards rank 1.
    South,
    /// Towards file a.
    West,
}

impl Direction {
    /// The four directions, in the order of their indices.
    pub const ALL: [Self; 4] = [Self::North, Self::East, Self::South, Self::West];

    /// 0 (north), 1 (east), 2 (south) or 3 (west).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The way back.
    #[inline]
    pub const fn opposite(self) -> Self {
        match self {
            Self::North => Self::South,
            Self::East => Self::West,
            Self::South => Self::North,
            Self::West => Self::East,
        }
    }

    /// East and west exchanged.
    #[inline]
    pub const fn mirror(self) -> Self {
        match self {
            Self::East => Self::West,
            Self::West => Self::East,
            other => other,
        }
    }

    /// North and south exchanged.
    #[inline]
    pub const fn flip(self) -> Self {
        match self {
            Self::North => Self::South,
            Self::South => Self::North,
            other => other,
        }
    }

    /// This direction as `side` sees it, playing north. Its own inverse.
    #[inline]
    pub const fn seen_by(self, side: Side) -> Self {
        match side {
            Side::Gold => self,
            Side::Silver => self.flip(),
        }
    }

    /// The letter of the notation: `n`, `e`, `s` or `w`.
    pub const fn letter(self) -> char {
        match self {
            Self::North => 'n',
            Self::East => 'e',
            Self::South => 's',
            Self::West => 'w',
        }
    }

    /// The direction of a letter of the notation.
    pub const fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'n' => Some(Self::North),
            'e' => Some(Self::East),
            's' => Some(Self::South),
            'w' => Some(Self::West),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_each_square_once() {
        for square in Square::all() {
            assert_eq!(square.to_string().parse(), Ok(square));
        }
        for text in ["", "a", "a0", "a9", "i1", "A1", "a1 ", "ä1"] {
            assert!(text.parse::<Square>().is_err(), "{text}");
        }
    }

    #[test]
    fn neighbours_stop_at_the_edges() {
        let named = |text: &str| text.parse::<Square>().unwrap();
        assert_eq!(named("h4").neighbour(Direction::East), None);
        assert_eq!(named("a4").neighbour(Direction::West), None);
        assert_eq!(named("d8").neighbour(Direction::North), None);
        assert_eq!(named("d1").neighbour(Direction::South), None);
        assert_eq!(named("d4").neighbour(Direction::North), Some(named("d5")));
        for square in Square::all() {
            for direction in Direction::ALL {
                let next = square.neighbour(direction);
                assert!(next.is_none_or(|next| next == square.beside(direction)));
            }
        }
        assert_eq!(named("d4").direction_to(named("c4")), Some(Direction::West));
        assert_eq!(named("h4").direction_to(named("a5")), None);
    }
}
