//! The end of the enemy's last ways to move, on a [`Field`].
//!
//! A piece that can move stops doing so only if it is frozen, captured, or blocked on all sides. A stronger piece has to come next
//! to it, it has to stand on a trap, or each empty square beside it has to be filled, one by one step.

use super::field::{Field, Line, around, push};
use crate::rules::bitboard::Bitboard;
use crate::rules::piece::Side;

/// A step of an own piece takes the last step from no more enemy pieces: those beside the square that it ends on, but for the one it
/// comes from.
const STEPS_TAKEN: u32 = 3;

/// Within so many steps, no more than `steps`, the game is won because the enemy can't move.
pub(super) fn within(field: &Field, steps: u8, line: &mut Line) -> bool {
    let [stepping, pushing] = field.enemy_mobile();
    let mobile = stepping | pushing;
    if mobile.is_empty() && is_decided_by_it(field) {
        return true;
    }
    if steps == 0 || least_fills(field, mobile, steps) > u32::from(steps) {
        return false;
    }
    let able = field.able();
    let all = Bitboard::ALL;
    // A push or a pull takes steps no farther than three squares from the enemy piece that it moves, and pushes no farther than four:
    // a puller that ends two squares away may fill the last square to push a piece to.
    let moved = match steps {
        2 => near_all(stepping, 3) & near_all(pushing, 4),
        _ => all,
    };
    let by_pair = steps > 1
        && field.any_pair(able, moved, |next, pair| {
            within(next, steps - 2, line) && push(line, &pair)
        });
    if by_pair {
        return true;
    }
    let (from, to) = match steps {
        1 | 2 if stepping.count() > STEPS_TAKEN * u32::from(steps) => return false,
        1 if stepping.is_empty() => (near_all(pushing, 3), Bitboard::EMPTY),
        1 => (Bitboard::EMPTY, near_all(stepping, 1)),
        _ => (all, all),
    };
    field.any_single(able, from, to, |next, step| {
        within(next, steps - 1, line) && push(line, &[step])
    })
}

/// The squares that are no farther than `distance` from each piece of a set.
fn near_all(pieces: Bitboard, distance: u8) -> Bitboard {
    let near = |piece| (0..distance).fold(Bitboard::of(piece), |near, _| around(near));
    pieces
        .into_iter()
        .fold(Bitboard::ALL, |all, piece| all & near(piece))
}

/// Whether a sequence of at most `steps` steps may do it. False says that none does.
pub(super) fn is_possible(field: &Field, steps: u8) -> bool {
    let [stepping, pushing] = field.enemy_mobile();
    least_fills(field, stepping | pushing, steps) <= u32::from(steps)
}

/// Whether the game is won as the enemy can't move: no goal and no elimination decides it before.
pub(super) fn is_won(field: &Field) -> bool {
    field.enemy_mobile() == [Bitboard::EMPTY; 2] && is_decided_by_it(field)
}

fn is_decided_by_it(field: &Field) -> bool {
    let (own, enemy) = (field.rabbits(), field.enemy_rabbits());
    let at_goal = own & Bitboard::goal(Side::Gold) | enemy & Bitboard::goal(Side::Silver);
    at_goal.is_empty() && !own.is_empty() && !enemy.is_empty()
}

/// A lower bound of the steps that end the enemy's ways to move, if at most `steps` do: the empty squares that have to be filled, since
/// a step fills one. They are those beside the pieces that no stronger piece can come next to in time, and that are not on traps: such
/// a piece can neither be moved nor frozen nor captured.
fn least_fills(field: &Field, mobile: Bitboard, steps: u8) -> u32 {
    let mut out_of_reach = mobile & !Bitboard::TRAPS;
    for (stronger, near) in field.reach(steps + 1) {
        out_of_reach &= stronger | !near;
    }
    let empty = field.empty();
    let to_fill = empty & field.enemy_steps(out_of_reach);
    // It must not be able to push a piece away either: what is around that is filled too, or another takes its place.
    let pushed = field.own & field.dominated(out_of_reach);
    let more = empty & pushed.neighbours() & !to_fill;
    to_fill.count() + u32::from(!more.is_empty())
}
