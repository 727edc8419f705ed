//! The targets are those of the improved policy over whole turns, written out turn by turn.

use super::super::{Candidate, GumbelTurn, Improved};
use super::{decided, each_order, of, options};
use crate::search::state::SearchState;
use crate::search::testing::{Hashed, few_turns, history_of, position, random_game};
use crate::search::tree::{NodeId, state_after, win_probability};
use crate::search::{Budget, Search};
use arimaa::rules::{Action, Position, Side, StepState};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

/// An order of a turn's steps, as far as the beam has followed them.
#[derive(Debug)]
struct Order {
    actions: Vec<Action>,
    prior: f64,
    /// The candidate that it leads to.
    candidate: Option<usize>,
    /// Whether the tree knows that it loses.
    is_lost: bool,
}

/// The improved policy by its definition: all orders of all turns, each with its prior and the value of its end.
#[derive(Debug)]
struct WrittenOut {
    orders: Vec<Order>,
    /// The value of what is no candidate.
    mixed_value: f64,
    scale: f64,
}

impl WrittenOut {
    fn new(searched: &SearchState, turn: &GumbelTurn) -> Self {
        let history = history_of(&searched.position);
        let start = StepState::new(&searched.position);
        let is_followed = |state: &StepState| {
            let node = searched.tree.find(state);
            node.is_some_and(|node| turn.beam.has_expanded(node))
        };
        let mut found = Vec::new();
        each_order(&start, &history, &mut found, &mut Vec::new(), &is_followed);
        let orders: Vec<Order> = found
            .into_iter()
            .map(|(actions, end)| Order {
                is_lost: searched
                    .tree
                    .find(&end)
                    .is_some_and(|end| searched.tree.node_value(end).loses(searched.side())),
                prior: prior_of(searched, &actions),
                candidate: searched
                    .tree
                    .find(&end)
                    .and_then(|end| turn.candidates.iter().position(|one| one.end == end)),
                actions,
            })
            .collect();
        let (mut mass, mut sum, mut visits) = (0.0, 0.0, 0.0);
        for (place, candidate) in turn.candidates.iter().enumerate() {
            let to_it = orders.iter().filter(|one| one.candidate == Some(place));
            let prior: f64 = to_it.map(|one| one.prior).sum();
            assert!(
                (prior.ln() - candidate.log_prior).abs() < 1e-6,
                "the merged prior of a candidate is that of its orders"
            );
            if candidate.visits > 0 {
                mass += prior;
                sum += prior * f64::from(searched.value_for_mover(candidate.end));
                visits += f64::from(candidate.visits);
            }
        }
        let own = own_value(searched);
        let mean = if mass > 0.0 { sum / mass } else { 0.0 };
        Self {
            orders,
            mixed_value: (own + visits * mean) / (1.0 + visits),
            scale: searched.options.target_value_scale.into(),
        }
    }

    /// The completed value of where an order leads, for the mover.
    fn value(&self, searched: &SearchState, candidates: &[Candidate], order: &Order) -> f64 {
        let known = order.candidate.map(|place| &candidates[place]);
        match known {
            Some(one) if one.visits > 0 || searched.tree.node_value(one.end).proof.is_some() => {
                f64::from(searched.value_for_mover(one.end))
            }
            _ => self.mixed_value,
        }
    }

    /// What an order weighs: its prior times `exp σ(q)`; nothing where it is lost.
    fn weight(&self, searched: &SearchState, candidates: &[Candidate], order: &Order) -> f64 {
        if order.is_lost {
            return 0.0;
        }
        let value = self.value(searched, candidates, order);
        order.prior * (self.scale * (value - 1.0)).exp()
    }

    /// The share of the weight through some actions that continues with another; none without weight.
    fn target(
        &self,
        searched: &SearchState,
        candidates: &[Candidate],
        before: &[Action],
        action: Action,
    ) -> Option<f64> {
        let through = |prefix: &[Action]| -> f64 {
            let orders = self.orders.iter();
            orders
                .filter(|order| order.actions.starts_with(prefix))
                .map(|order| self.weight(searched, candidates, order))
                .sum()
        };
        let all = through(before);
        let with: Vec<Action> = before.iter().copied().chain([action]).collect();
        (all > 0.0).then(|| through(&with) / all)
    }
}

