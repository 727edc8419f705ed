//! The rules agree with independent engines on every position and case of the oracle's files.

use engine::perft::{Case, CountLine, PositionLine, count};
use engine::rules::TurnEnumerator;
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
    let expected: Vec<CountLine> = lines(text);
    assert_eq!(positions.len(), 300);
    positions.par_iter().zip(&expected).for_each_init(
        TurnEnumerator::new,
        |enumerator, (line, expected)| {
            let counted = count(&line.position().unwrap(), enumerator);
            assert_eq!(counted, expected.count, "{}", line.id);
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
