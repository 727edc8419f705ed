//! Tests of searches with several leaves in flight.

use super::super::testing::{
    Hashed, answer, counted_visits, few_turns, history_of, learning, random_game,
};
use super::super::tree::{NodeKind, Tree};
use super::super::{Budget, Evaluation, Search, SearchOptions};
use crate::config::SearchMode;
use arimaa::rules::{Game, Position};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const MODES: [SearchMode; 2] = [SearchMode::Puct, SearchMode::Gumbel];

fn options(mode: SearchMode, budget: Budget, parallel_leaves: u32) -> SearchOptions {
    SearchOptions {
        budget,
        parallel_leaves,
        ..learning(mode, 1)
    }
}

/// Positions that are not over: both setups, games, and few pieces.
fn positions(rng: &mut ChaCha8Rng) -> Vec<Position> {
    let games = (0..12).map(|index| *random_game(2 * index, rng).position());
    let mut positions: Vec<Position> = games.collect();
    positions.extend((0..4).map(|_| few_turns(400, rng)));
    positions.retain(|position| position.outcome(&history_of(position)).is_none());
    positions
}

/// Every node has as many visits as its edges say, and none is left over of what was in flight.
fn check_visits(tree: &Tree) {
    for id in tree.node_ids() {
        let node = tree.node(id);
        match node.kind {
            NodeKind::Unexpanded => assert_eq!((node.visits, tree.edge_visits(id)), (0, 0)),
            NodeKind::Terminal => assert_eq!(node.visits, 1),
            NodeKind::Expanded => assert_eq!(node.visits, 1 + tree.edge_visits(id)),
        }
    }
}

/// The visits on all edges of a tree.
fn edge_visits(tree: &Tree) -> u64 {
    let visits = tree.node_ids().map(|id| u64::from(tree.edge_visits(id)));
    visits.sum()
}

#[test]
fn visits_add_up_and_nothing_stays_in_flight() {
    let mut rng = ChaCha8Rng::seed_from_u64(71);
    let (mut counted_up, mut taken_back) = (0, 0);
    for position in positions(&mut rng) {
        let history = history_of(&position);
        for mode in MODES {
            for (visits, leaves) in [(3, 2), (64, 5), (500, 8), (500, 64), (70, 1_000)] {
                let options = options(mode, Budget::visits(visits), leaves);
                let mut search = Search::new(&position, &history, options).unwrap();
                while answer(&mut search, Hashed::default(), &history, &mut rng) {
                    // All answers are there: what is counted now is counted for good.
                    assert!(!search.simulations().have_virtual_visits);
                }
                let state = search.state();
                let decision = search.decision().unwrap();
                assert!(decision.visits <= visits && search.simulations().is_empty());
                if state.is_proven() {
                    continue;
                }
                check_visits(&state.tree);
                let Some(counted) = counted_visits(&search) else {
                    taken_back += 1;
                    continue;
                };
                assert_eq!(counted, decision.visits, "{mode:?}, {leaves} in {position}");
                counted_up += 1;
            }
        }
    }
    assert!(counted_up > 10 * taken_back, "{counted_up}, {taken_back}");
}

/// While leaves are out their simulations are counted, and see to it that different leaves are out; after the last answer they are
/// not counted any more, until they are backed up.
#[test]
fn simulations_are_counted_while_they_are_in_flight() {
    let mut rng = ChaCha8Rng::seed_from_u64(72);
    let position = *random_game(8, &mut rng).position();
    let history = history_of(&position);
    for mode in MODES {
        let options = options(mode, Budget::evaluations(2_000), 16);
        let mut search = Search::new(&position, &history, options).unwrap();
        let mut full = 0;
        loop {
            let before = edge_visits(&search.state().tree);
            let queries = search.leaves(&history, &mut rng).to_vec();
            if queries.is_empty() {
                break;
            }
            assert!(queries.len() <= 16);
            full += usize::from(queries.len() == 16);
            for (index, query) in queries.iter().enumerate() {
                assert!(!queries[..index].contains(query), "a leaf is out twice");
            }
            let in_flight = edges_in_flight(&search);
            let out = edge_visits(&search.state().tree);
            let mut counts = Vec::new();
            for (index, query) in queries.iter().enumerate() {
                let (value, priors) = Hashed::default().judge(&query.state, query.legal.count());
                let evaluation = Evaluation {
                    value,
                    priors: &priors,
                };
                counts.push(edge_visits(&search.state().tree));
                search.answer(index, "hashed", evaluation).unwrap();
            }
            assert!(counts.iter().all(|&count| count == out));
            let after = edge_visits(&search.state().tree);
            // The beam's leaves are reached by no simulation.
            assert_eq!(out - after, in_flight, "{mode:?}");
            assert!(after >= before);
        }
        assert!(full > 5, "{mode:?}: {full}");
    }
}

