//! The flow from a state to the turns that it can become.
//!
//! One unit enters at a step state of the turn; at each state it splits over the edges by their weights. It arrives at the ends
//! of distinct turns, whatever the order of their steps, or runs dry at states below which nothing weighs anything.

use super::descent::ends_turn;
use super::tree::{NodeId, Tree};
use rand::{Rng, RngExt};
use rustc_hash::FxHashMap;

/// One edge's share of the flow.
#[derive(Debug, Clone, Copy)]
struct Stream {
    from: NodeId,
    edge: usize,
    to: NodeId,
    mass: f64,
    /// How many steps lie between the source and this one: streams are held in this order.
    step: u8,
}

/// Where flow arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// The start of the next turn, or a state inside this one where the flow runs dry.
    pub(super) node: NodeId,
    /// The share that arrives there, 0 to 1.
    pub(super) mass: f64,
    /// Whether the turn is complete there.
    pub(super) complete: bool,
}

/// The flow below one state of a turn.
#[derive(Debug)]
pub(super) struct Flow {
    source: NodeId,
    streams: Vec<Stream>,
    arrivals: Vec<Arrival>,
}

impl Flow {
    /// The flow of visits below `source`, as [`visit_weight`] weighs them.
    pub(super) fn of_visits(tree: &Tree, source: NodeId) -> Self {
        Self::below(tree, source, visit_weight, true)
    }

    /// The flow of the evaluator's probabilities below `source`; what goes into edges that were never followed is lost.
    pub(super) fn of_priors(tree: &Tree, source: NodeId) -> Self {
        let prior = |tree: &Tree, id, edge: usize| f64::from(tree.edges(id)[edge].prior());
        Self::below(tree, source, prior, false)
    }

    /// The flow below `source`, shared out by `weight`.
    pub(super) fn of_weights(
        tree: &Tree,
        source: NodeId,
        weight: impl Fn(&Tree, NodeId, usize) -> f64,
    ) -> Self {
        Self::below(tree, source, weight, true)
    }

    /// The flow below `source`; `weight` says what an edge weighs that has been followed. Masses are shares of the weights, or
    /// else the weights themselves.
    fn below(
        tree: &Tree,
        source: NodeId,
        weight: impl Fn(&Tree, NodeId, usize) -> f64,
        shares: bool,
    ) -> Self {
        let mut flow = Self {
            source,
            streams: Vec::new(),
            arrivals: Vec::new(),
        };
        let mut complete: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut level = vec![(source, 1.0)];
        let mut weights = Vec::new();
        // Every step leads to the next level, so that a level's masses are final when it is split.
        for step in 0.. {
            if level.is_empty() {
                break;
            }
            let mut next: Vec<(NodeId, f64)> = Vec::new();
            let mut places: FxHashMap<NodeId, usize> = FxHashMap::default();
            for (from, mass) in level {
                weights.clear();
                let links = tree.links(from).iter().enumerate();
                weights.extend(links.map(|(edge, link)| match link.child() {
                    Some(_) => weight(tree, from, edge),
                    None => 0.0,
                }));
                let total: f64 = weights.iter().sum();
                if total <= 0.0 {
                    flow.arrivals.push(Arrival {
                        node: from,
                        mass,
                        complete: false,
                    });
                    continue;
                }
                let unit = if shares { mass / total } else { mass };
                for (edge, link) in tree.links(from).iter().enumerate() {
                    let Some(to) = link.child().filter(|_| weights[edge] > 0.0) else {
                        continue;
                    };
                    let share = unit * weights[edge];
                    flow.streams.push(Stream {
                        from,
                        edge,
                        to,
                        mass: share,
                        step,
                    });
                    if ends_turn(tree, from, edge) {
                        let place = *complete.entry(to).or_insert_with(|| {
                            flow.arrivals.push(Arrival {
                                node: to,
                                mass: 0.0,
                                complete: true,
                            });
                            flow.arrivals.len() - 1
                        });
                        flow.arrivals[place].mass += share;
                    } else {
                        let place = *places.entry(to).or_insert_with(|| {
                            next.push((to, 0.0));
                            next.len() - 1
                        });
                        next[place].1 += share;
                    }
                }
            }
            level = next;
        }
        flow
    }

    /// Where it all arrives; shares sum to 1.
    pub(super) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The share that arrives at complete turns.
    pub(super) fn complete_mass(&self) -> f64 {
        self.arrivals
            .iter()
            .filter(|arrival| arrival.complete)
            .map(|arrival| arrival.mass)
            .sum()
    }

