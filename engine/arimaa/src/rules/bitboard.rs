//! Sets of squares.

use super::{Direction, Side, Square};
use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not};

/// A set of squares: bit `i` stands for the square with index `i`.
///
/// ```
/// use arimaa::rules::{Bitboard, Direction, Square};
/// let d4: Square = "d4".parse()?;
/// let around = Bitboard::of(d4).neighbours();
/// assert_eq!(around.count(), 4);
/// assert_eq!(Bitboard::of(d4).shift(Direction::North).first(), Some("d5".parse()?));
/// assert_eq!((around & Bitboard::TRAPS), Bitboard::EMPTY);
/// # Ok::<(), arimaa::rules::SquareError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Bitboard(pub u64);

const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_H: u64 = FILE_A << 7;

impl Bitboard {
    /// No square.
    pub const EMPTY: Self = Self(0);
    /// All squares.
    pub const ALL: Self = Self(u64::MAX);
    /// The traps: c3, f3, c6 and f6.
    pub const TRAPS: Self = Self(1 << 18 | 1 << 21 | 1 << 42 | 1 << 45);

    /// The set of one square.
    #[inline]
    pub const fn of(square: Square) -> Self {
        Self(1 << square.index())
    }

    /// The squares next to a square.
    #[inline]
    pub const fn around(square: Square) -> Self {
        const AROUND: [Bitboard; 64] = {
            let mut table = [Bitboard::EMPTY; 64];
            let mut index = 0;
            while index < 64 {
                table[index] = Bitboard(1 << index).neighbours();
                index += 1;
            }
            table
        };
        AROUND[square.index() & 63]
    }

    /// The two ranks on which `side` sets its pieces up: 1 and 2, or 7 and 8.
    #[inline]
    pub const fn home(side: Side) -> Self {
        match side {
            Side::Gold => Self(0xffff),
            Side::Silver => Self(0xffff << 48),
        }
    }

    /// The rank that `side`'s rabbits want to reach: 8 for Gold, 1 for Silver.
    #[inline]
    pub const fn goal(side: Side) -> Self {
        match side {
            Side::Gold => Self(0xff << 56),
            Side::Silver => Self(0xff),
        }
    }

    /// Whether the set holds a square.
    #[inline]
    pub const fn contains(self, square: Square) -> bool {
        self.0 >> square.index() & 1 != 0
    }

    /// Whether the set holds no square.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many squares the set holds.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The square with the lowest index.
    #[inline]
    pub const fn first(self) -> Option<Square> {
        if self.0 == 0 {
            None
        } else {
            Some(Square::wrapping(self.0.trailing_zeros() as u8))
        }
    }

    /// Every square moved by one; what would leave the board is dropped.
    #[inline]
    pub const fn shift(self, direction: Direction) -> Self {
        Self(match direction {
            Direction::North => self.0 << 8,
            Direction::East => (self.0 & !FILE_H) << 1,
            Direction::South => self.0 >> 8,
            Direction::West => (self.0 & !FILE_A) >> 1,
        })
    }

    /// The squares next to at least one square of the set.
    #[inline]
    pub const fn neighbours(self) -> Self {
        Self((self.0 << 8) | (self.0 >> 8) | ((self.0 & !FILE_H) << 1) | ((self.0 & !FILE_A) >> 1))
    }

    /// East and west exchanged.
    #[inline]
    pub const fn mirror(self) -> Self {
        Self(self.0.swap_bytes().reverse_bits())
    }

    /// North and south exchanged.
    #[inline]
    pub const fn flip(self) -> Self {
        Self(self.0.swap_bytes())
    }

    /// This set as `side` sees it, playing north. Its own inverse.
    #[inline]
    pub const fn seen_by(self, side: Side) -> Self {
        match side {
            Side::Gold => self,
            Side::Silver => self.flip(),
        }
    }
}

impl BitAnd for Bitboard {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Bitboard {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitXor for Bitboard {
    type Output = Self;
    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl Not for Bitboard {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl BitAndAssign for Bitboard {
    #[inline]
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for Bitboard {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitXorAssign for Bitboard {
    #[inline]
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl FromIterator<Square> for Bitboard {
    fn from_iter<I: IntoIterator<Item = Square>>(squares: I) -> Self {
        squares
            .into_iter()
            .fold(Self::EMPTY, |set, square| set | Self::of(square))
    }
}

impl IntoIterator for Bitboard {
    type Item = Square;
    type IntoIter = Squares;
    #[inline]
    fn into_iter(self) -> Squares {
        Squares(self)
    }
}

/// The squares of a [`Bitboard`] in the order of their indices.
///
/// ```
/// use arimaa::rules::Bitboard;
/// let names: Vec<String> = Bitboard::TRAPS.into_iter().map(|square| square.to_string()).collect();
/// assert_eq!(names, ["c3", "f3", "c6", "f6"]);
/// ```
#[derive(Debug, Clone)]
pub struct Squares(Bitboard);

impl Iterator for Squares {
    type Item = Square;

    #[inline]
    fn next(&mut self) -> Option<Square> {
        let square = self.0.first()?;
        self.0.0 &= self.0.0 - 1;
        Some(square)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.0.count() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Squares {}

impl fmt::Debug for Bitboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(*self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_and_symmetries_agree_with_the_squares_own() {
        for square in Square::all() {
            let set = Bitboard::of(square);
            for direction in Direction::ALL {
                let moved: Bitboard = square.neighbour(direction).into_iter().collect();
                assert_eq!(set.shift(direction), moved, "{square} {direction:?}");
            }
            let around: Bitboard = Direction::ALL
                .into_iter()
                .filter_map(|d| square.neighbour(d))
                .collect();
            assert_eq!(set.neighbours(), around);
            assert_eq!(Bitboard::around(square), around);
            assert_eq!(set.mirror(), Bitboard::of(square.mirror()));
            assert_eq!(set.flip(), Bitboard::of(square.flip()));
        }
        let named: Vec<String> = Bitboard::TRAPS
            .into_iter()
            .map(|square| square.to_string())
            .collect();
        assert_eq!(named, ["c3", "f3", "c6", "f6"]);
    }
}
