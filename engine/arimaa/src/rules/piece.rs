//! Sides, kinds and pieces.

use std::fmt;

/// Gold moves first and plays towards rank 8; Silver plays towards rank 1.
///
/// ```
/// use arimaa::rules::Side;
/// let side: Side = "s".parse()?;
/// assert_eq!(side.opponent().to_string(), "Gold");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Side {
    /// Upper-case letters, ranks 1 and 2.
    Gold,
    /// Lower-case letters, ranks 7 and 8.
    Silver,
}

impl Side {
    /// Gold, then Silver.
    pub const ALL: [Self; 2] = [Self::Gold, Self::Silver];

    /// 0 for Gold, 1 for Silver.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other side.
    #[inline]
    pub const fn opponent(self) -> Self {
        match self {
            Self::Gold => Self::Silver,
            Self::Silver => Self::Gold,
        }
    }

    /// The letter of the notation: `g` or `s`.
    pub const fn letter(self) -> char {
        match self {
            Self::Gold => 'g',
            Self::Silver => 's',
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gold => "Gold",
            Self::Silver => "Silver",
        })
    }
}

/// The kinds of pieces, weakest first.
///
/// ```
/// use arimaa::rules::Kind;
/// assert!(Kind::Cat > Kind::Rabbit);
/// assert_eq!(Kind::Camel.letter(), 'M');
/// assert_eq!(Kind::Horse.full_count(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Kind {
    /// Eight a side; never steps backward.
    Rabbit,
    /// Two a side.
    Cat,
    /// Two a side.
    Dog,
    /// Two a side.
    Horse,
    /// One a side; `M` in the notation.
    Camel,
    /// One a side; never frozen.
    Elephant,
}

impl Kind {
    /// Weakest first, in the order of their indices.
    pub const ALL: [Self; 6] = [
        Self::Rabbit,
        Self::Cat,
        Self::Dog,
        Self::Horse,
        Self::Camel,
        Self::Elephant,
    ];

    /// 0 (rabbit) to 5 (elephant).
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kind with an index of 0 (rabbit) to 5 (elephant); only the lowest three bits count, and 6 and 7 are no kind's.
    #[inline]
    pub(super) const fn from_bits(bits: usize) -> Self {
        const KINDS: [Kind; 8] = {
            let mut kinds = [Kind::Elephant; 8];
            let mut index = 0;
            while index < Kind::ALL.len() {
                kinds[index] = Kind::ALL[index];
                index += 1;
            }
            kinds
        };
        KINDS[bits & 7]
    }

    /// How many of this kind a side starts with.
    #[inline]
    pub const fn full_count(self) -> u32 {
        match self {
            Self::Rabbit => 8,
            Self::Cat | Self::Dog | Self::Horse => 2,
            Self::Camel | Self::Elephant => 1,
        }
    }

    /// The letter of the notation, in upper case.
    pub const fn letter(self) -> char {
        match self {
            Self::Rabbit => 'R',
            Self::Cat => 'C',
            Self::Dog => 'D',
            Self::Horse => 'H',
            Self::Camel => 'M',
            Self::Elephant => 'E',
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rabbit => "rabbit",
            Self::Cat => "cat",
            Self::Dog => "dog",
            Self::Horse => "horse",
            Self::Camel => "camel",
            Self::Elephant => "elephant",
        })
    }
}

/// A piece: its side and its kind.
///
/// ```
/// use arimaa::rules::{Kind, Piece, Side};
/// let piece: Piece = "m".parse()?;
/// assert_eq!(piece, Piece::new(Side::Silver, Kind::Camel));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// Whose it is.
    pub side: Side,
    /// What it is.
    pub kind: Kind,
}

impl Piece {
    /// All twelve, by [`index`](Self::index).
    pub const ALL: [Self; 12] = {
        let mut pieces = [Self::new(Side::Gold, Kind::Rabbit); 12];
        let mut index = 0;
        while index < pieces.len() {
            pieces[index] = Self::new(Side::ALL[index / 6], Kind::ALL[index % 6]);
            index += 1;
        }
        pieces
    };

    /// A piece of a side and a kind.
    #[inline]
    pub const fn new(side: Side, kind: Kind) -> Self {
        Self { side, kind }
    }

    /// 0 to 5 for Gold's rabbit to elephant, 6 to 11 for Silver's.
    #[inline]
    pub const fn index(self) -> usize {
        self.side.index() * 6 + self.kind.index()
    }

    /// The letter of the notation: upper case for Gold, lower case for Silver.
    pub const fn letter(self) -> char {
        match self.side {
            Side::Gold => self.kind.letter(),
            Side::Silver => self.kind.letter().to_ascii_lowercase(),
        }
    }

    /// The piece of a letter of the notation.
    pub fn from_letter(letter: char) -> Option<Self> {
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.letter() == letter.to_ascii_uppercase())?;
        let side = if letter.is_ascii_uppercase() {
            Side::Gold
        } else {
            Side::Silver
        };
        Some(Self { side, kind })
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_names_one_piece() {
        for side in Side::ALL {
            for kind in Kind::ALL {
                let piece = Piece::new(side, kind);
                assert_eq!(Piece::from_letter(piece.letter()), Some(piece));
            }
        }
        assert_eq!(Piece::from_letter('x'), None);
        assert_eq!(Kind::ALL.into_iter().map(Kind::full_count).sum::<u32>(), 16);
    }
}
