//! The rules agree with independent engines on every position and case of the oracle's files, and with the pinned numbers of
//! sequences of turns.

use arimaa::perft::{Case, Count, FoundLine, PositionLine, SequenceCounts, count, sequences};
use arimaa::rules::{Game, TurnEnumerator};
use rayon::prelude::*;
use serde::de::DeserializeOwned;

fn lines<T: DeserializeOwned>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn all_positions_agree() {
    let text = include_str!("data/oracle/positions_public.jsonl");
    let positions: Vec<PositionLine> = lines(text);
    let expected: Vec<FoundLine<Count>> = lines(text);
    assert_eq!(positions.len(), 300);
    positions.par_iter().zip(&expected).for_each_init(
        TurnEnumerator::new,
        |enumerator, (line, expected)| {
            let counted = count(&line.position().unwrap(), enumerator);
            assert_eq!(counted, expected.found, "{}", line.id);
        },
    );
}

#[test]
fn all_cases_agree() {
    let cases: Vec<Case> = lines(include_str!("data/oracle/cases_public.jsonl"));
    assert_eq!(cases.len(), 28);
    for case in cases {
        let answer = case.answer().unwrap();
        assert!(answer.pass, "{answer:?}");
    }
}

/// Counts the sequences of the pinned positions with as many turns as `wanted` says; returns how many positions these are.
fn compare_sequences(wanted: impl Fn(u64) -> bool) -> usize {
    let text = include_str!("data/perft.jsonl");
    let positions: Vec<PositionLine> = lines(text);
    let expected: Vec<FoundLine<SequenceCounts>> = lines(text);
    assert_eq!(positions.len(), 12);
    let mut compared = 0;
    for (line, expected) in positions.iter().zip(&expected) {
        let expected = &expected.found.sequences;
        assert_eq!(expected.len(), 2);
        if wanted(expected[0]) {
            let game = Game::from_position(line.position().unwrap());
            let found = [1, 2].map(|depth| sequences(&game, depth));
            assert_eq!(found, expected[..], "{}", line.id);
            compared += 1;
        }
    }
    compared
}

#[test]
fn sequences_from_positions_with_few_turns_are_as_pinned() {
    assert_eq!(compare_sequences(|turns| turns < 2_000), 7);
}

#[test]
#[ignore = "half a minute: 800 million turns"]
fn sequences_from_all_other_positions_are_as_pinned() {
    assert_eq!(compare_sequences(|turns| turns >= 2_000), 5);
}
