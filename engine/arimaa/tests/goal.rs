//! Goals, eliminations and immobilizations within one turn: what the solvers find is exactly what trying every step sequence finds.

mod boards;

use arimaa::perft::PositionLine;
use arimaa::rules::{
    Bitboard, History, Kind, Outcome, Pending, Position, Reason, Side, StepState, Steps, Turn,
    distinct_turns, elimination_in, goal_in, goal_threat, immobilization_in,
};
use boards::{
    from_game, near_elimination, near_goal, near_immobilization, position, random_position,
    state_after,
};
use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::AddAssign;

/// What is looked for: a solver, and how the end of a turn shows it.
#[derive(Clone, Copy)]
struct Aim {
    solve: fn(&StepState, u8) -> Option<Steps>,
    /// Whether this end of a turn of `side` is one.
    is_reached: fn(&Position, Side) -> bool,
}

const GOAL: Aim = Aim {
    solve: goal_in,
    is_reached: |end, side| {
        !(end.board().pieces(side, Kind::Rabbit) & Bitboard::goal(side)).is_empty()
    },
};

const ELIMINATION: Aim = Aim {
    solve: elimination_in,
    is_reached: |end, side| end.board().pieces(side.opponent(), Kind::Rabbit).is_empty(),
};

const IMMOBILIZATION: Aim = Aim {
    solve: immobilization_in,
    is_reached: |end, winner| {
        let reason = Reason::Immobilization;
        end.outcome(&History::default()) == Some(Outcome { winner, reason })
    },
};

impl Aim {
    /// How many steps a shortest sequence takes, by trying all.
    fn shortest(&self, state: &StepState, steps: u8) -> Option<usize> {
        let history = History::default();
        let mut level = vec![*state];
        for count in 0..=steps.min(state.steps_left()) {
            let reached = |next: &StepState| {
                next.can_end(&history) && (self.is_reached)(&next.end(), state.side())
            };
            if level.iter().any(reached) {
                return Some(count.into());
            }
            if count == steps.min(state.steps_left()) {
                break;
            }
            let mut seen = HashSet::new();
            level = level
                .iter()
                .flat_map(|state| {
                    let steps = state.legal_actions(&history).steps();
                    steps.map(|step| state.after_step(step))
                })
                .filter(|next| seen.insert(next.key()))
                .collect();
        }
        None
    }

    /// Compares the solver with trying everything, and plays its steps.
    fn check(&self, state: &StepState, steps: u8, met: &mut Met) {
        let expected = self.shortest(state, steps);
        let found = (self.solve)(state, steps);
        assert_eq!(
            found.as_ref().map(|steps| steps.len()),
            expected,
            "within {steps}, the solver: {found:?}\n{state:?}"
        );
        if let Some(found) = &found {
            self.replay(state, found);
        }
        met.count(state, steps, expected);
    }

    /// Every step is legal, the turn may end behind the last one, and the game is won.
    fn replay(&self, state: &StepState, steps: &Steps) {
        let history = History::default();
        let end = steps.iter().fold(*state, |state, &step| {
            assert_eq!(state.check_step(step, &history), Ok(()), "{state:?}");
            state.after_step(step)
        });
        assert!(end.can_end(&history), "{state:?} {steps:?}");
        assert!((self.is_reached)(&end.end(), state.side()));
        let winner = end.end().outcome(&history).map(|outcome| outcome.winner);
        assert_eq!(winner, Some(state.side()), "{state:?} {steps:?}");
    }
}

/// What was met on the way: a run that never meets a thing does not test it.
#[derive(Debug, Default, Clone, Copy)]
struct Met {
    states: usize,
    inside: usize,
    pushes: usize,
    pulls: usize,
    smaller_budgets: usize,
    /// Answers by their number of steps.
    found: [usize; 5],
    none: usize,
}

impl Met {
    fn count(&mut self, state: &StepState, steps: u8, answer: Option<usize>) {
        self.states += 1;
        self.inside += usize::from(state.steps_used() > 0);
        self.pushes += usize::from(matches!(state.pending(), Pending::Push { .. }));
        self.pulls += usize::from(matches!(state.pending(), Pending::Pull { .. }));
        self.smaller_budgets += usize::from(steps < state.steps_left());
        match answer {
            Some(count) => self.found[count] += 1,
            None => self.none += 1,
        }
    }
}

impl AddAssign for Met {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.inside += other.inside;
        self.pushes += other.pushes;
        self.pulls += other.pulls;
        self.smaller_budgets += other.smaller_budgets;
        self.none += other.none;
        for (sum, count) in self.found.iter_mut().zip(other.found) {
            *sum += count;
        }
    }
}

