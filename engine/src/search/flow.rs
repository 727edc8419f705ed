//! The flow of visits from a state to the turns that it can become.
//!
//! One unit enters at a step state of the turn; at each state it splits over the edges by their visits. It arrives at the ends
//! of distinct turns, whatever the order of their steps, or runs dry at states below which nothing has been visited.

use super::tree::{NodeId, Tree};
use crate::rules::Action;
use rand::{Rng, RngExt};
use rustc_hash::FxHashMap;

/// One edge's share of the flow.
#[derive(Debug, Clone, Copy)]
struct Stream {
    from: NodeId,
    edge: usize,
    to: NodeId,
    mass: f64,
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
    /// The flow below `source`.
    pub(super) fn below(tree: &Tree, source: NodeId) -> Self {
        let mut flow = Self {
            source,
            streams: Vec::new(),
            arrivals: Vec::new(),
        };
        let mut complete: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut level = vec![(source, 1.0)];
        // Every step leads to the next level, so that a level's masses are final when it is split.
        while !level.is_empty() {
            let mut next: Vec<(NodeId, f64)> = Vec::new();
            let mut places: FxHashMap<NodeId, usize> = FxHashMap::default();
            for (from, mass) in level {
                let total: u32 = tree.edges(from).iter().map(|edge| edge.visits).sum();
                if total == 0 {
                    flow.arrivals.push(Arrival {
                        node: from,
                        mass,
                        complete: false,
                    });
                    continue;
                }
                let side = tree.node(from).state.side();
                let last_step = tree.node(from).state.steps_left() == 1;
                for (index, edge) in tree.edges(from).iter().enumerate() {
                    let Some(to) = edge.child().filter(|_| edge.visits > 0) else {
                        continue;
                    };
                    let share = mass * f64::from(edge.visits) / f64::from(total);
                    flow.streams.push(Stream {
                        from,
                        edge: index,
                        to,
                        mass: share,
                    });
                    if last_step || edge.action(side) == Action::End {
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

    /// Where it all arrives; the masses sum to 1.
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

    /// A way from the source to an arrival, as the edges to take: where turns merge, drawn in proportion to the flow.
    pub(super) fn way_to<R: Rng>(&self, arrival: &Arrival, rng: &mut R) -> Vec<(NodeId, usize)> {
        let mut way = Vec::new();
        let mut node = arrival.node;
        while node != self.source {
            let into: Vec<&Stream> = self
                .streams
                .iter()
                .filter(|stream| stream.to == node)
                .collect();
            let masses: Vec<Candidate> = into
                .iter()
                .map(|stream| Candidate {
                    weight: stream.mass,
                    value: 0.0,
                })
                .collect();
            let Some(place) = draw(&masses, 1.0, rng) else {
                break;
            };
            way.push((into[place].from, into[place].edge));
            node = into[place].from;
        }
        way.reverse();
        way
    }
}

/// Something that a draw may pick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Visits, or a share of them; 0 or more.
    pub(super) weight: f64,
    /// Its value in the mover's view: what decides between equal weights where nothing is left to chance. Few visits leave many
    /// equal.
    pub(super) value: f32,
}

/// Draws an index in proportion to `weight^(1/temperature)`; at temperature 0 the greatest weight, among equal ones the best
/// value, among equal ones the first. None where all weights are 0.
pub(super) fn draw<R: Rng>(
    candidates: &[Candidate],
    temperature: f32,
    rng: &mut R,
) -> Option<usize> {
    let greatest = candidates
        .iter()
        .map(|candidate| candidate.weight)
        .fold(0.0, f64::max);
    if greatest <= 0.0 {
        return None;
    }
    if temperature == 0.0 {
        // The last of equal maxima is returned: reversed, the first.
        let best = candidates
            .iter()
            .enumerate()
            .rev()
            .max_by(|(_, one), (_, other)| {
                one.weight
                    .total_cmp(&other.weight)
                    .then(one.value.total_cmp(&other.value))
            });
        return best.map(|(index, _)| index);
    }
    let power = 1.0 / f64::from(temperature);
    let scaled = candidates
        .iter()
        .map(|candidate| (candidate.weight / greatest).powf(power));
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

    fn candidates<const N: usize>(weights: [f64; N], values: [f32; N]) -> [Candidate; N] {
        std::array::from_fn(|index| Candidate {
            weight: weights[index],
            value: values[index],
        })
    }

    #[test]
    fn draws_follow_the_tempered_weights() {
        let candidates = candidates([1.0, 0.0, 3.0], [0.0; 3]);
        for (temperature, expected) in [(1.0, 0.75), (0.5, 0.9), (0.0, 1.0)] {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let mut counts = [0.0_f64; 3];
            for _ in 0..20_000 {
                counts[draw(&candidates, temperature, &mut rng).unwrap()] += 1.0 / 20_000.0;
            }
            assert_eq!(counts[1], 0.0);
            assert!(
                (counts[2] - expected).abs() < 0.015,
                "{temperature}: {counts:?}"
            );
        }
    }

    #[test]
    fn without_chance_weight_decides_then_value_then_the_order() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (weights, values, expected) in [
            ([2.0, 3.0, 1.0], [0.9, 0.1, 0.5], Some(1)),
            ([2.0, 2.0, 1.0], [0.2, 0.6, 0.9], Some(1)),
            ([2.0, 2.0, 2.0], [0.4, 0.6, 0.6], Some(1)),
            ([0.0, 0.0, 0.0], [0.4, 0.6, 0.6], None),
        ] {
            assert_eq!(draw(&candidates(weights, values), 0.0, &mut rng), expected);
        }
        assert_eq!(draw(&[], 1.0, &mut rng), None);
    }
}
