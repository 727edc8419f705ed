//! A whole turn that is compared with others.

use super::beam::SlotId;
use crate::search::decision::TurnActions;
use crate::search::tree::NodeId;

/// A whole turn that is compared with others.
#[derive(Debug)]
pub(in crate::search) struct Candidate {
    /// Its slot in the beam, where it was sampled.
    pub(super) slot: Option<SlotId>,
    /// The start of the enemy's turn behind it.
    pub(in crate::search) end: NodeId,
    /// The logarithm of its probability by the policy, all known orders together.
    pub(in crate::search) log_prior: f64,
    /// What it is ranked by beside its value: the perturbed logarithm of its probability, times the noise's scale.
    pub(in crate::search) rank: f64,
    /// Simulations below it.
    pub(in crate::search) visits: u32,
    /// Those in flight.
    pub(super) in_flight: u32,
    pub(super) is_alive: bool,
    pub(super) is_lost: bool,
    /// Its actions, where it was not sampled: the tree may hold no path to it.
    pub(in crate::search) actions: Option<TurnActions>,
}

impl Candidate {
    pub(super) fn new(end: NodeId, log_prior: f64, rank: f64) -> Self {
        Self {
            slot: None,
            end,
            log_prior,
            rank,
            visits: 0,
            in_flight: 0,
            is_alive: true,
            is_lost: false,
            actions: None,
        }
    }
}