/// Compares a position with a whole turn left, and states inside its turns with all budgets.
fn compare(aim: Aim, position: &Position, insides: usize, rng: &mut ChaCha8Rng) -> Met {
    let mut met = Met::default();
    let start = StepState::new(position);
    let mut states = vec![start];
    for _ in 0..insides {
        let mut state = start;
        for _ in 0..rng.random_range(1..=4) {
            let steps = state.legal_actions(&History::default()).steps();
            let Some(step) = steps.choose(rng) else {
                break;
            };
            state = state.after_step(step);
        }
        states.push(state);
    }
    for state in states {
        let budget = match state.steps_used() {
            0 if rng.random_bool(0.7) => 4,
            _ => rng.random_range(0..=4),
        };
        aim.check(&state, budget, &mut met);
        if state.steps_used() > 0 {
            aim.check(&state, state.steps_left(), &mut met);
        }
    }
    met
}

/// Compares so many positions from a source, in parallel.
fn compare_many(
    aim: Aim,
    seed: u64,
    positions: u64,
    insides: usize,
    source: fn(&mut ChaCha8Rng) -> Position,
) -> Met {
    (0..positions)
        .into_par_iter()
        .map(|index| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed << 32 | index);
            let position = source(&mut rng);
            compare(aim, &position, insides, &mut rng)
        })
        .reduce(Met::default, |mut sum, met| {
            sum += met;
            sum
        })
}

fn anywhere(rng: &mut ChaCha8Rng) -> Position {
    random_position(rng)
}

fn compare_goals(seed: u64, positions: u64) -> Met {
    let mut met = compare_many(GOAL, seed, positions / 2, 4, near_goal);
    met += compare_many(GOAL, seed + 1, positions / 4, 4, anywhere);
    met += compare_many(GOAL, seed + 2, positions / 4, 4, from_game);
    met
}

fn compare_eliminations(seed: u64, positions: u64) -> Met {
    compare_many(ELIMINATION, seed, positions, 4, near_elimination)
}

fn compare_immobilizations(seed: u64, positions: u64) -> Met {
    let mut met = compare_many(IMMOBILIZATION, seed, positions / 2, 4, near_immobilization);
    for (more, source) in [anywhere, near_goal, near_elimination, from_game]
        .into_iter()
        .enumerate()
    {
        let seed = seed + 1 + more as u64;
        met += compare_many(IMMOBILIZATION, seed, positions / 8, 4, source);
    }
    met
}

#[test]
fn goals_are_found_exactly_where_trying_everything_finds_one() {
    let met = compare_goals(1, 2_000);
    assert!(met.found.iter().all(|&count| count > 20), "{met:?}");
    assert!(met.none > 5_000, "{met:?}");
    assert!(met.pushes > 500 && met.pulls > 500, "{met:?}");
}

#[test]
fn eliminations_are_found_exactly_where_trying_everything_finds_one() {
    let met = compare_eliminations(11, 2_500);
    assert!(met.found.iter().all(|&count| count > 20), "{met:?}");
    assert!(met.none > 5_000, "{met:?}");
    assert!(met.pushes > 500 && met.pulls > 500, "{met:?}");
}

#[test]
fn immobilizations_are_found_exactly_where_trying_everything_finds_one() {
    let met = compare_immobilizations(21, 2_000);
    assert!(met.found.iter().all(|&count| count > 20), "{met:?}");
    assert!(met.none > 5_000, "{met:?}");
    assert!(met.pushes > 500 && met.pulls > 200, "{met:?}");
}

#[test]
#[ignore = "minutes: fifty times the positions of the other tests"]
fn many_wins_within_the_turn_are_found_exactly() {
    for (name, met) in [
        ("goal", compare_goals(101, 100_000)),
        ("elimination", compare_eliminations(111, 100_000)),
        ("immobilization", compare_immobilizations(121, 100_000)),
    ] {
        println!("{name}: {met:?}");
        assert!(met.states > 500_000 && met.found[4] > 1_000, "{met:?}");
    }
}

