//! Captures within one turn: the solver finds exactly the pieces that some sequence of steps captures.

mod boards;

use arimaa::rules::{
    Bitboard, History, Pending, Position, Side, Square, StepState, TURN_STEPS, capture_threats,
    captures,
};
use boards::{from_game, near_elimination, near_goal, position, random_position, state_after};
use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::AddAssign;

type Captures = [Bitboard; TURN_STEPS as usize + 1];

/// A state inside the turn, with the square where each enemy piece began, and those of the pieces that were captured.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Tracked {
    state: StepState,
    /// By the square of the piece now.
    origins: [Option<Square>; 64],
    captured: Bitboard,
}

impl Tracked {
    fn new(state: &StepState) -> Self {
        let enemies = state.board().side(state.side().opponent());
        let mut origins = [None; 64];
        for square in enemies {
            origins[square.index()] = Some(square);
        }
        Self {
            state: *state,
            origins,
            captured: Bitboard::EMPTY,
        }
    }

    /// The states after each legal step.
    fn next(&self) -> impl Iterator<Item = Self> {
        let steps = self.state.legal_actions(&History::default()).steps();
        steps.map(|step| {
            let mut next = self.clone();
            next.state = self.state.after_step(step);
            let moved = next.origins[step.from.index()].take();
            if let Some(to) = step.to()
                && moved.is_some()
            {
                next.origins[to.index()] = moved;
            }
            let enemies = next.state.board().side(self.state.side().opponent());
            for square in Square::all().filter(|&square| !enemies.contains(square)) {
                if let Some(origin) = next.origins[square.index()].take() {
                    next.captured |= Bitboard::of(origin);
                }
            }
            next
        })
    }
}

/// The captures of a state by trying each sequence of steps.
fn by_trying_everything(state: &StepState) -> Captures {
    let mut found = Captures::default();
    let mut level = vec![Tracked::new(state)];
    for count in 0..=TURN_STEPS as usize {
        for tracked in &level {
            if tracked.state.can_end(&History::default()) {
                found[count] |= tracked.captured;
            }
        }
        if count < TURN_STEPS as usize {
            found[count + 1] = found[count];
            let mut seen = HashSet::new();
            level = level
                .iter()
                .flat_map(Tracked::next)
                .filter(|next| seen.insert(next.clone()))
                .collect();
        }
    }
    found
}

/// What was compared: a run that never meets a thing does not test it.
#[derive(Debug, Default, Clone, Copy)]
struct Met {
    states: usize,
    inside: usize,
    pushes: usize,
    pulls: usize,
    /// Captured pieces by the number of steps.
    captured: [usize; 5],
    /// States in which nothing can be captured.
    none: usize,
}

impl AddAssign for Met {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.inside += other.inside;
        self.pushes += other.pushes;
        self.pulls += other.pulls;
        self.none += other.none;
        for (sum, count) in self.captured.iter_mut().zip(other.captured) {
            *sum += count;
        }
    }
}

fn check(state: &StepState) -> Met {
    let (found, expected) = (captures(state), by_trying_everything(state));
    assert_eq!(found, expected, "{state:?}");
    let mut met = Met {
        states: 1,
        inside: usize::from(state.steps_used() > 0),
        pushes: usize::from(matches!(state.pending(), Pending::Push { .. })),
        pulls: usize::from(matches!(state.pending(), Pending::Pull { .. })),
        none: usize::from(found[4].is_empty()),
        ..Met::default()
    };
    for (count, steps) in met.captured[1..].iter_mut().zip(1..) {
        *count = (found[steps] & !found[steps - 1]).count() as usize;
    }
    met
}

/// Compares a position and some states inside its turns.
fn compare(position: &Position, insides: usize, rng: &mut ChaCha8Rng) -> Met {
    let start = StepState::new(position);
    let mut met = check(&start);
    for _ in 0..insides {
        let mut state = start;
        for _ in 0..rng.random_range(1..=4) {
            let steps = state.legal_actions(&History::default()).steps();
            let Some(step) = steps.choose(rng) else {
                break;
            };
            state = state.after_step(step);
        }
        met += check(&state);
    }
    met
}