/// The evaluator's value of the turn's start, for the mover.
fn own_value(searched: &SearchState) -> f64 {
    let own = win_probability(searched.side(), searched.tree.node(searched.root).own_value);
    own.into()
}

/// The value of what is no candidate, by the candidates' own priors.
fn mixed_value(searched: &SearchState, turn: &GumbelTurn) -> f64 {
    let visited = turn.candidates.iter().filter(|one| one.visits > 0);
    let (mut mass, mut sum, mut visits) = (0.0, 0.0, 0.0);
    for one in visited {
        mass += one.log_prior.exp();
        sum += one.log_prior.exp() * f64::from(searched.value_for_mover(one.end));
        visits += f64::from(one.visits);
    }
    let mean = if mass > 0.0 { sum / mass } else { 0.0 };
    (own_value(searched) + visits * mean) / (1.0 + visits)
}

/// The product of the priors of an order of steps.
fn prior_of(searched: &SearchState, actions: &[Action]) -> f64 {
    let mut state = StepState::new(&searched.position);
    let mut prior = 1.0;
    for &action in actions {
        let node = searched.tree.find(&state).unwrap();
        let mut edges = searched.tree.edges(node).iter();
        let edge = edges.find(|edge| edge.action(searched.side()) == action);
        prior *= f64::from(edge.unwrap().prior());
        state = state_after(&state, action);
    }
    prior
}

/// The states that the beam has followed, each with one order that leads there.
fn followed(written: &WrittenOut, searched: &SearchState) -> Vec<(NodeId, Vec<Action>)> {
    let mut states = FxHashMap::default();
    for order in &written.orders {
        let mut state = StepState::new(&searched.position);
        for (count, &action) in order.actions.iter().enumerate() {
            let node = searched.tree.find(&state).unwrap();
            states.insert(node, order.actions[..count].to_vec());
            state = state_after(&state, action);
        }
    }
    states.into_iter().collect()
}

/// The step targets at a state, by action.
fn targets(searched: &SearchState, turn: &GumbelTurn, node: NodeId) -> Vec<(Action, f64)> {
    let improved = Improved::new(searched, &turn.candidates);
    let policy = improved
        .recursion(searched, &turn.candidates, &turn.beam)
        .policy(node);
    let edges = searched.tree.edges(node).iter();
    edges
        .map(|edge| edge.action(searched.side()))
        .zip(policy.into_iter().map(f64::from))
        .collect()
}

/// Random searches of small positions without a proof: with all turns as candidates or few of them, and beams that hold all prefixes
/// or few. All candidates were sampled; some may be lost.
fn searches(
    count: usize,
    evaluator: Hashed,
    is_wanted: impl Fn(&SearchState, &GumbelTurn) -> bool,
    rng: &mut ChaCha8Rng,
) -> Vec<(Position, Search)> {
    let sizes = [(100, 300), (4, 300), (3, 5), (8, 8)];
    searches_of(&sizes, count, evaluator, is_wanted, rng)
}

/// The same with so many candidates and beams of that width, one after the other.
fn searches_of(
    sizes: &[(u32, u32)],
    count: usize,
    evaluator: Hashed,
    is_wanted: impl Fn(&SearchState, &GumbelTurn) -> bool,
    rng: &mut ChaCha8Rng,
) -> Vec<(Position, Search)> {
    let mut found = Vec::new();
    while found.len() < count {
        let index = found.len();
        let position = few_turns(60, rng);
        let (candidates, beam_width) = sizes[index % sizes.len()];
        let budget = Budget::evaluations([300, 900][index / 4 % 2]);
        let mut options = options(budget, candidates, beam_width);
        options.target_value_scale = [1.0, 5.0, 50.0][index % 3];
        options.gumbel.value_scale = [0.02, 0.1, 1.0][index % 3];
        options.gumbel_noise = [0.0, 1.0][index % 2];
        let search = decided(&position, evaluator, options, rng);
        let (searched, turn) = of(&search);
        let is_sampled = turn.candidates.iter().all(|one| one.slot.is_some());
        let is_usable = is_sampled && !searched.is_proven() && !knows_more(searched, turn);
        if is_usable && is_wanted(searched, turn) {
            found.push((position, search));
        }
    }
    found
}