    /// How many simulations arrived at each turn that is complete, as [`visit_weight`] counts them: flow comes from those as well
    /// that ended inside the turn.
    pub(super) fn visits_of_turns(&self, tree: &Tree) -> impl Iterator<Item = f64> {
        let mut visits: FxHashMap<NodeId, f64> = FxHashMap::default();
        for stream in &self.streams {
            if ends_turn(tree, stream.from, stream.edge) {
                *visits.entry(stream.to).or_default() +=
                    visit_weight(tree, stream.from, stream.edge);
            }
        }
        visits.into_values()
    }

    /// A path from the source to a node that the flow reaches, as the edges to take: where turns merge, drawn in proportion to the
    /// flow.
    pub(super) fn path_to<R: Rng>(&self, node: NodeId, rng: &mut R) -> Vec<(NodeId, usize)> {
        let mut path = Vec::new();
        let mut node = node;
        while node != self.source {
            let into: Vec<&Stream> = self
                .streams
                .iter()
                .filter(|stream| stream.to == node)
                .collect();
            let masses: Vec<f64> = into.iter().map(|stream| stream.mass).collect();
            let Some(place) = draw(&masses, 1.0, rng) else {
                break;
            };
            path.push((into[place].from, into[place].edge));
            node = into[place].from;
        }
        path.reverse();
        path
    }

    /// The shortest path from the source to a node, of several the one whose last streams are the heaviest; empty where the flow does
    /// not reach the node.
    pub(super) fn shortest_path_to(&self, node: NodeId) -> Vec<(NodeId, usize)> {
        let mut path = Vec::new();
        let mut node = node;
        while node != self.source {
            let into = self.streams.iter().filter(|stream| stream.to == node);
            let shortest = into.reduce(|best, stream| {
                if stream.step == best.step && stream.mass > best.mass {
                    stream
                } else {
                    best
                }
            });
            let Some(stream) = shortest else { break };
            path.push((stream.from, stream.edge));
            node = stream.from;
        }
        path.reverse();
        path
    }
}

/// What an edge that has been followed weighs in the flow of visits: its visits, and nothing where it is proven lost for the
/// mover. At a node that is proven won, only the edges that win the soonest weigh anything; at one that is lost, only those that
/// resist the longest.
pub(super) fn visit_weight(tree: &Tree, id: NodeId, edge: usize) -> f64 {
    let mover = tree.side(id);
    let link = tree.link(id, edge);
    let Some(child) = link.child() else {
        return 0.0;
    };
    match tree.node_value(id).proof {
        None if tree.node_value(child).loses(mover) => 0.0,
        None => link.visits.into(),
        Some(_) if is_best_of_proven(tree, id, child) => f64::from(link.visits).max(1.0),
        Some(_) => 0.0,
    }
}

/// Whether a child of a proven node lies on a shortest win or a longest resistance.
fn is_best_of_proven(tree: &Tree, id: NodeId, child: NodeId) -> bool {
    let (node, child) = (tree.node_value(id), tree.node_value(child));
    child.proof == node.proof && child.turns_from_before() == node.turns_to_end
}

/// Draws an index in proportion to `weight^(1/temperature)`; at temperature 0 the greatest weight, among equal ones the first. None
/// where all weights are 0.
pub(super) fn draw<R: Rng>(weights: &[f64], temperature: f32, rng: &mut R) -> Option<usize> {
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return None;
    }
    if temperature == 0.0 {
        return weights.iter().position(|&weight| weight == greatest);
    }
    let power = 1.0 / f64::from(temperature);
    let scaled = weights.iter().map(|weight| (weight / greatest).powf(power));
    let mut target = rng.random::<f64>() * scaled.clone().sum::<f64>();
    let mut last = None;
    for (index, weight) in scaled.enumerate() {
        if weight > 0.0 {
            last = Some(index);
            if target < weight {
                break;
            }
            target -= weight;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    #[test]
    fn draws_follow_the_tempered_weights() {
        let weights = [1.0, 0.0, 3.0];
        for (temperature, expected) in [(1.0, 0.75), (0.5, 0.9), (0.0, 1.0)] {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let mut counts = [0.0_f64; 3];
            for _ in 0..20_000 {
                counts[draw(&weights, temperature, &mut rng).unwrap()] += 1.0 / 20_000.0;
            }
            assert_eq!(counts[1], 0.0);
            assert!(
                (counts[2] - expected).abs() < 0.015,
                "{temperature}: {counts:?}"
            );
        }
    }

    #[test]
    fn without_chance_the_first_of_the_greatest_is_drawn() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(draw(&[2.0, 3.0, 3.0], 0.0, &mut rng), Some(1));
        assert_eq!(draw(&[0.0, 0.0], 0.0, &mut rng), None);
        assert_eq!(draw(&[], 1.0, &mut rng), None);
    }
}
