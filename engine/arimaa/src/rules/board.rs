//! The pieces on the board, and what follows from them alone: which are frozen, which are lost in a trap.

use super::{Bitboard, Kind, Piece, Side, Square, zobrist};
use std::fmt;
use std::hash::{Hash, Hasher};

/// Pieces on squares, with a Zobrist key that every change keeps up.
///
/// ```
/// use arimaa::rules::{Board, Kind, Side, Square};
/// let board: Board = "[r                                  Er                          R]".parse()?;
/// let e4: Square = "e4".parse()?;
/// assert_eq!(board.piece_at(e4).map(|piece| piece.kind), Some(Kind::Rabbit));
/// assert!(board.frozen(Side::Silver).contains(e4), "the elephant beside it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Board {
    sides: [Bitboard; 2],
    /// The index of each piece's kind in binary, the lowest bit first: rabbits stand in none of the three.
    strength: [Bitboard; 3],
    key: u64,
}

impl Board {
    /// A board without pieces.
    pub const EMPTY: Self = Self {
        sides: [Bitboard::EMPTY; 2],
        strength: [Bitboard::EMPTY; 3],
        key: 0,
    };

    /// The piece on a square.
    #[inline]
    pub fn piece_at(&self, square: Square) -> Option<Piece> {
        let side = if self.sides[0].contains(square) {
            Side::Gold
        } else if self.sides[1].contains(square) {
            Side::Silver
        } else {
            return None;
        };
        Some(Piece {
            side,
            kind: self.kind_at(square),
        })
    }

    /// The kind of the piece on an occupied square. (An empty square reads as a rabbit's.)
    #[inline]
    pub(super) fn kind_at(&self, square: Square) -> Kind {
        let bit = |plane: usize| (self.strength[plane].0 >> square.index() & 1) as usize;
        Kind::from_bits(bit(0) | bit(1) << 1 | bit(2) << 2)
    }

    /// All squares with a piece.
    #[inline]
    pub fn occupied(&self) -> Bitboard {
        self.sides[0] | self.sides[1]
    }

    /// All squares without a piece.
    #[inline]
    pub fn empty(&self) -> Bitboard {
        !self.occupied()
    }

    /// The squares of a side's pieces.
    #[inline]
    pub fn side(&self, side: Side) -> Bitboard {
        match side {
            Side::Gold => self.sides[0],
            Side::Silver => self.sides[1],
        }
    }

    /// The squares of both sides' pieces of a kind.
    #[inline]
    pub fn kind(&self, kind: Kind) -> Bitboard {
        let [low, middle, high] = self.strength;
        match kind {
            Kind::Rabbit => self.occupied() & !(low | middle | high),
            Kind::Cat => low & !(middle | high),
            Kind::Dog => middle & !low,
            Kind::Horse => middle & low,
            Kind::Camel => high & !low,
            Kind::Elephant => high & low,
        }
    }

    /// The squares of a side's pieces of a kind.
    #[inline]
    pub fn pieces(&self, side: Side, kind: Kind) -> Bitboard {
        self.side(side) & self.kind(kind)
    }

    /// The board's Zobrist key: equal boards have equal keys, and different ones almost surely different keys.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Puts a piece on an empty square.
    #[inline]
    pub fn put(&mut self, square: Square, piece: Piece) {
        debug_assert!(self.empty().contains(square));
        self.toggle(Bitboard::of(square), piece);
        self.key ^= zobrist::piece(piece, square);
    }

    /// Takes the piece off a square.
    #[inline]
    pub fn take(&mut self, square: Square) -> Option<Piece> {
        let piece = self.piece_at(square)?;
        self.toggle(Bitboard::of(square), piece);
        self.key ^= zobrist::piece(piece, square);
        Some(piece)
    }

    #[inline]
    fn toggle(&mut self, squares: Bitboard, piece: Piece) {
        // By masks, not by an index: so that the compiler can keep a board in registers.
        let of_gold = Bitboard(u64::from(piece.side == Side::Gold).wrapping_neg());
        self.sides[0] ^= squares & of_gold;
        self.sides[1] ^= squares & !of_gold;
        for (plane, bit) in self.strength.iter_mut().zip(index_bits(piece.kind)) {
            *plane ^= squares & bit;
        }
    }

    /// Moves the piece on `from` to the empty neighbour `to`, then lets the traps act that this can set off: the one on `to`
    /// and the one beside `from`. Returns what a trap took: at most one piece, and always one of the side whose piece moved.
    #[inline]
    pub fn step(&mut self, from: Square, to: Square) -> Option<(Square, Piece)> {
        let piece = self.piece_at(from)?;
        self.move_piece(from, to, piece)
    }

