//! A legal action with its prior, in four bytes; and what is known of it once it has been followed, in eight.

use arimaa::rules::{Action, Side};

/// A node's index in the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::search) struct NodeId(pub(super) u32);

impl NodeId {
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A legal action at a node with the evaluator's probability of it.
///
/// Edges compare by falling prior, equal priors by the action's index: a node keeps its edges in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::search) struct Edge(u32);

const _: () = assert!(size_of::<Edge>() == 4);

/// Priors lose the sign, the exponents below 2^-31, and the last 12 bits of the mantissa of a 32-bit float: 1 part in 4,096 is left
/// (as in Leela Chess Zero). None is below 2^-31: what is legal is possible.
const DROPPED_BITS: u32 = 12;
const EXPONENT_BASE: u32 = 96 << 23;

impl Edge {
    /// An action, as the side to move numbers it, with its prior, 0 to 1.
    pub(super) fn new(index: usize, prior: f32) -> Self {
        let rounded = prior.max(0.0).to_bits() + (1 << (DROPPED_BITS - 1));
        let code = rounded.saturating_sub(EXPONENT_BASE) >> DROPPED_BITS;
        Self((!code & 0xffff) << 16 | index as u32)
    }

    /// The evaluator's probability, at least 2^-31.
    #[inline]
    pub(in crate::search) fn prior(self) -> f32 {
        f32::from_bits(((!self.0 >> 16) << DROPPED_BITS) + EXPONENT_BASE)
    }

    /// The action's index, as the side to move numbers it.
    #[inline]
    pub(in crate::search) fn index(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// The action.
    #[inline]
    pub(in crate::search) fn action(self, side: Side) -> Action {
        Action::from_index(self.index(), side).unwrap_or(Action::End)
    }
}

/// Where an edge leads, and how often it was taken.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct Link {
    /// Simulations that took the edge.
    pub(in crate::search) visits: u32,
    pub(super) child: u32,
}

pub(super) const NO_CHILD: u32 = u32::MAX;

impl Link {
    pub(super) const EMPTY: Self = Self {
        visits: 0,
        child: NO_CHILD,
    };

    /// The node that the edge leads to, once it has been followed.
    #[inline]
    pub(in crate::search) fn child(self) -> Option<NodeId> {
        (self.child != NO_CHILD).then_some(NodeId(self.child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_keep_eleven_bits_and_the_ends_are_exact() {
        for prior in [0.25, 0.5, 1.0] {
            assert_eq!(Edge::new(7, prior).prior(), prior);
        }
        for step in 3..2_000 {
            let prior = (step as f32 / 2_000.0).powi(3);
            let kept = Edge::new(320, prior);
            assert!(
                (kept.prior() / prior - 1.0).abs() <= 1.0 / 4_096.0,
                "{prior}"
            );
            assert_eq!(kept.index(), 320);
        }
        // What 16-bit networks may say, and what is too small to matter.
        assert!((Edge::new(0, 1.02).prior() - 1.02).abs() < 1e-3);
        for tiny in [0.0, 1e-12] {
            assert_eq!(Edge::new(0, tiny).prior(), 2f32.powi(-31));
        }
    }

    #[test]
    fn edges_sort_by_prior_then_index() {
        let mut edges = [
            Edge::new(3, 0.2),
            Edge::new(1, 0.1),
            Edge::new(9, 0.7),
            Edge::new(2, 0.2),
        ];
        edges.sort_unstable();
        assert_eq!(edges.map(Edge::index), [9, 2, 3, 1]);
    }
}