/// Whether simulations came upon a turn that is no candidate, and have proven that it loses: the targets know that only where they have
/// come upon it by the turn's own steps.
fn knows_more(searched: &SearchState, turn: &GumbelTurn) -> bool {
    let orders = WrittenOut::new(searched, turn).orders;
    let mut others = orders.iter().filter(|order| order.candidate.is_none());
    others.any(|order| order.is_lost)
}

/// Whether nothing that is compared is proven.
fn is_open(searched: &SearchState, turn: &GumbelTurn) -> bool {
    let mut candidates = turn.candidates.iter();
    candidates.all(|one| searched.tree.node_value(one.end).proof.is_none())
}

/// Holds the targets of a search to the policy of whole turns; says how many there were, and how many of them were 0.
fn hold_to_whole_turns(start: &Position, search: &Search) -> (u32, u32) {
    let (searched, turn) = of(search);
    let written = WrittenOut::new(searched, turn);
    let (mut compared, mut lost) = (0, 0);
    for (node, before) in followed(&written, searched) {
        let targets = targets(searched, turn, node);
        let sum: f64 = targets.iter().map(|target| target.1).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum} in {start}");
        for (action, found) in targets {
            match written.target(searched, &turn.candidates, &before, action) {
                Some(expected) => {
                    assert!(
                        (found - expected).abs() < 1e-4,
                        "{found} for {expected} in {start}"
                    );
                    lost += u32::from(expected == 0.0);
                }
                // All is lost: the prior.
                None => assert!(found > 0.0),
            }
            compared += 1;
        }
    }
    (compared, lost)
}

#[test]
fn the_recursion_is_the_policy_of_whole_turns_written_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(181);
    let (mut compared, mut lost) = (0, 0);
    for (start, search) in searches(48, Hashed::default(), |_, _| true, &mut rng) {
        let of_search = hold_to_whole_turns(&start, &search);
        (compared, lost) = (compared + of_search.0, lost + of_search.1);
    }
    assert!(compared > 2_000 && lost > 100, "{compared}, {lost}");
}

/// A prefix that is followed after others, in the place of a lost turn, may lead to states whose own steps were followed before: what
/// it adds to their probability reaches the turns behind them, and the targets know the way.
#[test]
fn orders_that_are_found_late_count_like_the_others() {
    let mut rng = ChaCha8Rng::seed_from_u64(188);
    let has_replaced = |searched: &SearchState, turn: &GumbelTurn| {
        turn.candidates.len() as u32 > searched.options.gumbel.candidates.fixed().unwrap_or(0)
    };
    let sizes = [(2, 2), (3, 5), (5, 8)];
    let mut compared = 0;
    for (start, search) in searches_of(&sizes, 24, Hashed::default(), has_replaced, &mut rng) {
        compared += hold_to_whole_turns(&start, &search).0;
    }
    assert!(compared > 500, "{compared}");
}

/// The value that the policy is expected to reach is the one that it reaches turn by turn, and no less than with the priors.
#[test]
fn the_improved_policy_is_not_expected_to_be_worse() {
    let mut rng = ChaCha8Rng::seed_from_u64(182);
    let mut improvements = 0;
    for (start, search) in searches(48, Hashed::default(), is_open, &mut rng) {
        let (searched, turn) = of(&search);
        let written = WrittenOut::new(searched, turn);
        // The value is that of what is chosen, by the sharper of the two scales.
        let most = turn.candidates.iter().map(|one| one.visits).max();
        let gumbel = &searched.options.gumbel;
        let choosing = f64::from(gumbel.value_scale)
            * f64::from(gumbel.visit_constant + most.unwrap_or(0) as f32);
        let mut weights = (0.0, 0.0);
        let mut sums = (0.0, 0.0);
        for order in &written.orders {
            let value = written.value(searched, &turn.candidates, order);
            let weight = order.prior * (choosing * (value - 1.0)).exp();
            weights = (weights.0 + order.prior, weights.1 + weight);
            sums = (sums.0 + order.prior * value, sums.1 + weight * value);
        }
        let improved = Improved::new(searched, &turn.candidates);
        let before = sums.0 / weights.0;
        let after =
            f64::from(improved.expected_value(searched, &turn.candidates, turn.rest_is_lost));
        assert!(
            (after - sums.1 / weights.1).abs() < 1e-3,
            "{after} in {start}"
        );
        assert!(after >= before - 1e-6, "{after} after {before} in {start}");
        improvements += u32::from(after > before + 0.01);
    }
    assert!(improvements > 8, "{improvements}");
}