/// The edges on the ways of all simulations in flight.
fn edges_in_flight(search: &Search) -> u64 {
    let simulations = search.simulations().in_flight().iter();
    simulations.map(|one| one.descent.len() as u64).sum()
}

/// What is kept for the next turn is free of simulations that were still out, whenever that turn begins.
#[test]
fn a_tree_that_is_kept_has_nothing_in_flight() {
    let mut rng = ChaCha8Rng::seed_from_u64(73);
    for mode in MODES {
        let mut kept = 0;
        for batches in [2, 5, 9, 14, 20, 40] {
            let mut game = Game::from_position(*random_game(10, &mut rng).position());
            let options = options(mode, Budget::evaluations(1_000), 12);
            let mut search = Search::new(game.position(), game.history(), options).unwrap();
            for _ in 0..6 {
                if game.outcome().is_some() {
                    break;
                }
                let history = game.history().clone();
                for _ in 0..batches {
                    answer(&mut search, Hashed::default(), &history, &mut rng);
                }
                // These are never answered, or not all of them.
                let out = search.leaves(&history, &mut rng).len();
                if out > 1 {
                    let query = search.leaves(&history, &mut rng)[0];
                    let (value, priors) =
                        Hashed::default().judge(&query.state, query.legal.count());
                    let evaluation = Evaluation {
                        value,
                        priors: &priors,
                    };
                    search.answer(0, "hashed", evaluation).unwrap();
                }
                // The position itself, and then what follows the turn that is found.
                search
                    .reuse_tree(game.position(), &history, options)
                    .unwrap();
                kept += usize::from(search.state().tree.len() > 1);
                check_visits(&search.state().tree);
                while answer(&mut search, Hashed::default(), &history, &mut rng) {}
                check_visits_unless_proven(&search);
                let turn = search.decision().unwrap().turn.clone();
                game.play(&turn).unwrap();
                if game.outcome().is_none() {
                    search
                        .reuse_tree(game.position(), game.history(), options)
                        .unwrap();
                    check_visits(&search.state().tree);
                }
            }
        }
        assert!(kept > 10, "{mode:?}: {kept}");
    }
}

fn check_visits_unless_proven(search: &Search) {
    if !search.state().is_proven() {
        check_visits(&search.state().tree);
    }
}

/// 0 and 1 are the search that has nothing in flight beside what mode `gumbel` always hands out together.
#[test]
fn with_one_leaf_there_are_no_virtual_visits() {
    let mut rng = ChaCha8Rng::seed_from_u64(74);
    for position in positions(&mut rng) {
        let history = history_of(&position);
        for mode in MODES {
            let decided = |leaves| {
                let mut rng = ChaCha8Rng::seed_from_u64(5);
                let options = options(mode, Budget::evaluations(150), leaves);
                let mut search = Search::new(&position, &history, options).unwrap();
                let mut sizes = Vec::new();
                loop {
                    sizes.push(search.leaves(&history, &mut rng).len());
                    assert!(!search.simulations().have_virtual_visits);
                    if !answer(&mut search, Hashed::default(), &history, &mut rng) {
                        break;
                    }
                }
                (sizes, search.decision().unwrap().clone())
            };
            let (sizes, decision) = decided(1);
            assert!(mode == SearchMode::Gumbel || sizes.iter().all(|&size| size <= 1));
            assert_eq!((sizes, decision), decided(0));
        }
    }
}
