//! Captures of enemy pieces on a [`Field`], by the number of steps that they take.
//!
//! Only a step of an enemy piece removes an enemy piece: the mover's own steps take no support from it. So a capture ends with a
//! push or a pull, a pair of steps. It moves the only enemy piece next to a trap: onto the trap, where it is captured, or away
//! from a piece on the trap, which is captured then. Before the pair there is room for one single step, for two, or for another
//! pair.

use super::field::{Field, Move, around};
use crate::rules::bitboard::Bitboard;
use crate::rules::state::TURN_STEPS;
use arrayvec::ArrayVec;

/// Sets of enemy pieces by the number of steps: element k holds those that can be captured within k steps.
pub(super) type Captures = [Bitboard; TURN_STEPS as usize + 1];

/// The captures within so many steps, 4 at most.
pub(super) fn within(field: &Field, steps: u8) -> Captures {
    let mut found = Captures::default();
    if steps < 2 {
        return found;
    }
    let able = field.able();
    let mut left = ArrayVec::<Target, 4>::new();
    for target in targets(field) {
        if target.is_met(field, able) {
            found[2] |= target.victim;
        } else {
            left.push(target);
        }
    }
    found[3] = found[2];
    if steps >= 3 {
        left.retain(|target| {
            let is_met = after_single(field, able, target);
            if is_met {
                found[3] |= target.victim;
            }
            !is_met
        });
    }
    found[4] = found[3];
    if steps >= 4 {
        for target in left {
            if after_two_singles(field, able, &target) {
                found[4] |= target.victim;
            }
        }
        field.any_pair(able, Bitboard::ALL, |next, pair| {
            found[4] |= of_pair(field, next, pair);
            false
        });
    }
    found
}

/// A set of squares on the field after a step of an enemy piece, as squares of the field before it.
pub(super) fn before(set: Bitboard, step: Move) -> Bitboard {
    if (set & step.to).is_empty() {
        set
    } else {
        set ^ step.to ^ step.from
    }
}

/// The only enemy piece next to a trap, and what is captured once it moves.
#[derive(Debug, Clone, Copy)]
struct Target {
    trap: Bitboard,
    piece: Bitboard,
    /// The piece on the trap, which the other one supports, or the piece itself.
    victim: Bitboard,
}

fn targets(field: &Field) -> impl Iterator<Item = Target> {
    Bitboard::TRAPS.into_iter().filter_map(|trap| {
        let piece = Bitboard::around(trap) & field.enemy;
        let trap = Bitboard::of(trap);
        let supported = trap & field.enemy;
        let victim = if supported.is_empty() {
            piece
        } else {
            supported
        };
        (piece.count() == 1).then_some(Target {
            trap,
            piece,
            victim,
        })
    })
}

impl Target {
    /// Whether the next two steps can capture the victim.
    fn is_met(&self, field: &Field, able: Bitboard) -> bool {
        let beside = self.piece.neighbours();
        let stronger = beside & able & field.stronger_than(self.piece);
        if stronger.is_empty() {
            return false;
        }
        let empty = field.empty();
        if self.victim != self.piece {
            // A push to any side, or a pull: a step of the puller to any square.
            return !((beside | stronger.neighbours()) & empty).is_empty();
        }
        let puller = stronger & self.trap;
        !(self.trap & empty).is_empty()
            || !puller.is_empty() && !(puller.neighbours() & empty).is_empty()
    }

    /// The squares on which a single step can change whether the next two steps capture: of pushers and pullers, of the friends
    /// that unfreeze them, and those that must be empty.
    fn zone(&self) -> Bitboard {
        around(around(self.piece))
    }
}

/// Single steps that start here can matter to a zone: they leave it, or a piece on a trap of the zone without its last friend.
fn starts(zone: Bitboard) -> Bitboard {
    zone | (Bitboard::TRAPS & zone).neighbours()
}

/// Whether a single step and a pair capture the victim.
fn after_single(field: &Field, able: Bitboard, target: &Target) -> bool {
    let zone = target.zone();
    field.any_single(able, starts(zone), zone, |next, _| {
        target.is_met(next, next.able())
    })
}

/// Whether two single steps and a pair capture the victim.
fn after_two_singles(field: &Field, able: Bitboard, target: &Target) -> bool {
    // The nearest stronger piece needs a step for each square to the side of the piece.
    let helpers = field.own & field.stronger_than(target.piece);
    if (helpers & around(target.zone())).is_empty() {
        return false;
    }
    // The first step may serve the second one, whose piece starts at most one square from its zone: it unfreezes that piece, is
    // made by it, or makes room for it.
    let zone = around(around(target.zone()));
    field.any_single(able, starts(zone), zone, |next, _| {
        after_single(next, next.able(), target)
    })
}

/// What another pair captures after a first one, as squares of the field before it.
fn of_pair(field: &Field, next: &Field, [first, second]: [Move; 2]) -> Bitboard {
    let able = next.able();
    let captured = targets(next)
        .filter(|target| target.is_met(next, able))
        .fold(Bitboard::EMPTY, |set, target| set | target.victim);
    let is_push = !(field.enemy & first.from).is_empty();
    before(captured, if is_push { first } else { second })
}
