//! A small copy of a board for the solvers: seen by the mover, playing north, without keys.

use crate::rules::action::Step;
use crate::rules::bitboard::Bitboard;
use crate::rules::board::Board;
use crate::rules::piece::{Kind, Side};
use crate::rules::square::{Direction, Square};
use crate::rules::state::TURN_STEPS;
use arrayvec::ArrayVec;

/// Steps on a field, the last one first.
pub(super) type Line = ArrayVec<Move, { TURN_STEPS as usize }>;

/// Puts the steps before those that the line holds.
pub(super) fn push(line: &mut Line, steps: &[Move]) -> bool {
    line.extend(steps.iter().rev().copied());
    true
}

/// The squares of a set and those next to them.
#[inline]
pub(super) fn around(set: Bitboard) -> Bitboard {
    set | set.neighbours()
}

/// A step on a [`Field`]: two sets of one square each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    pub(super) from: Bitboard,
    pub(super) to: Bitboard,
}

impl Move {
    pub(super) fn new(from: Square, to: Square) -> Self {
        Self {
            from: Bitboard::of(from),
            to: Bitboard::of(to),
        }
    }

    /// The step on the board of the side that sees the field.
    pub(super) fn step(self, side: Side) -> Option<Step> {
        let (from, to): (Square, Square) = (self.from.first()?, self.to.first()?);
        let (from, to) = (from.seen_by(side), to.seen_by(side));
        Some(Step::new(from, from.direction_to(to)?))
    }
}

/// Where the mover's and the enemy's pieces stand, and how strong they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) own: Bitboard,
    pub(super) enemy: Bitboard,
    /// Both sides' pieces that are at least a cat, a dog, a horse, a camel, an elephant.
    strong: [Bitboard; 5],
}

impl Field {
    /// The board as `side` sees it.
    #[inline]
    pub(super) fn new(board: &Board, side: Side) -> Self {
        let mut strong = [Bitboard::EMPTY; 5];
        let mut above = Bitboard::EMPTY;
        for (set, kind) in strong.iter_mut().zip(&Kind::ALL[1..]).rev() {
            above |= board.kind(*kind).seen_by(side);
            *set = above;
        }
        Self {
            own: board.side(side).seen_by(side),
            enemy: board.side(side.opponent()).seen_by(side),
            strong,
        }
    }

    /// The squares without a piece.
    #[inline]
    pub(super) fn empty(&self) -> Bitboard {
        !(self.own | self.enemy)
    }

    /// The mover's rabbits.
    #[inline]
    pub(super) fn rabbits(&self) -> Bitboard {
        self.own & !self.strong[0]
    }

    /// The enemy's rabbits.
    #[inline]
    pub(super) fn enemy_rabbits(&self) -> Bitboard {
        self.enemy & !self.strong[0]
    }

    /// The squares on which a rabbit of the mover without a friend beside it is frozen.
    #[inline]
    pub(super) fn cold(&self) -> Bitboard {
        (self.enemy & self.strong[0]).neighbours()
    }

    /// The pieces, of either side, that are weaker than a piece of the set `by` next to them.
    #[inline]
    pub(super) fn dominated(&self, by: Bitboard) -> Bitboard {
        let mut dominated = Bitboard::EMPTY;
        for set in &self.strong {
            dominated |= (by & *set).neighbours() & !*set;
        }
        dominated
    }

    /// The mover's pieces that aren't frozen.
    #[inline]
    pub(super) fn able(&self) -> Bitboard {
        self.own & (self.own.neighbours() | !self.dominated(self.enemy))
    }

    /// The enemy's pieces that a piece of the set `by` may push or pull.
    #[inline]
    pub(super) fn movable(&self, by: Bitboard) -> Bitboard {
        self.enemy & self.dominated(by)
    }

    /// The enemy's pieces that could make a step, and those that could begin a push, if the enemy were to move.
    pub(super) fn enemy_mobile(&self) -> [Bitboard; 2] {
        let able = self.enemy & (self.enemy.neighbours() | !self.dominated(self.own));
        let empty = self.empty();
        // A rabbit has an empty square before it, to the south, or beside it.
        let sides = empty.shift(Direction::East) | empty.shift(Direction::West);
        let ahead = empty.shift(Direction::North) | sides;
        let steps = able & (ahead | self.strong[0] & empty.neighbours());
        let pushable = self.own & empty.neighbours();
        let mut pushes = Bitboard::EMPTY;
        for set in &self.strong {
            pushes |= able & *set & (pushable & !*set).neighbours();
        }
        [steps, pushes]
    }