/// The same over positions of games, whose turns are too many to be written out: the mean over the candidates and the rest.
#[test]
fn targets_over_positions_of_games_sum_to_one_and_promise_no_less() {
    let mut rng = ChaCha8Rng::seed_from_u64(183);
    for turns in 0..24 {
        let game = random_game(3 * turns, &mut rng);
        if game.outcome().is_some() {
            continue;
        }
        let mut options = options(Budget::evaluations(160), 12, 16);
        options.target_value_scale = rng.random_range(0.5..25.0);
        options.gumbel_noise = rng.random_range(0.0..2.0);
        let search = decided(game.position(), Hashed::default(), options, &mut rng);
        let (searched, turn) = of(&search);
        if searched.is_proven() {
            continue;
        }
        for id in searched.tree.node_ids() {
            if turn.beam.has_expanded(id) {
                let sum: f64 = targets(searched, turn, id)
                    .iter()
                    .map(|target| target.1)
                    .sum();
                assert!((sum - 1.0).abs() < 1e-5, "{sum}");
            }
        }
        if turn.candidates.iter().any(|one| one.is_lost) {
            continue;
        }
        let improved = Improved::new(searched, &turn.candidates);
        let known: f64 = turn.candidates.iter().map(|one| one.log_prior.exp()).sum();
        let of_candidates = turn
            .candidates
            .iter()
            .map(|one| one.log_prior.exp() * improved.value_of(searched, one));
        let before = of_candidates.sum::<f64>() + (1.0 - known) * mixed_value(searched, turn);
        let after =
            f64::from(improved.expected_value(searched, &turn.candidates, turn.rest_is_lost));
        assert!(after >= before - 1e-5, "{after} after {before}");
    }
}

