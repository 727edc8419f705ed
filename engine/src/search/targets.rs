//! The improved policy of one state: what the priors should have been, by the values that the search found.

use super::options::SearchOptions;
use super::tree::{NodeId, Tree, win_probability};
use crate::config::PolicyTargetKind;

/// What the search says of one state of the decided turn.
#[derive(Debug, Clone, PartialEq)]
pub struct StateTarget {
    /// How many actions of the turn precede the state.
    pub step: u8,
    /// Simulations that continued from the state; of a proven one, all of the turn.
    pub visits: u32,
    /// Whether the target is a step of a proven win, and nothing that the search weighed.
    pub proven: bool,
    /// What the policy should be over all legal actions, in the order of [`arimaa::rules::ActionSet::in_index_order`]; it sums to 1.
    pub policy: Vec<f32>,
    /// How far that is from what the evaluator said, noise and temperature left aside: `KL(policy || prior) = Σ p ln(p / prior)` in
    /// nats, 0 or more. The priors are those that the tree keeps, normalised: 11 bits of each, and none below 2^-31, so that the
    /// sum is finite (below 22). 0 at states of a proven win that were never evaluated.
    pub surprise: f32,
}

/// What the policy should be at a node, in the order of its actions' indices; none where no simulation continued from it. Where all
/// turns are lost, it stays as it is: which of them were tried says nothing.
pub(super) fn state_target(
    tree: &Tree,
    id: NodeId,
    step: usize,
    is_lost: bool,
    options: &SearchOptions,
) -> Option<StateTarget> {
    let visits = tree.edge_visits(id);
    if visits == 0 {
        return None;
    }
    let policy = match options.policy_target {
        _ if is_lost => {
            let priors = tree.edges(id).iter().map(|edge| edge.prior());
            let total: f32 = priors.clone().sum();
            priors.map(|prior| prior / total).collect()
        }
        PolicyTargetKind::Visits => (0..tree.edges(id).len())
            .map(|edge| tree.link(id, edge).visits as f32 / visits as f32)
            .collect(),
        PolicyTargetKind::Improved => improved_policy(tree, id, options.target_value_scale),
    };
    Some(StateTarget {
        step: step as u8,
        visits,
        proven: false,
        policy: in_index_order(tree, id, &policy),
        surprise: surprise(tree, id, policy.iter().copied()),
    })
}

/// `KL(policy || prior)` of a policy over a node's edges, in nats: what the search has to teach there (KataGo weighs rows by it: Wu
/// 2019, "Accelerating Self-Play Learning in Go", and "policy surprise weighting" in its `KataGoMethods.md`). The priors are the
/// evaluator's, normalised; none is 0, as edges keep none below 2^-31.
pub(super) fn surprise(tree: &Tree, id: NodeId, policy: impl Iterator<Item = f32>) -> f32 {
    let priors = tree.edges(id).iter().map(|edge| f64::from(edge.prior()));
    let total: f64 = priors.clone().sum();
    let terms = policy.zip(priors).filter(|&(share, _)| share > 0.0);
    let terms =
        terms.map(|(share, prior)| f64::from(share) * (f64::from(share) * total / prior).ln());
    // Roundings may leave a trace below 0.
    terms.sum::<f64>().max(0.0) as f32
}

/// What is said of a node's edges, put into the order of their actions' indices.
pub(super) fn in_index_order(tree: &Tree, id: NodeId, of_edges: &[f32]) -> Vec<f32> {
    let mut pairs: Vec<(usize, f32)> = tree
        .edges(id)
        .iter()
        .map(|edge| edge.index())
        .zip(of_edges.iter().copied())
        .collect();
    pairs.sort_unstable_by_key(|&(index, _)| index);
    pairs.into_iter().map(|(_, share)| share).collect()
}

/// The priors of a node's edges, each times `exp(value_scale · q)` and normalised; `q` is the value of the edge's child in the view
/// of the side to move. Edges without visits get the value of the state: its own evaluation and the visited edges, weighted by
/// their priors (Danihelka, Guez, Schrittwieser and Silver 2022, "Policy improvement by planning with Gumbel", section 4 and
/// equation 33; here with a constant scale). Edges that are proven lost get nothing unless all are.
///
/// Where all values are equal these are the priors again: no policy drifts towards where its own visits happened to fall.
fn improved_policy(tree: &Tree, id: NodeId, value_scale: f32) -> Vec<f32> {
    let priors: Vec<f32> = tree.edges(id).iter().map(|edge| edge.prior()).collect();
    let values = completed_values(tree, id, &priors);
    let mover = tree.side(id);
    let is_lost = |edge: usize| {
        tree.child(id, edge)
            .is_some_and(|child| tree.node_value(child).loses(mover))
    };
    let lost: Vec<bool> = (0..priors.len()).map(is_lost).collect();
    let none_left = lost.iter().all(|&lost| lost);
    // Taken off all exponents: the exponential stays finite, the quotients the same.
    let greatest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weigh = |prior: &dyn Fn(usize) -> f32| -> Vec<f32> {
        let weight = |edge: usize| {
            if lost[edge] && !none_left {
                0.0
            } else {
                prior(edge) * (value_scale * (values[edge] - greatest)).exp()
            }
        };
        (0..priors.len()).map(weight).collect()
    };
    let mut weights = weigh(&|edge| priors[edge]);
    let mut total: f32 = weights.iter().sum();
    if total <= 0.0 {
        // The priors leave nothing of what is best: the values alone decide.
        weights = weigh(&|_| 1.0);
        total = weights.iter().sum();
    }
    weights.iter().map(|weight| weight / total).collect()
}