#[test]
fn the_oracles_positions_agree() {
    let history = History::default();
    let found = include_str!("data/oracle/positions_public.jsonl")
        .par_lines()
        .filter(|line| {
            let line: PositionLine = serde_json::from_str(line).unwrap();
            let position = line.position().unwrap();
            let turns = distinct_turns(&position, &history);
            let shortest = turns
                .iter()
                .filter(|(end, _)| (GOAL.is_reached)(end, position.side()))
                .map(|(_, turn)| match turn {
                    Turn::Steps(steps) => steps.len(),
                    Turn::Setup(_) => 0,
                })
                .min();
            let state = StepState::new(&position);
            let steps = goal_in(&state, 4);
            assert_eq!(
                steps.as_ref().map(|steps| steps.len()),
                shortest,
                "{}",
                line.id
            );
            if let Some(steps) = &steps {
                GOAL.replay(&state, steps);
            }
            steps.is_some()
        })
        .count();
    assert_eq!(found, 66);
}

/// A position with Gold to move, the steps made in it, and how many more a goal takes.
const GOALS: [(&str, &str, &str, Option<usize>); 22] = [
    ("a run", "Ra4 rh5", "", Some(4)),
    ("too far", "Ra3 rh5", "", None),
    ("an own piece makes way", "Ra7 Da8 rh5", "", Some(2)),
    (
        "a piece is pulled off the goal square",
        "Ra7 ca8 Db8 rh5",
        "",
        Some(3),
    ),
    ("the pull alone is left", "Ra7 ca8 Db8 rh5", "Db8e", Some(2)),
    (
        "a cat makes room for the puller",
        "Ra7 Cb7 Db8 ra8 rc8 rd8 rc7",
        "",
        Some(4),
    ),
    (
        "a rabbit can't: it never steps back",
        "Ra7 Rb7 Db8 ra8 rc8 rd8 rc7",
        "",
        None,
    ),
    ("push and step back", "Rb7 rb8 Dc8 ra7 rc7 rd8", "", Some(4)),
    ("worked case 2", "Da6 Rb7 ra7 db6 ed5 Hd6 re6", "", Some(3)),
    (
        "inside that push",
        "Da6 Rb7 ra7 db6 ed5 Hd6 re6",
        "ra7n",
        Some(2),
    ),
    ("a friend unfreezes", "Ra7 cb7 Ca5 rh5", "", Some(2)),
    ("no friend unfreezes", "Ra7 cb7 rh5", "", None),
    ("rabbits don't freeze", "Ra7 rb7", "", Some(1)),
    ("a rabbit unfreezes another", "Ra7 cb7 Ra5 rh5", "", Some(2)),
    ("a rabbit follows another", "Ra6 Ra5 db7 rh5", "", Some(3)),
    (
        "a trap takes the freezer",
        "Rc7 dc6 cb6 Hb5 rh5",
        "",
        Some(3),
    ),
    ("around a trap", "Rc5 rh5", "", Some(4)),
    ("over a trap beside a friend", "Rc5 Cb6 rh5", "", Some(3)),
    ("arrived", "Ra7 Ee4 rh5", "Ra7n", Some(0)),
    (
        "arrived, and a push begun",
        "Ra7 Ee4 re5",
        "Ra7n re5n",
        Some(1),
    ),
    (
        "arrived before the turn, which must change something",
        "Ra8 Ee4 rh5",
        "",
        Some(1),
    ),
    ("taken back so far", "Ra8 Ee4 rh5", "Ee4n Ee5s", Some(1)),
];

#[test]
fn goals_that_need_a_trick_are_found() {
    for (name, pieces, steps, expected) in GOALS {
        let gold = position(Side::Gold, pieces);
        let state = state_after(&gold, steps);
        for state in [state, state.swap_colours(), state.mirror()] {
            let found = goal_in(&state, 4);
            assert_eq!(found.map(|steps| steps.len()), expected, "{name}");
            for budget in 0..=4 {
                GOAL.check(&state, budget, &mut Met::default());
            }
        }
    }
}

/// A position with Gold to move, the steps made in it, and how many more an elimination takes.
const ELIMINATIONS: [(&str, &str, &str, Option<usize>); 10] = [
    ("a push into a trap", "Hb4 rb3 Rh1", "", Some(2)),
    ("a pull into a trap", "Hc3 Cb3 rd3 Rh1", "", Some(2)),
    (
        "its last friend is pushed off",
        "Hb4 rc3 cb3 Rh1",
        "",
        Some(2),
    ),
    (
        "the last own rabbit is lost on the way",
        "Hf4 Rf3 rf5",
        "",
        Some(2),
    ),
    ("two in one turn", "Hb4 rb3 Dg4 rg3 Rh1", "", Some(4)),
    ("one too many", "Hb4 rb3 Dg4 rg3 ra8 Rh1", "", None),
    ("two squares from a trap", "Ha5 ra6 Rh1", "", Some(4)),
    ("three squares from a trap", "Ha4 ra5 Rh1", "", None),
    (
        "inside the push that took it",
        "Hb4 rb3 Rh1",
        "rb3e",
        Some(1),
    ),
    ("taken", "Hb4 rb3 Rh1", "rb3e Hb4s", Some(0)),
];

