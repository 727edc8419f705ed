//! Tests of the look at all other turns.

use super::super::testing::{Hashed, answer, history_of, position};
use super::super::{Budget, Search, SearchOptions};
use super::*;
use crate::config::{SearchConfig, SearchMode};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Many pieces with room, and no enemy that freezes them.
fn with_many_turns() -> Position {
    let pieces = "Ea2 Mc4 Hd5 He4 Df5 Dg3 Cb5 Cg6 Rb1 Rd2 Rf2 Rh2 Re1 Rg1 ra8 rc8 rh8";
    position(Side::Gold, pieces)
}

fn new_search(position: &Position, budget: Budget) -> (Search, History) {
    let history = history_of(position);
    let config = SearchConfig::default();
    let options = SearchOptions {
        mode: SearchMode::Puct,
        ..SearchOptions::strongest_within(&config, budget)
    };
    let search = Search::new(position, &history, options).unwrap();
    (search, history)
}

#[test]
fn all_turns_are_tried_until_the_search_has_to_end() {
    let position = with_many_turns();
    let (mut search, history) = new_search(&position, Budget::evaluations(8));
    let all = TurnEnumerator::new().enumerate(&position, &history).len();
    assert!(all > 50_000, "{all}");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    answer(&mut search, Hashed::default(), &history, &mut rng);
    // A search that may continue tries them all.
    let none = 0;
    let (others, tried_all) = other_turns_within(search.state(), &history, none);
    assert!(tried_all && others.len() > 1_000);
    // One that has been told to stop, by whatever means, tries as many as it is given.
    let flag = Arc::new(AtomicBool::new(false));
    search.stop_with(Arc::clone(&flag));
    flag.store(true, Ordering::Relaxed);
    let (found, tried_all) = other_turns_within(search.state(), &history, none);
    assert!(found.is_empty() && !tried_all);
    let (found, tried_all) = other_turns_within(search.state(), &history, usize::MAX);
    assert!(found.len() == others.len() && tried_all);
    let (found, tried_all) = other_turns_within(search.state(), &history, 1_000);
    assert!((500..=1_000).contains(&found.len()) && !tried_all);
    // Immobilizations are looked for behind as many turns as it is given.
    let (held, checked_all) = holding_turns(search.state(), found.clone(), 1_000, 7);
    assert!(held.len() == 7 && !checked_all);
    let (held, checked_all) = holding_turns(search.state(), found.clone(), 1_000, 1_000);
    assert!(held.len() == found.len() && checked_all);
    flag.store(false, Ordering::Relaxed);
    let (held, checked_all) = holding_turns(search.state(), found.clone(), 1_000, 7);
    assert!(held.len() == found.len() && checked_all);
    search.stop();
    let (found, tried_all) = other_turns_within(search.state(), &history, none);
    assert!(found.is_empty() && !tried_all);
    // So does one whose time is up.
    let (mut search, history) = new_search(
        &position,
        Budget {
            time: Some(Duration::from_nanos(1)),
            ..Budget::unlimited()
        },
    );
    search.leaves(&history, &mut rng);
    let (found, tried_all) = other_turns_within(search.state(), &history, none);
    assert!(found.is_empty() && !tried_all);
}
