//! The improved policy: what the priors should have been, by the values that the search found.

use super::tree::{NodeId, Tree, seen_by};

/// The priors of a node's edges, each times `exp(value_scale · q)` and normalised; `q` is the value of what the edge leads to, in
/// the view of the side to move. Edges without visits get the value of the state, by its own evaluation and by the edges that do
/// have visits, weighed by their priors (Danihelka, Guez, Schrittwieser and Silver 2022, "Policy improvement by planning with
/// Gumbel", section 4 and equation 33; here with a constant scale).
///
/// Where all values are equal these are the priors again: no policy drifts towards where its own visits happened to fall.
pub(super) fn improved_policy(
    tree: &Tree,
    id: NodeId,
    priors: &[f32],
    value_scale: f32,
) -> Vec<f32> {
    let values = completed_values(tree, id, priors);
    // Taken off all exponents: the exponential stays finite, the quotients the same.
    let greatest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |value: f32, prior: f32| prior * (value_scale * (value - greatest)).exp();
    let mut weights: Vec<f32> = values
        .iter()
        .zip(priors)
        .map(|(&v, &p)| weight(v, p))
        .collect();
    let mut total: f32 = weights.iter().sum();
    if total <= 0.0 {
        // The priors leave nothing of what is best: the values alone decide.
        weights = values.iter().map(|&value| weight(value, 1.0)).collect();
        total = weights.iter().sum();
    }
    weights.iter().map(|weight| weight / total).collect()
}

/// The value of each edge of a node in the view of the side to move.
fn completed_values(tree: &Tree, id: NodeId, priors: &[f32]) -> Vec<f32> {
    let node = tree.node(id);
    let side = node.state.side();
    let edges = tree.edges(id);
    let visited = edges.iter().map(|edge| {
        let child = edge.child().filter(|_| edge.visits > 0)?;
        Some(seen_by(side, tree.node(child).value))
    });
    let (mut mass, mut sum, mut visits) = (0.0, 0.0, 0);
    for ((value, prior), edge) in visited.clone().zip(priors).zip(edges) {
        if let Some(value) = value {
            mass += prior;
            sum += prior * value;
            visits += edge.visits;
        }
    }
    let own_value = seen_by(side, node.own_value);
    let of_state = if mass > 0.0 {
        (own_value + visits as f32 * sum / mass) / (1 + visits) as f32
    } else {
        own_value
    };
    visited.map(|value| value.unwrap_or(of_state)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;
    use crate::notation::parse_position;
    use crate::rules::{History, StepState};

    /// A node with a prior each for its edges; the first edges have been visited once and have these values for Silver, who is to
    /// move.
    fn node(priors: &[f32], own_value: f32, values: &[f32]) -> (Tree, NodeId) {
        let position = parse_position(&format!("s [r      r{}R      R]", " ".repeat(48))).unwrap();
        let mut tree = Tree::default();
        let history = History::default();
        let id = tree.intern(StepState::new(&position));
        let query: Query = tree.open(id, &history, true).unwrap();
        assert_eq!(query.legal.count(), priors.len());
        tree.expand(id, &query, 1.0 - own_value, priors.iter().copied());
        for (edge, &value) in values.iter().enumerate() {
            let child = tree.follow(id, edge);
            tree.node_mut(child).value = 1.0 - value;
            tree.edges_mut(id)[edge].visits = 1;
        }
        (tree, id)
    }

    #[track_caller]
    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        let near = |(one, other): (&f32, &f32)| (one - other).abs() < 1e-5;
        assert!(found.iter().zip(expected).all(near), "{found:?}");
    }

    #[test]
    fn equal_values_leave_the_priors() {
        let priors = [0.1, 0.2, 0.3, 0.4];
        let (tree, id) = node(&priors, 0.7, &[0.7, 0.7]);
        close(&improved_policy(&tree, id, &priors, 10.0), &priors);
        let (tree, id) = node(&priors, 0.7, &[]);
        close(&improved_policy(&tree, id, &priors, 10.0), &priors);
    }

    #[test]
    fn values_move_the_priors_by_the_formula() {
        let priors = [0.1, 0.2, 0.3, 0.4];
        let (tree, id) = node(&priors, 0.5, &[0.9, 0.3]);
        // (0.5 + 2 · (0.1 · 0.9 + 0.2 · 0.3) / 0.3) / 3 is what is not known to be otherwise.
        let weights = [
            0.1 * 1.8f32.exp(),
            0.2 * 0.6f32.exp(),
            0.3 * 1f32.exp(),
            0.4 * 1f32.exp(),
        ];
        let total: f32 = weights.iter().sum();
        let expected = weights.map(|weight| weight / total);
        close(&improved_policy(&tree, id, &priors, 2.0), &expected);
    }

    #[test]
    fn a_best_step_without_a_prior_gets_all_where_the_scale_leaves_nothing_else() {
        let priors = [0.0, 0.5, 0.5, 0.0];
        let (tree, id) = node(&priors, 0.0, &[1.0, 0.0, 0.0]);
        close(
            &improved_policy(&tree, id, &priors, 1_000.0),
            &[1.0, 0.0, 0.0, 0.0],
        );
    }
}
