//! The tree holds together, and what is kept of it from turn to turn is what was there.

use super::super::decision::Decision;
use super::super::flow::Flow;
use super::super::testing::{
    Hashed, answer, counted_visits, few_turns, history_of, learning as options, random_game,
    random_turn,
};
use super::super::{Budget, Search};
use super::*;
use crate::config::SearchMode;
use arimaa::rules::Game;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rustc_hash::FxHashMap;

/// Answers all that a search asks; what it decides.
fn decide(search: &mut Search, history: &History, rng: &mut ChaCha8Rng) -> Decision {
    while answer(search, Hashed::default(), history, rng) {}
    search.decision().unwrap().clone()
}

/// No two of these ranges share an element.
fn are_apart(mut ranges: Vec<(usize, usize)>) -> bool {
    ranges.retain(|(first, end)| first < end);
    ranges.sort_unstable();
    ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

/// Holds every node to its state: starts, edges, links, children and the table.
fn check_consistency(tree: &Tree, history: &History) {
    assert_eq!(tree.nodes.len(), tree.node_values.len());
    assert_eq!(tree.table.len(), tree.nodes.len());
    let mut edges = Vec::new();
    let mut links = Vec::new();
    for id in tree.node_ids() {
        let node = tree.node(id);
        let state = tree.state(id);
        assert_eq!(tree.find(&state), Some(id), "the table finds the node");
        let start = tree.node(node.start);
        assert_eq!(start.state.steps_used(), 0);
        assert_eq!(start.start, node.start, "a turn's start is its own");
        assert_eq!(tree.state(node.start).board(), state.start());
        assert_eq!(node.start == id, state.steps_used() == 0);
        let range = node.edges;
        edges.push((
            range.first as usize,
            range.first as usize + tree.edges(id).len(),
        ));
        links.push(tree.links.place(node.links));
        assert!(tree.links(id).len() <= tree.edges(id).len());
        match node.kind {
            NodeKind::Expanded => {
                let legal = state.legal_actions(history);
                assert_eq!(tree.edges(id).len(), legal.count());
                assert!(tree.edges(id).is_sorted());
            }
            NodeKind::Unexpanded | NodeKind::Terminal => assert_eq!(tree.edges(id).len(), 0),
        }
        for (edge, link) in tree.links(id).iter().enumerate() {
            let Some(child) = link.child() else {
                assert_eq!(link.visits, 0);
                continue;
            };
            let action = tree.edges(id)[edge].action(state.side());
            let after = state_after(&state, action);
            assert!(tree.state(child) == after, "the edge leads to its child");
        }
        let value = tree.node_value(id).value;
        assert!((-1.0..=1.0).contains(&value), "{value}");
    }
    let unexpanded = tree
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Unexpanded);
    assert_eq!(unexpanded.count(), tree.unexpanded);
    assert!(are_apart(edges), "edges overlap");
    assert!(are_apart(links), "links overlap");
}

/// What a node says, without the places that change when a tree is kept.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    kind: NodeKind,
    visits: u32,
    repetitions: u8,
    numbers: [u32; 3],
    edges: Vec<(usize, u32)>,
    /// The visits and the child's key of every link.
    links: Vec<(u32, Option<u64>)>,
}

/// All nodes that can be reached from one, by the keys of their states.
fn below(tree: &Tree, root: NodeId) -> FxHashMap<u64, Said> {
    let mut said = FxHashMap::default();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        let (node, node_value) = (tree.node(id), tree.node_value(id));
        let key = |id: NodeId| tree.state(id).key();
        let links = tree.links(id).iter();
        let new = Said {
            kind: node.kind,
            visits: node.visits,
            repetitions: node.repetitions,
            numbers: [node.own_value, node_value.value, node_value.square].map(f32::to_bits),
            edges: tree
                .edges(id)
                .iter()
                .map(|edge| (edge.index(), edge.prior().to_bits()))
                .collect(),
            links: links
                .clone()
                .map(|link| (link.visits, link.child().map(key)))
                .collect(),
        };
        if said.insert(key(id), new).is_none() {
            waiting.extend(links.filter_map(|link| link.child()));
        }
    }
    said
}

#[test]
fn what_lies_below_the_turns_that_were_played_is_kept() {
    let mut rng = ChaCha8Rng::seed_from_u64(61);
    let (mut compared, mut forgotten) = (0, 0);
    for index in 0..40 {
        let game = random_game(4 + 2 * index, &mut rng);
        let (game, budget) = match index % 2 {
            0 => (Game::from_position(few_turns(300, &mut rng)), 3_000),
            _ => (game, 400),
        };
        if game.outcome().is_some() {
            continue;
        }
        let mode = [SearchMode::Puct, SearchMode::Gumbel][index / 2 % 2];
        let mut game = game;
        let mut search =
            Search::new(game.position(), game.history(), options(mode, budget)).unwrap();
        for _ in 0..4 {
            let history = game.history().clone();
            let decision = decide(&mut search, &history, &mut rng);
            check_consistency(&search.state().tree, &history);
            // One side searches after its own and the enemy's turn, the other after each turn.
            game.play(&decision.turn).unwrap();
            if game.outcome().is_none() && index % 3 == 0 {
                let reply = random_turn(game.position(), game.history(), &mut rng);
                game.play(&reply).unwrap();
            }
            if game.outcome().is_some() || game.history().forbidden_key() != history.forbidden_key()
            {
                break;
            }
            let tree = &search.state().tree;
            let root = tree.find(&StepState::new(game.position()));
            let before = root.map(|root| below(tree, root));
            search
                .reuse_tree(game.position(), game.history(), options(mode, budget))
                .unwrap();
            let state = search.state();
            check_consistency(&state.tree, game.history());
            let after = below(&state.tree, state.root);
            assert_eq!(after.len(), state.tree.len(), "nothing else is kept");
            let Some(before) = before else {
                assert_eq!(state.tree.len(), 1);
                continue;
            };
            let root = state.tree.state(state.root).key();
            for (key, said) in &after {
                let was = &before[key];
                if said == was {
                    compared += 1;
                } else if *key == root && state.is_proven() {
                    // An immobilization, which is looked for where a search begins.
                    assert_eq!(said.links, was.links);
                } else {
                    assert_eq!(
                        (said.kind, said.visits, said.links.len()),
                        (NodeKind::Unexpanded, 0, 0)
                    );
                    forgotten += 1;
                }
            }
        }
    }
    assert!(compared > 2_000, "{compared}, {forgotten}");
}

