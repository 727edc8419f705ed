//! The pieces on the board, and what the rules read off them alone: who is frozen, who is lost in a trap.

use super::{Bitboard, Kind, Piece, Side, Square, zobrist};
use std::fmt;
use std::hash::{Hash, Hasher};

/// Pieces on squares, with a Zobrist key that every change keeps up.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Board {
    sides: [Bitboard; 2],
    kinds: [Bitboard; 6],
    key: u64,
}

impl Board {
    /// A board without pieces.
    pub const EMPTY: Self = Self {
        sides: [Bitboard::EMPTY; 2],
        kinds: [Bitboard::EMPTY; 6],
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
    fn kind_at(&self, square: Square) -> Kind {
        let mut kind = Kind::Rabbit;
        for candidate in &Kind::ALL[1..] {
            if self.kinds[candidate.index()].contains(square) {
                kind = *candidate;
            }
        }
        kind
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
        self.sides[side.index()]
    }

    /// The squares of both sides' pieces of a kind.
    #[inline]
    pub fn kind(&self, kind: Kind) -> Bitboard {
        self.kinds[kind.index()]
    }

    /// The squares of a side's pieces of a kind.
    #[inline]
    pub fn pieces(&self, side: Side, kind: Kind) -> Bitboard {
        self.sides[side.index()] & self.kinds[kind.index()]
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
        self.toggle(square, piece);
    }

    /// Takes the piece off a square.
    #[inline]
    pub fn take(&mut self, square: Square) -> Option<Piece> {
        let piece = self.piece_at(square)?;
        self.toggle(square, piece);
        Some(piece)
    }

    #[inline]
    fn toggle(&mut self, square: Square, piece: Piece) {
        self.sides[piece.side.index()] ^= Bitboard::of(square);
        self.kinds[piece.kind.index()] ^= Bitboard::of(square);
        self.key ^= zobrist::piece(piece, square);
    }

    /// Moves the piece on `from` to the empty neighbour `to`, then lets the traps act. Returns what a trap took: at most
    /// one piece, and always one of the side whose piece moved.
    #[inline]
    pub fn step(&mut self, from: Square, to: Square) -> Option<(Square, Piece)> {
        let piece = self.take(from)?;
        self.put(to, piece);
        let square = self.unsupported(piece.side).first()?;
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
        let enemy = self.side(side.opponent());
        let mut stronger = Bitboard::EMPTY;
        let mut dominated = Bitboard::EMPTY;
        for kind in Kind::ALL.into_iter().rev() {
            dominated |= self.kind(kind) & stronger.neighbours();
            stronger |= self.kind(kind) & enemy;
        }
        own & dominated & !own.neighbours()
    }

    /// The pieces of a side that are stronger than a kind.
    #[inline]
    pub fn stronger(&self, side: Side, than: Kind) -> Bitboard {
        let mut set = Bitboard::EMPTY;
        for kind in &Kind::ALL[than.index() + 1..] {
            set |= self.kind(*kind);
        }
        set & self.side(side)
    }

    /// The pieces of a side that are weaker than a kind.
    #[inline]
    pub fn weaker(&self, side: Side, than: Kind) -> Bitboard {
        let mut set = Bitboard::EMPTY;
        for kind in &Kind::ALL[..than.index()] {
            set |= self.kind(*kind);
        }
        set & self.side(side)
    }

    /// The squares on which two boards differ.
    #[inline]
    pub fn difference(&self, other: &Self) -> Bitboard {
        let mut squares = (self.sides[0] ^ other.sides[0]) | (self.sides[1] ^ other.sides[1]);
        for kind in Kind::ALL {
            squares |= self.kind(kind) ^ other.kind(kind);
        }
        squares
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