    /// The squares next to the enemy's pieces of a set to which they may step if they are empty.
    pub(super) fn enemy_steps(&self, pieces: Bitboard) -> Bitboard {
        let pieces = self.enemy & pieces;
        let forward = pieces.shift(Direction::South);
        let sides = pieces.shift(Direction::East) | pieces.shift(Direction::West);
        forward | sides | (pieces & self.strong[0]).neighbours()
    }

    /// For each strength: all pieces that are at least as strong, and the squares that are at most `steps` from one of the mover's.
    pub(super) fn reach(&self, steps: u8) -> [(Bitboard, Bitboard); 5] {
        self.strong.map(|set| {
            let near = (0..steps).fold(self.own & set, |near, _| around(near));
            (set, near)
        })
    }

    /// All pieces that are stronger than the one on a square.
    #[inline]
    pub(super) fn stronger_than(&self, piece: Bitboard) -> Bitboard {
        let mut stronger = Bitboard::EMPTY;
        for set in self.strong.iter().rev() {
            if (*set & piece).is_empty() {
                stronger = *set;
            }
        }
        // The weakest set without the piece is the largest one, and the last to be taken.
        stronger
    }

    /// The field after a step of the mover's piece, and after the traps have acted.
    #[inline]
    pub(super) fn after_own(&self, step: Move) -> Self {
        let mut next = *self;
        next.own = next.own ^ step.from ^ step.to;
        next.shift_strength(step);
        let lost = next.own & Bitboard::TRAPS & !next.own.neighbours();
        next.own &= !lost;
        next.drop_strength(lost);
        next
    }

    /// The field after a step of the enemy's piece, and after the traps have acted.
    #[inline]
    pub(super) fn after_enemy(&self, step: Move) -> Self {
        let mut next = *self;
        next.enemy = next.enemy ^ step.from ^ step.to;
        next.shift_strength(step);
        let lost = next.enemy & Bitboard::TRAPS & !next.enemy.neighbours();
        next.enemy &= !lost;
        next.drop_strength(lost);
        next
    }

    #[inline]
    fn shift_strength(&mut self, step: Move) {
        for set in &mut self.strong {
            let here = if (*set & step.from).is_empty() {
                Bitboard::EMPTY
            } else {
                step.from | step.to
            };
            set.0 ^= here.0;
        }
    }

    #[inline]
    fn drop_strength(&mut self, lost: Bitboard) {
        for set in &mut self.strong {
            *set &= !lost;
        }
    }

    /// Whether `then` holds after a single step of one of the mover's pieces `able` that starts in `from` or ends in `to`.
    #[inline]
    pub(super) fn any_single(
        &self,
        able: Bitboard,
        from: Bitboard,
        to: Bitboard,
        mut then: impl FnMut(&Self, Move) -> bool,
    ) -> bool {
        let empty = self.empty();
        for direction in Direction::ALL {
            let back = direction.opposite();
            let mut movers = able & empty.shift(back) & (from | to.shift(back));
            if direction == Direction::South {
                movers &= self.strong[0];
            }
            for mover in movers {
                let mover = Bitboard::of(mover);
                let step = Move {
                    from: mover,
                    to: mover.shift(direction),
                };
                if then(&self.after_own(step), step) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether `then` holds after a push or a pull, by one of the mover's pieces `able`, of an enemy piece in `moved`.
    #[inline]
    pub(super) fn any_pair(
        &self,
        able: Bitboard,
        moved: Bitboard,
        mut then: impl FnMut(&Self, [Move; 2]) -> bool,
    ) -> bool {
        for square in self.movable(able) & moved {
            let square = Bitboard::of(square);
            let around = square.neighbours();
            let stronger = self.stronger_than(square) & around;
            for to in around & self.empty() {
                let first = Move {
                    from: square,
                    to: Bitboard::of(to),
                };
                let between = self.after_enemy(first);
                // No piece thaws meanwhile: a freezer that a trap takes stood next to the pushed piece, so not to its neighbours.
                for pusher in stronger & able {
                    let second = Move {
                        from: Bitboard::of(pusher),
                        to: square,
                    };
                    if then(&between.after_own(second), [first, second]) {
                        return true;
                    }
                }
            }
            for puller in stronger & able {
                let puller = Bitboard::of(puller);
                let second = Move {
                    from: square,
                    to: puller,
                };
                for to in puller.neighbours() & self.empty() {
                    let first = Move {
                        from: puller,
                        to: Bitboard::of(to),
                    };
                    if then(&self.after_own(first).after_enemy(second), [first, second]) {
                        return true;
                    }
                }
            }
        }
        false
    }
}
