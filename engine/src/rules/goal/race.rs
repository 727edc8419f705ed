//! Goals of the mover on a [`Field`], by the number of steps that they take.
//!
//! The functions `in_one` to `in_four` answer "is there a goal in exactly so many steps?" where no shorter one exists: they are
//! called in that order, so that a goal that takes fewer steps further down would have been found as a shorter one before. Where
//! there is one, its steps are put on the line, last step first.
//!
//! A turn falls apart into single steps of own pieces and pairs (a push, or a step with its pull). The last step is always a
//! single one: a rabbit's from rank 7 to rank 8.

use super::Line;
use super::field::{Field, Move};
use crate::rules::{Bitboard, Direction};

/// A goal in exactly so many steps, 1 to 4, where none takes fewer.
pub(super) fn in_exactly(field: &Field, steps: u8, line: &mut Line) -> bool {
    match steps {
        1 => in_one(field, line),
        2 => in_two(field, line),
        3 => in_three(field, line),
        4 => in_four(field, line),
        _ => false,
    }
}

const RANK_7: Bitboard = Bitboard(0xff << 48);

fn north(set: Bitboard) -> Bitboard {
    set.shift(Direction::North)
}

fn south(set: Bitboard) -> Bitboard {
    set.shift(Direction::South)
}

fn beside(set: Bitboard) -> Bitboard {
    set.shift(Direction::East) | set.shift(Direction::West)
}

/// Puts a step on the line.
fn take(line: &mut Line, from: Bitboard, direction: Direction) -> bool {
    line.push(Move {
        from,
        to: from.shift(direction),
    });
    true
}

/// One square of a set.
fn one(set: Bitboard) -> Option<Bitboard> {
    set.first().map(Bitboard::of)
}

fn in_one(field: &Field, line: &mut Line) -> bool {
    let ready = field.rabbits() & RANK_7 & south(field.empty());
    let free = ready & (field.own.neighbours() | !field.cold());
    one(free).is_some_and(|rabbit| take(line, rabbit, Direction::North))
}

fn in_two(field: &Field, line: &mut Line) -> bool {
    let rabbits = field.rabbits();
    if (rabbits & (RANK_7 | south(RANK_7))).is_empty() {
        return false;
    }
    let empty = field.empty();
    let open = RANK_7 & south(empty);
    let warm = !field.cold();
    let able = field.able();
    run_of_two(field, able, open & empty, warm, line)
        || leave_goal_square(field, able, warm, line)
        || unfreeze(field, able, open, line)
}

/// A rabbit steps to a square of `open` on rank 7, and from there to its goal.
fn run_of_two(
    field: &Field,
    able: Bitboard,
    open: Bitboard,
    warm: Bitboard,
    line: &mut Line,
) -> bool {
    let runners = field.rabbits() & able;
    let (own, east, west) = (field.own, Direction::East, Direction::West);
    let ways = [
        (Direction::North, own.shift(east) | own.shift(west)),
        (east, own.shift(west) | north(own)),
        (west, own.shift(east) | north(own)),
    ];
    for (direction, friends) in ways {
        // The runner itself is no friend where it arrives: its old square is not among those looked at.
        let arrived = runners.shift(direction) & open & (warm | friends);
        if let Some(arrived) = one(arrived) {
            take(line, arrived, Direction::North);
            return take(line, arrived.shift(direction.opposite()), direction);
        }
    }
    false
}

/// An own piece leaves the goal square before a rabbit on rank 7, which is not frozen without it.
fn leave_goal_square(field: &Field, able: Bitboard, warm: Bitboard, line: &mut Line) -> bool {
    let friends = beside(field.own) | north(field.own);
    let blocked = field.rabbits() & RANK_7 & (warm | friends) & south(field.own & able);
    for direction in [Direction::East, Direction::West] {
        let free = south(field.empty().shift(direction.opposite()));
        if let Some(rabbit) = one(blocked & free) {
            take(line, rabbit, Direction::North);
            return take(line, north(rabbit), direction);
        }
    }
    false
}

/// An own piece comes to the side of a frozen rabbit on a square of `open`.
fn unfreeze(field: &Field, able: Bitboard, open: Bitboard, line: &mut Line) -> bool {
    let frozen = field.rabbits() & open & !able;
    let places = (beside(frozen) | south(frozen)) & field.empty();
    for direction in Direction::ALL {
        let movers = match direction {
            Direction::South => able & !field.rabbits(),
            _ => able,
        };
        if let Some(place) = one(movers.shift(direction) & places)
            && let Some(rabbit) = one((beside(place) | north(place)) & frozen)
        {
            take(line, rabbit, Direction::North);
            return take(line, place.shift(direction.opposite()), direction);
        }
    }
    false
}

fn in_three(field: &Field, line: &mut Line) -> bool {
    let near = RANK_7 | south(RANK_7) | south(south(RANK_7));
    if (field.rabbits() & near).is_empty() {
        return false;
    }
    let all = !Bitboard::EMPTY;
    let able = field.able();
    field.any_single(able, all, all, |next, step| {
        in_two(next, line) && push(line, &[step])
    }) || field.any_pair(able, all, |next, steps| {
        in_one(next, line) && push(line, &steps)
    })
}

fn in_four(field: &Field, line: &mut Line) -> bool {
    let near = Bitboard(0xffff_ffff << 24);
    if (field.rabbits() & near).is_empty() {
        return false;
    }
    let all = !Bitboard::EMPTY;
    let able = field.able();
    field.any_single(able, all, all, |next, step| {
        in_three(next, line) && push(line, &[step])
    }) || field.any_pair(able, all, |next, steps| {
        in_two(next, line) && push(line, &steps)
    })
}

/// Puts the steps before those that the line holds.
fn push(line: &mut Line, steps: &[Move]) -> bool {
    line.extend(steps.iter().rev().copied());
    true
}
