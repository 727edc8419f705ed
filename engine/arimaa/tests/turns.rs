//! The enumeration of distinct turns against plain steps: every sequence of legal steps is followed, level by level.

mod boards;

use arimaa::rules::{
    History, Position, StepState, Turn, TurnEnumerator, count_distinct_turns, distinct_turns,
};
use boards::{random_game, random_position};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The ends of all legal turns, each with the length of a shortest turn that leads there.
fn plain(position: &Position, history: &History) -> HashMap<Position, usize> {
    let mut ends = HashMap::new();
    let mut level = HashSet::from([StepState::new(position)]);
    for length in 0..=4 {
        let mut next = HashSet::new();
        for state in level {
            if state.can_end(history) {
                ends.entry(state.end()).or_insert(length);
            }
            let legal = state.legal_actions(history);
            next.extend(legal.steps().map(|step| state.after_step(step)));
        }
        level = next;
    }
    ends
}

fn length(turn: &Turn) -> usize {
    match turn {
        Turn::Steps(steps) => steps.len(),
        Turn::Setup(_) => panic!("a setup is not a turn of play"),
    }
}

/// Compares the turns of a position; returns how many there are of each length.
fn compare(
    position: &Position,
    history: &History,
    enumerator: &mut TurnEnumerator,
) -> BTreeMap<usize, usize> {
    let turns = enumerator.enumerate(position, history);
    let mut found = HashMap::new();
    let mut lengths = BTreeMap::new();
    let mut last = 1;
    assert_eq!(turns.iter().len(), turns.len());
    for (end, turn) in turns {
        assert_eq!(position.after_turn(&turn, history), Ok(end), "{turn:?}");
        let length = length(&turn);
        assert!(length >= last, "shorter turns come first");
        last = length;
        *lengths.entry(length).or_default() += 1;
        assert_eq!(found.insert(end, length), None, "{end} twice");
    }
    assert_eq!(found.len(), turns.len());
    assert_eq!(turns.is_empty(), found.is_empty());
    assert!(found == plain(position, history), "{position}");
    lengths
}

fn compare_positions(seed: u64, positions: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut enumerator = TurnEnumerator::new();
    let mut met = BTreeMap::new();
    for _ in 0..positions {
        let position = random_position(&mut rng);
        for (length, count) in compare(&position, &History::default(), &mut enumerator) {
            *met.entry(length).or_insert(0) += count;
        }
    }
    assert_eq!(met.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(met[&4] > 100 * positions, "{met:?}");
}

#[test]
fn random_positions_have_the_turns_that_plain_steps_find() {
    compare_positions(11, 150);
}

#[test]
#[ignore = "minutes: forty times the positions of the other test"]
fn many_random_positions_have_the_turns_that_plain_steps_find() {
    compare_positions(12, 6_000);
}

/// Of the ends of a position's turns, some have stood once and some twice.
#[test]
fn forbidden_repetitions_are_left_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let mut enumerator = TurnEnumerator::new();
    let (mut allowed, mut forbidden) = (0, 0);
    for _ in 0..60 {
        let position = random_position(&mut rng);
        let all = distinct_turns(&position, &History::default());
        let mut history = History::default();
        history.push(&position);
        // Mostly a few, now and then nearly all: then steps are dead ends too.
        let share = *[0.1, 0.5, 0.98].choose(&mut rng).unwrap();
        if all.len() > 3_000 {
            continue;
        }
        for (end, _) in &all {
            history.push(end);
            if rng.random_bool(share) {
                history.push(end);
            }
        }
        compare(&position, &history, &mut enumerator);
        let left = count_distinct_turns(&position, &history);
        allowed += left;
        forbidden += all.len() as u64 - left;
    }
    assert!(
        allowed > 1_000 && forbidden > 1_000,
        "{allowed} {forbidden}"
    );
}

#[test]
fn an_enumerator_forgets_the_position_before() {
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    let mut enumerator = TurnEnumerator::new();
    let history = History::default();
    assert!(
        enumerator
            .enumerate(&Position::INITIAL, &history)
            .is_empty()
    );
    for _ in 0..20 {
        let game = random_game(6, &mut rng);
        let turns = enumerator.enumerate(game.position(), &history);
        let anew = distinct_turns(game.position(), &history);
        assert!(turns.iter().eq(anew), "the same turns in the same order");
    }
    assert_eq!(enumerator.enumerate(&Position::INITIAL, &history).len(), 0);
}