/// A position that has stood in the game once more than when it was evaluated is evaluated anew, and nothing else.
#[test]
fn positions_that_have_stood_again_are_fresh() {
    let mut rng = ChaCha8Rng::seed_from_u64(62);
    let start = few_turns(60, &mut rng);
    let mut history = history_of(&start);
    let mut search = Search::new(&start, &history, options(SearchMode::Puct, 2_000)).unwrap();
    decide(&mut search, &history, &mut rng);
    let tree = &search.state().tree;
    let stood = tree.node_ids().find(|&id| {
        let node = tree.node(id);
        let is_later = node.start == id && id != search.state().root;
        is_later && node.kind == NodeKind::Expanded && node.visits > 1
    });
    let stood = tree.state(stood.unwrap()).start_position();
    let before = below(tree, search.state().root);
    history.push(&stood);
    search
        .reuse_tree(&start, &history, options(SearchMode::Puct, 2_000))
        .unwrap();
    let tree = &search.state().tree;
    check_consistency(tree, &history);
    let unexpanded = tree.find(&StepState::new(&stood)).unwrap();
    assert_eq!(
        (tree.node(unexpanded).kind, tree.node(unexpanded).visits),
        (NodeKind::Unexpanded, 0)
    );
    let after = below(tree, search.state().root);
    assert!(after.len() < before.len() && after.len() > 1);
    let changed = after.iter().filter(|(key, said)| before[*key] != **said);
    assert_eq!(changed.count(), 1);
    // Until then it counts as what the simulations made of it.
    let key = StepState::new(&stood).key();
    assert_eq!(after[&key].numbers[1..], before[&key].numbers[1..]);
    assert_ne!(after[&key].numbers[1], 0);
    // Twice: it is forbidden now, and the edges that lead there must go.
    history.push(&stood);
    search
        .reuse_tree(&start, &history, options(SearchMode::Puct, 2_000))
        .unwrap();
    assert_eq!(search.state().tree.len(), 1, "the tree begins anew");
    decide(&mut search, &history, &mut rng);
    let tree = &search.state().tree;
    check_consistency(tree, &history);
    assert_eq!(tree.find(&StepState::new(&stood)), None);
    // As many forbidden positions, but another one.
    let mut other = history_of(&start);
    let next = few_turns(60, &mut rng);
    [next, next]
        .iter()
        .for_each(|position| other.push(position));
    assert_eq!(other.forbidden_count(), history.forbidden_count());
    search
        .reuse_tree(&start, &other, options(SearchMode::Puct, 2_000))
        .unwrap();
    assert_eq!(search.state().tree.len(), 1, "the tree begins anew");
}

#[test]
fn whole_games_keep_a_consistent_tree() {
    for seed in 0..8 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mode = [SearchMode::Puct, SearchMode::Gumbel][seed as usize % 2];
        let mut game = Game::new();
        let mut search = Search::new(game.position(), game.history(), options(mode, 48)).unwrap();
        while game.outcome().is_none() && game.turns().len() < 120 {
            let history = game.history().clone();
            search
                .reuse_tree(game.position(), &history, options(mode, 48))
                .unwrap();
            check_consistency(&search.state().tree, &history);
            let decision = decide(&mut search, &history, &mut rng);
            check_consistency(&search.state().tree, &history);
            game.play(&decision.turn).unwrap();
        }
        assert!(game.turns().len() > 4);
    }
}

/// Every simulation is counted where it went: at the root those that started there, and below the steps made final the others.
#[test]
fn visits_add_up() {
    let (mut counted_up, mut taken_back) = (0, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(63);
    for index in 0..24 {
        let game = random_game(index, &mut rng);
        if game.outcome().is_some() {
            continue;
        }
        for mode in [SearchMode::Puct, SearchMode::Gumbel] {
            let mut options = options(mode, 1);
            options.budget = Budget::visits([3, 64, 500][index % 3]);
            let mut search = Search::new(game.position(), game.history(), options).unwrap();
            let decision = decide(&mut search, game.history(), &mut rng);
            let state = search.state();
            if state.is_proven() {
                continue;
            }
            let tree = &state.tree;
            for id in tree.node_ids() {
                let node = tree.node(id);
                match node.kind {
                    NodeKind::Unexpanded => assert_eq!(node.visits, 0),
                    NodeKind::Terminal => assert_eq!(node.visits, 1),
                    NodeKind::Expanded => assert_eq!(node.visits, 1 + tree.edge_visits(id)),
                }
            }
            match counted_visits(&search) {
                Some(counted) => {
                    assert_eq!(counted, decision.visits);
                    counted_up += u32::from(mode == SearchMode::Puct);
                }
                None => taken_back += 1,
            }
            let flow = Flow::of_visits(tree, state.root);
            let masses: f64 = flow.arrivals().iter().map(|one| one.mass).sum();
            assert!((masses - 1.0).abs() < 1e-9, "{masses}");
        }
    }
    assert!(counted_up > 10 * taken_back, "{counted_up}, {taken_back}");
}