/// Compares so many positions of each source, in parallel.
fn compare_many(seed: u64, positions: u64) -> Met {
    let sources: [fn(&mut ChaCha8Rng) -> Position; 4] =
        [random_position, from_game, near_goal, near_elimination];
    (0..positions)
        .into_par_iter()
        .map(|index| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed << 32 | index);
            let source = sources[index as usize % sources.len()];
            let position = source(&mut rng);
            compare(&position, 3, &mut rng)
        })
        .reduce(Met::default, |mut sum, met| {
            sum += met;
            sum
        })
}

#[test]
fn captures_are_found_exactly_where_trying_everything_finds_one() {
    let met = compare_many(1, 300);
    assert!(met.captured[1] > 0, "{met:?}");
    assert!(met.captured[2..].iter().all(|&count| count > 50), "{met:?}");
    assert!(met.none > 100, "{met:?}");
    assert!(met.pushes > 50 && met.pulls > 50, "{met:?}");
}

#[test]
#[ignore = "minutes: 83 times the positions of the other test"]
fn many_captures_are_found_exactly() {
    let met = compare_many(101, 25_000);
    println!("{met:?}");
    assert!(met.states == 100_000 && met.captured[4] > 5_000, "{met:?}");
}

/// A position with Gold to move, the steps made in it, and the pieces that can be captured within 1 to 4 steps.
const CAPTURES: [(&str, &str, &str, [&str; 4]); 11] = [
    ("a push into a trap", "Hb4 rb3", "", ["", "b3", "b3", "b3"]),
    (
        "a pull into a trap",
        "Hc3 Cb3 rd3",
        "",
        ["", "d3", "d3", "d3"],
    ),
    (
        "its only friend is pushed away",
        "Hb4 rc3 cb3",
        "",
        ["", "c3", "c3", "c3"],
    ),
    (
        "two friends hold it",
        "Hb4 rc3 cb3 rc4 Dd4",
        "",
        ["", "", "", "c3 c4"],
    ),
    (
        "the second friend is out of reach",
        "Hb4 rc3 cb3 rc2",
        "",
        ["", "", "", ""],
    ),
    ("the pusher arrives", "Ha5 rb3", "", ["", "", "", "b3"]),
    (
        "a friend unfreezes the pusher",
        "Db4 Ca3 rb3 ha4 Ra2",
        "",
        ["", "b3", "b3", "b3"],
    ),
    (
        "two squares from the trap",
        "Ha4 ra3",
        "",
        ["", "", "", "a3"],
    ),
    (
        "two in one turn",
        "Hb4 rb3 Dg4 rg3",
        "",
        ["", "b3 g3", "b3 g3", "b3 g3"],
    ),
    (
        "inside the push that captured it",
        "Hb4 rb3 rg3 Dg4",
        "rb3e",
        ["", "", "g3", "g3"],
    ),
    (
        "the pull is left",
        "Hc3 Cb3 rd3",
        "Hc3n",
        ["d3", "d3", "d3", "d3"],
    ),
];

#[test]
fn captures_that_need_a_trick_are_found() {
    for (name, pieces, steps, expected) in CAPTURES {
        let gold = position(Side::Gold, pieces);
        let state = state_after(&gold, steps);
        let found = captures(&state);
        for (found, expected) in found[1..].iter().zip(expected) {
            let expected: Bitboard = expected.split_whitespace().map(boards::square).collect();
            assert_eq!(*found, expected, "{name}");
        }
        for state in [state, state.swap_colours(), state.mirror()] {
            check(&state);
        }
    }
}

#[test]
fn threats_are_captures_of_the_enemy_after_a_pass() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut threatened = 0;
    for _ in 0..50 {
        let enemy = random_position(&mut rng);
        let mover = Position::new(*enemy.board(), enemy.side().opponent()).unwrap();
        let expected = by_trying_everything(&StepState::new(&enemy));
        assert_eq!(capture_threats(&mover), expected, "{mover:?}");
        threatened += usize::from(!expected[4].is_empty());
    }
    assert!(threatened > 10, "{threatened}");
}

#[test]
fn setups_hold_no_captures() {
    let none = Captures::default();
    assert_eq!(captures(&StepState::new(&Position::INITIAL)), none);
    assert_eq!(capture_threats(&Position::INITIAL), none);
}
