//! What the session, the search thread and the controller's lines send each other.

use super::clock::Times;
use super::options::Setups;
use crate::worker::player::PlayerName;
use arimaa::aei::Info;
use arimaa::rules::{History, Position};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Something that a session has to see to.
#[derive(Debug)]
pub(super) enum Event {
    /// The controller has said something.
    Line(String),
    /// A line of the controller that is too long.
    TooLong,
    /// The controller has gone away.
    End,
    /// The thinking thread has something to say.
    SearchMessage(SearchMessage),
}

/// What the thread is told to do, one after the other.
#[derive(Debug)]
pub(super) enum Order {
    /// Take another evaluator.
    Load(PlayerName),
    /// Find a turn.
    Think(Box<SearchTask>),
}

/// A turn to find.
#[derive(Debug)]
pub(super) struct SearchTask {
    /// Its number in the session.
    pub(super) number: u64,
    pub(super) position: Position,
    pub(super) history: History,
    /// Ends the thinking when it is set.
    pub(super) flag: Arc<AtomicBool>,
    /// When the clock began to run.
    pub(super) begun: Instant,
    pub(super) times: Option<Times>,
    pub(super) evaluations: Option<u32>,
    /// Steps.
    pub(super) depth: Option<u32>,
    pub(super) memory_mib: u32,
    /// How many turns to tell of.
    pub(super) lines: usize,
    pub(super) setups: Setups,
}

/// What the thread says.
#[derive(Debug)]
pub(super) enum SearchMessage {
    /// The evaluator that was ordered is there.
    Loaded,
    /// The evaluator that was ordered can't be had; the one before stays.
    NotLoaded(String),
    /// What a job has found so far.
    Found {
        number: u64,
        infos: Vec<Info>,
        /// The turn that it would choose now.
        best: Option<String>,
    },
    /// A job's turn, and what it took.
    Decided {
        number: u64,
        turn: String,
        /// Whether it is a setup that people play, which more thinking would not change.
        is_known: bool,
        cost: String,
    },
    /// The thread is at its end.
    Failed(String),
}