#[test]
fn eliminations_that_need_a_trick_are_found() {
    for (name, pieces, steps, expected) in ELIMINATIONS {
        let gold = position(Side::Gold, pieces);
        let state = state_after(&gold, steps);
        for state in [state, state.swap_colours(), state.mirror()] {
            let found = elimination_in(&state, 4);
            assert_eq!(found.map(|steps| steps.len()), expected, "{name}");
            for budget in 0..=4 {
                ELIMINATION.check(&state, budget, &mut Met::default());
            }
        }
    }
}

/// A position with Gold to move, the steps made in it, and how many more an immobilization takes.
const IMMOBILIZATIONS: [(&str, &str, &str, Option<usize>); 16] = [
    (
        "rabbits are blocked",
        "ra8 rb8 Hc8 Ra6 Rb6 Rh1",
        "",
        Some(2),
    ),
    ("a rabbit is frozen from afar", "ra8 He7 Rh1", "", Some(4)),
    ("too far", "ra8 Hf5 Rh1", "", None),
    ("rabbits freeze none", "ra6 Rb6 Rh1", "", None),
    ("one piece freezes two", "ra7 rc7 Hb5 Rh1", "", Some(2)),
    ("a push parts two friends", "ra7 rb7 Hd7 Rh1", "", Some(3)),
    (
        "friends keep each other free",
        "ra7 rb7 Hf6 Rf7 Rh1",
        "",
        None,
    ),
    ("a friend is pulled away", "ra7 ca8 Db8 Rh1", "", Some(2)),
    (
        "the elephant is blocked",
        "ea1 rh8 Hh7 Cb1 Rb2 Ra3 Rc1 Rd2",
        "",
        Some(3),
    ),
    ("the elephant pushes", "ea1 rh8 Hh7 Cb1 Da3 Rc1", "", None),
    (
        "a rabbit is pushed to the elephant",
        "rc6 cc7 Ed7 Hb6 Rh1",
        "",
        Some(2),
    ),
    ("inside that push", "rc6 cc7 Ed7 Hb6 Rh1", "rc6e", Some(1)),
    (
        "a puller fills the square to push to",
        "Rc1 Df7 Rg7 Hh7 Mf8 re7 he8 rg8 mh8",
        "",
        Some(4),
    ),
    (
        "the enemy can't move already",
        "ra8 Db8 Ha7 Cb7 Rh1",
        "",
        Some(1),
    ),
    ("it must stay so", "ra8 Db8 Ha7 Rh1", "Rh1n", Some(0)),
    ("a goal comes before", "ra8 Db8 Ha7 Rh7", "Rh7n", None),
];

#[test]
fn immobilizations_that_need_a_trick_are_found() {
    for (name, pieces, steps, expected) in IMMOBILIZATIONS {
        let gold = position(Side::Gold, pieces);
        let state = state_after(&gold, steps);
        for state in [state, state.swap_colours(), state.mirror()] {
            let found = immobilization_in(&state, 4);
            assert_eq!(found.map(|steps| steps.len()), expected, "{name}");
            for budget in 0..=4 {
                IMMOBILIZATION.check(&state, budget, &mut Met::default());
            }
        }
    }
}

#[test]
fn threats_are_goals_of_the_enemy_after_a_pass() {
    let gold = position(Side::Gold, "Ra1 rc2");
    assert_eq!(format!("{:?}", goal_threat(&gold)), "Some([c2s])");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut threats = 0;
    for _ in 0..300 {
        let enemy = near_goal(&mut rng);
        let mover = Position::new(*enemy.board(), enemy.side().opponent()).unwrap();
        let expected = GOAL.shortest(&StepState::new(&enemy), 4);
        let found = goal_threat(&mover).map(|steps| steps.len());
        assert_eq!(found, expected, "{mover:?}");
        threats += usize::from(found.is_some());
    }
    assert!((50..250).contains(&threats), "{threats}");
}

#[test]
fn setups_hold_no_wins() {
    let state = StepState::new(&Position::INITIAL);
    assert_eq!(goal_in(&state, 4), None);
    assert_eq!(elimination_in(&state, 4), None);
    assert_eq!(immobilization_in(&state, 4), None);
    assert_eq!(goal_threat(&Position::INITIAL), None);
}