/// The value of each edge of a node in the view of the side to move.
fn completed_values(tree: &Tree, id: NodeId, priors: &[f32]) -> Vec<f32> {
    let node = tree.node(id);
    let mover = tree.side(id);
    let visited = |edge: usize| {
        let link = tree.link(id, edge);
        let child = link.child().filter(|_| link.visits > 0)?;
        Some(win_probability(mover, tree.node_value(child).value))
    };
    let (mut mass, mut sum, mut visits) = (0.0, 0.0, 0);
    for (edge, prior) in priors.iter().enumerate() {
        if let Some(value) = visited(edge) {
            mass += prior;
            sum += prior * value;
            visits += tree.link(id, edge).visits;
        }
    }
    let own_value = win_probability(mover, node.own_value);
    let of_state = if mass > 0.0 {
        (own_value + visits as f32 * sum / mass) / (1 + visits) as f32
    } else {
        own_value
    };
    (0..priors.len())
        .map(|edge| visited(edge).unwrap_or(of_state))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Evaluation, Query};
    use super::*;
    use arimaa::notation::parse_position;
    use arimaa::rules::{History, StepState};

    /// A node with a prior each for its edges, which must fall; the first edges have been visited once and have these values for
    /// Silver, the side to move.
    fn node(priors: &[f32], own_value: f32, values: &[f32]) -> (Tree, NodeId) {
        let position = parse_position(&format!("s [r      r{}R      R]", " ".repeat(48))).unwrap();
        let mut tree = Tree::default();
        let history = History::default();
        let id = tree.intern(&StepState::new(&position));
        let query: Query = tree.prepare(id, &history, true).unwrap();
        assert_eq!(query.legal.count(), priors.len());
        assert!(priors.is_sorted_by(|one, other| one >= other));
        let evaluation = Evaluation {
            value: 1.0 - own_value,
            priors,
        };
        tree.expand(id, &query, &evaluation);
        for (edge, &value) in values.iter().enumerate() {
            let child = tree.follow(id, edge).unwrap();
            tree.node_value_mut(child).value = 1.0 - 2.0 * value;
            tree.count_visit(id, edge);
        }
        (tree, id)
    }

    #[track_caller]
    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        let near = |(one, other): (&f32, &f32)| (one - other).abs() < 1e-3;
        assert!(found.iter().zip(expected).all(near), "{found:?}");
    }

    #[test]
    fn equal_values_leave_the_priors() {
        let priors = [0.4, 0.3, 0.2, 0.1];
        let (tree, id) = node(&priors, 0.7, &[0.7, 0.7]);
        close(&improved_policy(&tree, id, 10.0), &priors);
        let (tree, id) = node(&priors, 0.7, &[]);
        close(&improved_policy(&tree, id, 10.0), &priors);
    }

    #[test]
    fn values_move_the_priors_by_the_formula() {
        let priors = [0.4, 0.3, 0.2, 0.1];
        let (tree, id) = node(&priors, 0.5, &[0.9, 0.3]);
        // What is not known to be otherwise: the state itself counts once, each of the two edges once.
        let rest = (0.5 + 2.0 * (0.4 * 0.9 + 0.3 * 0.3) / 0.7) / 3.0;
        let weights = [
            0.4 * (2.0 * 0.9f32).exp(),
            0.3 * (2.0 * 0.3f32).exp(),
            0.2 * (2.0 * rest as f32).exp(),
            0.1 * (2.0 * rest as f32).exp(),
        ];
        let total: f32 = weights.iter().sum();
        let expected = weights.map(|weight| weight / total);
        close(&improved_policy(&tree, id, 2.0), &expected);
    }

    #[test]
    fn surprise_is_finite_where_the_prior_is_nothing_and_0_where_the_policy_is_the_prior() {
        let priors = [0.5, 0.5, 0.0, 0.0];
        let (tree, id) = node(&priors, 0.5, &[]);
        let of = |policy: [f32; 4]| surprise(&tree, id, policy.into_iter());
        assert!(of(priors) < 1e-6);
        assert!((of([1.0, 0.0, 0.0, 0.0]) - 2f32.ln()).abs() < 1e-6);
        assert!((of([0.0, 0.0, 1.0, 0.0]) - 31.0 * 2f32.ln()).abs() < 1e-5);
        let expected = 0.25 * 0.5f32.ln() + 0.75 * 1.5f32.ln();
        assert!((of([0.25, 0.75, 0.0, 0.0]) - expected).abs() < 1e-6);
        // Priors of networks in 16-bit types don't quite sum to 1: no surprise comes of that.
        for scale in [0.985, 1.015] {
            let priors = [0.4 * scale, 0.3 * scale, 0.2 * scale, 0.1 * scale];
            let (tree, id) = node(&priors, 0.5, &[]);
            let policy = [0.4, 0.3, 0.2, 0.1].into_iter();
            assert!(surprise(&tree, id, policy) < 1e-6);
        }
    }

    #[test]
    fn a_best_step_without_a_prior_gets_all_where_the_scale_leaves_nothing_else() {
        let priors = [0.5, 0.5, 0.0, 0.0];
        let (tree, id) = node(&priors, 0.0, &[0.0, 0.0, 1.0]);
        close(&improved_policy(&tree, id, 1_000.0), &[0.0, 0.0, 1.0, 0.0]);
    }
}