    /// [`step`](Self::step) of a piece that is known to stand on `from`.
    #[inline]
    pub(super) fn move_piece(
        &mut self,
        from: Square,
        to: Square,
        piece: Piece,
    ) -> Option<(Square, Piece)> {
        debug_assert!(self.piece_at(from) == Some(piece) && self.empty().contains(to));
        self.toggle(Bitboard::of(from) | Bitboard::of(to), piece);
        self.key ^= zobrist::piece(piece, from) ^ zobrist::piece(piece, to);
        let own = self.side(piece.side);
        let concerned = (Bitboard::around(from) | Bitboard::of(to)) & Bitboard::TRAPS;
        // No more than one trap is concerned: a square is next to one at most, and a trap to none.
        let square = (own & concerned).first()?;
        if !(own & Bitboard::around(square)).is_empty() {
            return None;
        }
        self.take(square).map(|lost| (square, lost))
    }

    /// The pieces of a side that stand on a trap with no friend beside it.
    #[inline]
    pub fn unsupported(&self, side: Side) -> Bitboard {
        let own = self.side(side);
        own & Bitboard::TRAPS & !own.neighbours()
    }

    /// The pieces of a side that are frozen: next to a stronger enemy piece and to no friend.
    #[inline]
    pub fn frozen(&self, side: Side) -> Bitboard {
        let own = self.side(side);
        own & self.beside_stronger(self.side(side.opponent())) & !own.neighbours()
    }

    /// The squares next to a piece among `attackers` that is stronger than what stands on them; an empty square counts as a
    /// rabbit's.
    #[inline]
    pub(super) fn beside_stronger(&self, attackers: Bitboard) -> Bitboard {
        let [low, middle, high] = self.strength;
        let above_cat = middle | high;
        // Whatever is stronger than a rabbit, a cat, a dog, a horse, a camel.
        let thresholds = [
            low | above_cat,
            above_cat,
            high | (middle & low),
            high,
            high & low,
        ];
        thresholds
            .into_iter()
            .fold(Bitboard::EMPTY, |beside, stronger| {
                beside | ((attackers & stronger).neighbours() & !stronger)
            })
    }

    /// The pieces of a side that are stronger than a kind.
    #[inline]
    pub fn stronger(&self, side: Side, than: Kind) -> Bitboard {
        // The indices compared bit by bit, from the lowest on: a higher bit overrules all before it.
        let stronger = self
            .strength
            .iter()
            .zip(index_bits(than))
            .fold(Bitboard::EMPTY, |stronger, (&plane, bit)| {
                (plane & !bit) | (!(plane ^ bit) & stronger)
            });
        self.side(side) & stronger
    }

    /// The pieces of a side that are weaker than a kind.
    #[inline]
    pub fn weaker(&self, side: Side, than: Kind) -> Bitboard {
        let weaker = self
            .strength
            .iter()
            .zip(index_bits(than))
            .fold(Bitboard::EMPTY, |weaker, (&plane, bit)| {
                (!plane & bit) | (!(plane ^ bit) & weaker)
            });
        self.side(side) & weaker
    }

    /// The squares on which two boards differ.
    #[inline]
    pub fn difference(&self, other: &Self) -> Bitboard {
        let sides = (self.sides[0] ^ other.sides[0]) | (self.sides[1] ^ other.sides[1]);
        self.strength
            .iter()
            .zip(other.strength)
            .fold(sides, |squares, (plane, other)| squares | (*plane ^ other))
    }

    /// The pieces with their squares, a1 to h8.
    pub fn iter(&self) -> impl Iterator<Item = (Square, Piece)> + '_ {
        self.occupied()
            .into_iter()
            .filter_map(|square| Some((square, self.piece_at(square)?)))
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        self.iter()
            .map(|(square, piece)| (square.mirror(), piece))
            .collect()
    }

    /// The colours exchanged and the ranks flipped: the same game with the sides' names exchanged.
    pub fn swap_colours(&self) -> Self {
        self.iter()
            .map(|(square, piece)| (square.flip(), Piece::new(piece.side.opponent(), piece.kind)))
            .collect()
    }
}

/// The index of a kind in binary, the lowest bit first, each bit as the set of all squares or of none.
#[inline]
const fn index_bits(kind: Kind) -> [Bitboard; 3] {
    let index = kind.index() as u64;
    [
        Bitboard((index & 1).wrapping_neg()),
        Bitboard((index >> 1 & 1).wrapping_neg()),
        Bitboard((index >> 2).wrapping_neg()),
    ]
}

/// Later pieces replace earlier ones on the same square.
impl FromIterator<(Square, Piece)> for Board {
    fn from_iter<I: IntoIterator<Item = (Square, Piece)>>(pieces: I) -> Self {
        let mut board = Self::EMPTY;
        for (square, piece) in pieces {
            board.take(square);
            board.put(square, piece);
        }
        board
    }
}

impl Hash for Board {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.key);
    }
}

/// The ranks from 8 to 1, a dot for an empty square.
impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rank in (0..8).rev() {
            for file in 0..8 {
                let piece = self.piece_at(Square::at(file, rank));
                write!(f, "{}", piece.map_or('.', Piece::letter))?;
            }
            if rank > 0 {
                write!(f, "/")?;
            }
        }
        Ok(())
    }
}
