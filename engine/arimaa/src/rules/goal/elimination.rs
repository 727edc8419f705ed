//! The capture of the enemy's last rabbits, at most two, on a [`Field`].
//!
//! Only an enemy's step into or away from a trap's neighbourhood takes an enemy piece, one piece a step. So every capture ends
//! with a push or a pull, and a rabbit needs one of them for every square between it and the nearest trap.

use super::field::{Field, Line, around, push};
use crate::rules::bitboard::Bitboard;

/// Within so many steps, no more than `steps`, the enemy has no rabbits left.
pub(super) fn within(field: &Field, steps: u8, line: &mut Line) -> bool {
    if field.enemy_rabbits().is_empty() {
        return true;
    }
    let least = least_steps(field);
    if least > steps {
        return false;
    }
    let able = field.able();
    let all = Bitboard::ALL;
    let taken = moved_by_last_pair(field);
    let (moved, reach) = match steps {
        4.. => (all, all),
        // One pair and at most one step before it: by its puller or pusher, next to that, or off a square that is needed,
        // be it that a trap clears the square.
        _ => (taken, around(around(around(taken)))),
    };
    let by_pair = field.any_pair(able, moved, |next, pair| {
        within(next, steps - 2, line) && push(line, &pair)
    });
    by_pair
        || least < steps
            && field.any_single(able, reach, reach, |next, step| {
                within(next, steps - 1, line) && push(line, &[step])
            })
}

/// No capture of all enemy rabbits takes fewer steps than this.
fn least_steps(field: &Field) -> u8 {
    let near = Bitboard::TRAPS.neighbours() | Bitboard::TRAPS;
    let least = |rabbit| {
        let rabbit = Bitboard::of(rabbit);
        if !(rabbit & near).is_empty() {
            2
        } else if !(rabbit & near.neighbours()).is_empty() {
            4
        } else {
            u8::MAX
        }
    };
    field
        .enemy_rabbits()
        .into_iter()
        .fold(0, |sum, rabbit| least(rabbit).saturating_add(sum))
}

/// The enemy pieces that a pair has to move when only one pair fits in: the rabbits, and those that keep them on traps.
fn moved_by_last_pair(field: &Field) -> Bitboard {
    let rabbits = field.enemy_rabbits();
    rabbits | (rabbits & Bitboard::TRAPS).neighbours()
}
