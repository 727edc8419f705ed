//! The messages between the session, the search thread and the thread that reads the controller's lines.

use super::clock::Times;
use super::options::Setups;
use crate::worker::player::PlayerName;
use arimaa::aei::Info;
use arimaa::rules::{History, Position};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// An event for the session.
#[derive(Debug)]
pub(super) enum Event {
    /// A line of the controller.
    Line(String),
    /// A line of the controller was too long.
    TooLong,
    /// The controller has left.
    End,
    /// A message of the search thread.
    SearchMessage(SearchMessage),
}

/// An order to the search thread, which handles them in sequence.
#[derive(Debug)]
pub(super) enum Order {
    /// Load another evaluator.
    Load(PlayerName),
    /// Find a turn.
    Search(Box<SearchTask>),
}

/// A turn to find.
#[derive(Debug)]
pub(super) struct SearchTask {
    /// Its number in the session.
    pub(super) number: u64,
    pub(super) position: Position,
    pub(super) history: History,
    /// Ends the search when it is set.
    pub(super) flag: Arc<AtomicBool>,
    /// The start of the turn's clock.
    pub(super) begun: Instant,
    pub(super) times: Option<Times>,
    pub(super) evaluations: Option<u32>,
    /// Steps.
    pub(super) depth: Option<u32>,
    pub(super) memory_mib: u32,
    /// The number of turns to report.
    pub(super) lines: usize,
    pub(super) setups: Setups,
}

/// A message of the search thread.
#[derive(Debug)]
pub(super) enum SearchMessage {
    /// The ordered evaluator is loaded.
    Loaded,
    /// The ordered evaluator can't be loaded; the previous one stays.
    NotLoaded(String),
    /// The findings of a task so far.
    Found {
        number: u64,
        infos: Vec<Info>,
        /// The turn that the search would choose now.
        best: Option<String>,
    },
    /// A task's turn, and its cost.
    Decided {
        number: u64,
        turn: String,
        /// Whether it is a known setup, which more search would not change.
        is_known: bool,
        cost: String,
    },
    /// The thread has failed.
    Failed(String),
}

/// How a session ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// By `quit`, or because the controller has left.
    Quit,
    /// By a message that is not in the protocol.
    Refused(String),
    /// By a failure of the engine.
    Failed(String),
}