#[test]
fn equal_values_give_back_the_priors() {
    let mut rng = ChaCha8Rng::seed_from_u64(184);
    let evaluator = Hashed { value: Some(0.5) };
    let mut compared = 0;
    // Simulations that see an end of the game bring other values.
    let is_even = |searched: &SearchState, turn: &GumbelTurn| {
        let mut candidates = turn.candidates.iter();
        let followed = searched
            .tree
            .node_ids()
            .filter(|&id| turn.beam.has_expanded(id));
        let mut ends = followed.flat_map(|id| {
            searched
                .tree
                .links(id)
                .iter()
                .filter_map(|link| link.child())
        });
        candidates.all(|one| searched.tree.node_value(one.end).value == 0.0)
            && !ends.any(|end| searched.tree.node_value(end).proof.is_some())
    };
    for (start, search) in searches(16, evaluator, is_even, &mut rng) {
        let (searched, turn) = of(&search);
        for id in searched.tree.node_ids() {
            if !turn.beam.has_expanded(id) {
                continue;
            }
            for ((_, found), edge) in targets(searched, turn, id)
                .iter()
                .zip(searched.tree.edges(id))
            {
                let expected = f64::from(edge.prior());
                assert!((found - expected).abs() < 1e-3, "{found} in {start}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// However the improved policy plays a turn that several orders make, each of them is as likely beside the others as it was.
#[test]
fn orders_of_one_turn_share_its_weight_by_their_priors() {
    let mut rng = ChaCha8Rng::seed_from_u64(185);
    let mut compared = 0;
    for (start, search) in searches(16, Hashed::default(), |_, _| true, &mut rng) {
        let (searched, turn) = of(&search);
        let written = WrittenOut::new(searched, turn);
        let mut of_candidate: FxHashMap<usize, Vec<f64>> = FxHashMap::default();
        for order in &written.orders {
            let Some(place) = order
                .candidate
                .filter(|&place| !turn.candidates[place].is_lost)
            else {
                continue;
            };
            let mut state = StepState::new(&start);
            let mut likely = 1.0;
            for &action in &order.actions {
                let targets = targets(searched, turn, searched.tree.find(&state).unwrap());
                likely *= targets.iter().find(|one| one.0 == action).unwrap().1;
                state = state_after(&state, action);
            }
            if likely > 1e-5 {
                let quotients = of_candidate.entry(place).or_default();
                quotients.push(likely / order.prior);
            }
        }
        for quotients in of_candidate.values().filter(|one| one.len() > 1) {
            for quotient in quotients {
                assert!(
                    (quotient / quotients[0] - 1.0).abs() < 1e-2,
                    "{quotients:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

/// The cat can freeze the last rabbit, which leaves the enemy without a turn. Only the search finds that here.
#[test]
fn beside_a_win_nothing_else_weighs_anything() {
    let start = position(Side::Gold, "Cd4 Rg1 rd7");
    let mut rng = ChaCha8Rng::seed_from_u64(186);
    let mut options = options(Budget::evaluations(4_000), 300, 300);
    options.goal_solver = false;
    let search = decided(&start, Hashed::default(), options, &mut rng);
    let decision = search.decision().unwrap();
    assert_eq!(decision.proven_winner, Some(Side::Gold));
    let (searched, turn) = of(&search);
    let (mut winning, mut others) = (0, 0);
    for (node, _) in followed(&WrittenOut::new(searched, turn), searched) {
        let targets = targets(searched, turn, node);
        for (edge, (_, share)) in targets.iter().enumerate() {
            let Some(child) = searched.tree.child(node, edge) else {
                continue;
            };
            if searched.tree.node(child).state.steps_used() > 0 {
                continue;
            }
            // At a state that no win goes through, the priors stay.
            let wins = |place| {
                let child = searched.tree.child(node, place);
                child.is_some_and(|child| searched.tree.node_value(child).wins(Side::Gold))
            };
            if wins(edge) {
                winning += 1;
            } else if (0..targets.len()).any(wins) {
                assert_eq!(*share, 0.0);
                others += 1;
            }
        }
    }
    assert!(winning > 2 && others > 2, "{winning}, {others}");
}

/// A turn of several orders was simulated as often as it was, whatever the number of ways to it.
#[test]
fn the_visits_of_a_target_are_those_below_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(187);
    for (start, search) in searches(24, Hashed::default(), |_, _| true, &mut rng) {
        let turn = of(&search).1;
        let decision = search.decision().unwrap();
        let all: u32 = turn.candidates.iter().map(|one| one.visits).sum();
        assert_eq!(all, decision.visits, "{start}");
        for target in &decision.targets {
            assert!(target.visits <= all, "{target:?} of {all} in {start}");
            assert!(
                target.step > 0 || target.visits == all,
                "{target:?} of {all}"
            );
        }
    }
}

/// Where all turns that are not compared are known to be lost, the value is a mean of those that are.
#[test]
fn turns_that_are_known_to_be_lost_do_not_count() {
    let mut rng = ChaCha8Rng::seed_from_u64(189);
    let mut compared = 0;
    while compared < 24 {
        let position = few_turns(200, &mut rng);
        let options = options(Budget::evaluations(200), 3, 3);
        let search = decided(&position, Hashed::default(), options, &mut rng);
        let (searched, turn) = of(&search);
        let living = turn.candidates.iter().filter(|one| !one.is_lost);
        let values: Vec<f32> = living
            .clone()
            .map(|one| searched.value_for_mover(one.end))
            .collect();
        let is_wanted = turn.rest_is_lost && !values.is_empty() && !searched.is_proven();
        if !is_wanted || living.clone().any(|one| one.visits == 0) {
            continue;
        }
        let least = values.iter().copied().fold(1.0, f32::min);
        let most = values.iter().copied().fold(0.0, f32::max);
        let found = turn.expected_value(searched).unwrap();
        assert!(
            (least - 1e-6..=most + 1e-6).contains(&found),
            "{found} of {values:?} in {position}"
        );
        compared += 1;
    }
}
