//! Goals of the mover on a [`Field`], by the number of steps that they take.
//!
//! The functions `in_one` to `in_four` answer "is there a goal in exactly so many steps?" where no shorter one exists: they are
//! called in that order, so that a goal that takes fewer steps further down would have been found as a shorter one before. Where
//! there is one, its steps are put on the line, last step first.
//!
//! A turn falls apart into single steps of own pieces and pairs (a push, or a step with its pull). The last step is always a
//! single one: a rabbit's from rank 7 to rank 8.

use super::field::{Field, Line, Move, around, push};
use crate::rules::bitboard::Bitboard;
use crate::rules::square::Direction;

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
const RANK_6: Bitboard = Bitboard(0xff << 40);
const RANK_5: Bitboard = Bitboard(0xff << 32);
const RANK_4: Bitboard = Bitboard(0xff << 24);

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
    let rabbits = field.rabbits();
    let near = RANK_7 | RANK_6;
    if (rabbits & (near | RANK_5)).is_empty() {
        return false;
    }
    let able = field.able();
    if run_north(field, able, RANK_5, 3, line) {
        return true;
    }
    if (rabbits & near).is_empty() {
        return false;
    }
    let zone = zone_of_three(field);
    field.any_single(able, zone.from, zone.to, |next, step| {
        in_two(next, line) && push(line, &[step])
    }) || field.any_pair(able, zone.pulled, |next, steps| {
        in_one(next, line) && push(line, &steps)
    })
}

fn in_four(field: &Field, line: &mut Line) -> bool {
    let rabbits = field.rabbits();
    let near = RANK_7 | RANK_6 | RANK_5;
    if (rabbits & (near | RANK_4)).is_empty() {
        return false;
    }
    let able = field.able();
    if run_north(field, able, RANK_4, 4, line) {
        return true;
    }
    if (rabbits & near).is_empty() {
        return false;
    }
    let zone = zone_of_four(field);
    field.any_single(able, zone.from, zone.to, |next, step| {
        in_three(next, line) && push(line, &[step])
    }) || field.any_pair(able, zone.pulled, |next, steps| {
        in_two(next, line) && push(line, &steps)
    })
}

/// A rabbit on `rank` goes straight on to its goal, with no step to spare.
fn run_north(field: &Field, able: Bitboard, rank: Bitboard, steps: u8, line: &mut Line) -> bool {
    let beside = beside(field.own);
    // The runner has left the square behind it, and the one before it must be empty: only friends at its sides count.
    let safe = beside | (!field.cold() & !Bitboard::TRAPS);
    let mut runners = field.rabbits() & rank & able;
    for step in 1..=steps {
        runners = north(runners) & field.empty();
        if step < steps {
            runners &= safe;
        }
    }
    let Some(mut at) = one(runners) else {
        return false;
    };
    for _ in 0..steps {
        at = south(at);
        take(line, at, Direction::North);
    }
    true
}

/// Where a first step can matter; wider than need be, never narrower.
///
/// In a shortest sequence every single step and every pair serves a later one, or the rabbit itself: it makes room on a square that
/// is needed, or changes what stands beside a piece that moves later. So the zones are built from the squares that the rabbits may
/// cross with the steps that they have to spare, the squares around those, and once more around these for each step that a step
/// may serve before it serves the rabbit. A single step moves no enemy piece: what needs one moved takes a pair.
struct Zone {
    /// Single steps that start here matter.
    from: Bitboard,
    /// Single steps that end here matter.
    to: Bitboard,
    /// Pushes and pulls of enemy pieces that stand here matter.
    pulled: Bitboard,
}

/// With three steps, a rabbit on rank 6 has one to spare and one on rank 7 two.
fn zone_of_three(field: &Field) -> Zone {
    let rabbits = field.rabbits();
    let behind = south(field.enemy);
    // A piece that helps these has to let them go straight on afterwards.
    let lone = rabbits & RANK_6 & !behind & !south(behind);
    let last = rabbits & RANK_7;
    let goals = north(last);
    // Next to these a friend has to arrive, and two steps may go into that.
    let iced = last & field.cold() & !behind;
    Zone {
        from: (rabbits & RANK_6)
            | north(lone)
            | north(north(lone))
            | last
            | beside(last)
            | goals
            | beside(goals),
        to: around(lone | north(lone) | last | beside(last)) | around(around(around(iced))),
        pulled: goals
            | around(last)
            | beside(goals & field.own)
            | around(Bitboard::TRAPS & around(last)),
    }
}

/// With four steps, a rabbit on rank 5 has one to spare, one on rank 6 two, and one on rank 7 three.
fn zone_of_four(field: &Field) -> Zone {
    let rabbits = field.rabbits();
    let behind = south(field.enemy);
    let blocked = behind | south(behind);
    let far = rabbits & RANK_5;
    let lone = far & !blocked & !south(south(behind));
    let way = lone | north(lone);
    let mut zone = Zone {
        from: far | north(way) | north(north(way)),
        to: around(way | north(way)),
        pulled: Bitboard::EMPTY,
    };
    let middle = rabbits & RANK_6;
    if !middle.is_empty() {
        // One step aside and one of a helper; or two of helpers, and straight on; or a pair, and straight on.
        let bent = middle | beside(middle);
        let bent = bent | north(bent);
        let lone = middle & !blocked;
        let way = around(lone | north(lone));
        zone.from |= bent | north(bent) | around(way);
        zone.to |= around(bent) | around(around(way));
        let straight = middle | north(middle);
        zone.pulled |=
            around(straight | north(straight)) | around(Bitboard::TRAPS & around(straight));
    }
    let last = rabbits & RANK_7;
    if !last.is_empty() {
        // A pair may serve one more step before the last one; single steps may come from anywhere.
        let ball = around(around(around(last)));
        zone.from = Bitboard::ALL;
        zone.pulled |= ball | around(Bitboard::TRAPS & ball);
    }
    zone
}
