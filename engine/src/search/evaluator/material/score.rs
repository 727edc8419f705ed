//! The score of a board: a whole number of thousandths of a logit.

use arimaa::rules::{Bitboard, Board, Direction, Kind, Side};

/// What a piece other than a rabbit is worth by how many enemy pieces are stronger: with n of them 2800 / (1.45 + n), and twice
/// that with none. More than 6 can't be stronger than a cat. This and [`LOGARITHM`] have the form of HarLog, the material measure
/// of the Arimaa forum; a first rabbit lost costs about 350, a camel 2300.
const PIECE: [i32; 7] = [3860, 1140, 810, 630, 510, 430, 380];

/// 1768 · ln n: what n rabbits are worth, and n pieces of any kind. The fewer there are, the more each is worth. Without any,
/// as much as half a piece.
const LOGARITHM: [i32; 17] = [
    -1225, 0, 1225, 1942, 2451, 2845, 3168, 3440, 3677, 3885, 4071, 4239, 4393, 4535, 4666, 4788,
    4902,
];

/// A side without rabbits has as good as lost the game.
const NO_RABBITS: i32 = -6000;

/// A rabbit's advance by its rank, in its side's view. It counts twice if the rabbit can step ahead, three times if besides
/// its whole file is empty up to the goal.
const ADVANCE: [i32; 8] = [0, 0, 10, 30, 70, 160, 360, 4000];

/// A piece beside a trap, by its kind.
const BESIDE_TRAP: [i32; 6] = [2, 8, 10, 20, 30, 50];

/// A trap by how many friends stand beside it: the second makes it safe.
const FRIENDS_OF_TRAP: [i32; 5] = [0, 20, 45, 55, 60];

/// A frozen piece, by its kind. Nothing freezes an elephant.
const FROZEN: [i32; 6] = [-20, -60, -80, -140, -220, 0];

/// A piece that the enemy can take with a push or a pull, by its kind: about half of what it would cost.
const IN_DANGER: [i32; 6] = [-200, -300, -380, -600, -1200, 0];

/// The score in the view of a side; that of the other side is its negative.
pub(super) fn score(board: &Board, side: Side) -> i32 {
    let own = Army::new(board, side);
    let enemy = Army::new(board, side.opponent());
    own.score(&enemy) - enemy.score(&own)
}

/// One side's pieces as that side sees them, playing north.
struct Army {
    all: Bitboard,
    /// By kind.
    kinds: [Bitboard; 6],
    /// The pieces that are stronger than a kind.
    stronger: [Bitboard; 6],
}

impl Army {
    #[inline]
    fn new(board: &Board, side: Side) -> Self {
        let kinds = Kind::ALL.map(|kind| board.pieces(side, kind).seen_by(side));
        let mut stronger = [Bitboard::EMPTY; 6];
        for index in (0..5).rev() {
            stronger[index] = stronger[index + 1] | kinds[index + 1];
        }
        Self {
            all: stronger[0] | kinds[0],
            kinds,
            stronger,
        }
    }

    /// What this side has, before what the enemy has is taken off.
    #[inline]
    fn score(&self, enemy: &Self) -> i32 {
        let beside_stronger = self.beside_stronger(enemy);
        let frozen = beside_stronger & !self.all.neighbours();
        let occupied = self.all | enemy.all.flip();
        self.material(enemy)
            + self.rabbits(frozen, occupied)
            + self.traps()
            + self.sum(frozen, FROZEN)
            + self.sum(self.in_danger(beside_stronger, occupied), IN_DANGER)
    }

    /// The sum over the pieces on some squares.
    #[inline]
    fn sum(&self, squares: Bitboard, by_kind: [i32; 6]) -> i32 {
        self.kinds
            .iter()
            .zip(by_kind)
            .map(|(&pieces, worth)| (pieces & squares).count() as i32 * worth)
            .sum()
    }

    #[inline]
    fn material(&self, enemy: &Self) -> i32 {
        let rabbits = self.kinds[Kind::Rabbit.index()].count() as usize;
        let pieces = self.all.count() as usize;
        let by_strength: i32 = (Kind::Cat.index()..=Kind::Elephant.index())
            .map(|kind| {
                let stronger = enemy.stronger[kind].count() as usize;
                self.kinds[kind].count() as i32 * PIECE[stronger.min(PIECE.len() - 1)]
            })
            .sum();
        let none = if rabbits == 0 { NO_RABBITS } else { 0 };
        by_strength + LOGARITHM[rabbits.min(16)] + LOGARITHM[pieces.min(16)] + none
    }

    #[inline]
    fn rabbits(&self, frozen: Bitboard, occupied: Bitboard) -> i32 {
        let before = occupied.shift(Direction::South);
        // The squares that have a piece anywhere ahead of them.
        let blocked = [8, 16, 32]
            .into_iter()
            .fold(before, |blocked, by| blocked | Bitboard(blocked.0 >> by));
        let advanced = self.kinds[Kind::Rabbit.index()] & !Bitboard::home(Side::Gold);
        advanced
            .into_iter()
            .map(|rabbit| {
                let able = !(before | frozen).contains(rabbit);
                let open = able && !blocked.contains(rabbit);
                ADVANCE[usize::from(rabbit.rank())] * (1 + i32::from(able) + i32::from(open))
            })
            .sum()
    }

    #[inline]
    fn traps(&self) -> i32 {
        let friends: i32 = Bitboard::TRAPS
            .into_iter()
            .map(|trap| FRIENDS_OF_TRAP[(self.all & Bitboard::around(trap)).count() as usize])
            .sum();
        friends + self.sum(Bitboard::TRAPS.neighbours(), BESIDE_TRAP)
    }

    /// The own pieces next to stronger enemy ones.
    #[inline]
    fn beside_stronger(&self, enemy: &Self) -> Bitboard {
        (0..5).fold(Bitboard::EMPTY, |found, kind| {
            let reach = enemy.stronger[kind].flip().neighbours();
            found | (self.kinds[kind] & reach)
        })
    }

    /// Pieces beside a stronger enemy and an empty trap that no friend but them stands by, and pieces on a trap whose only friend
    /// is beside a stronger enemy.
    #[inline]
    fn in_danger(&self, beside_stronger: Bitboard, occupied: Bitboard) -> Bitboard {
        let [north, east, south, west] = Direction::ALL.map(|direction| self.all.shift(direction));
        let two_friends = (north & east) | (south & west) | ((north | east) & (south | west));
        let weak = Bitboard::TRAPS & !two_friends;
        let beside_empty = beside_stronger & (weak & !occupied).neighbours();
        beside_empty | (self.all & weak & beside_stronger.neighbours())
    }
}
