//! What is compared, and what is chosen of it.

use super::{decided, of, options};
use crate::search::Budget;
use crate::search::testing::{Hashed, few_turns, random_game};
use crate::search::tree::NodeKind;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rustc_hash::FxHashSet;

/// Turns that stand in for lost ones are others: no turn is compared with itself, and none is counted twice.
#[test]
fn every_candidate_is_another_turn() {
    let mut rng = ChaCha8Rng::seed_from_u64(75);
    let mut replaced = 0;
    for index in 0..300 {
        let position = few_turns(100, &mut rng);
        let candidates = [2, 4, 8][index % 3];
        let options = options(Budget::evaluations(400), candidates, candidates);
        let search = decided(&position, Hashed::default(), options, &mut rng);
        let (state, turn) = of(&search);
        let ends: FxHashSet<_> = turn.candidates.iter().map(|one| one.end).collect();
        assert_eq!(ends.len(), turn.candidates.len(), "in {position}");
        let known: f64 = turn.candidates.iter().map(|one| one.log_prior.exp()).sum();
        assert!(known < 1.001, "{known} in {position}");
        replaced += u32::from(turn.candidates.iter().any(|one| one.slot.is_none()));
        let lives = turn.candidates.iter().any(|one| !one.is_lost);
        let chosen_loses = state.tree.node_value(state.root).loses(state.side());
        assert!(!(lives && chosen_loses));
    }
    assert!(replaced > 10, "{replaced}");
}

/// Half of the candidates go each time, so that the last ones have the most visits; in whatever number they come.
#[test]
fn halving_leaves_the_most_visits_to_the_last() {
    let mut rng = ChaCha8Rng::seed_from_u64(76);
    let mut halved = 0;
    for index in 0..24 {
        let game = random_game(4 + index, &mut rng);
        if game.outcome().is_some() {
            continue;
        }
        for candidates in [1, 2, 3, 5, 6, 7, 12, 16] {
            let options = options(Budget::evaluations(200), candidates, 16);
            let search = decided(game.position(), Hashed::default(), options, &mut rng);
            let (state, turn) = of(&search);
            if state.is_proven() || turn.candidates.iter().any(|one| one.is_lost) {
                continue;
            }
            let visits = |is_alive| {
                let all = turn.candidates.iter();
                let those = all.filter(move |one| one.is_alive == is_alive);
                those.map(|one| one.visits)
            };
            let alive = visits(true).count();
            assert!((1..=2).contains(&alive), "{alive} are left of {candidates}");
            let (least, most) = (visits(true).min(), visits(false).max());
            assert!(most.is_none() || most <= least, "{most:?}, {least:?}");
            let spread = visits(true).max().unwrap() - visits(true).min().unwrap();
            assert!(spread <= 1, "{spread}");
            halved += u32::from(most < least);
        }
    }
    assert!(halved > 50, "{halved}");
}

/// Prefixes are evaluated only to continue from them: those as well that stand in for lost turns.
#[test]
fn what_the_beam_asks_for_is_followed() {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    let mut brought_back = 0;
    for index in 0..200 {
        let position = few_turns(200, &mut rng);
        let candidates = [2, 3, 5][index % 3];
        let options = options(Budget::evaluations(400), candidates, candidates);
        let search = decided(&position, Hashed::default(), options, &mut rng);
        let (state, turn) = of(&search);
        if state.is_proven() {
            continue;
        }
        let evaluated = state.tree.node_ids().filter(|&id| {
            let node = state.tree.node(id);
            node.start == state.root && node.kind == NodeKind::Expanded
        });
        let evaluated: Vec<_> = evaluated.collect();
        let followed = |&id: &_| turn.beam.has_expanded(id);
        assert!(evaluated.iter().all(followed), "in {position}");
        // The root, and at most so many of each level.
        brought_back += u32::from(evaluated.len() as u32 > 1 + 3 * candidates);
    }
    assert!(brought_back > 10, "{brought_back}");
}
