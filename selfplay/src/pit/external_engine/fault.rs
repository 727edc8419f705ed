//! Why an engine loses a game other than by the rules.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The ways to lose a game other than by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// The program ended, or can't be started again.
    Crash,
    /// It gave no answer, not even to `stop`.
    Hang,
    /// Its turn is against the rules, or no turn at all.
    IllegalTurn,
    /// It wrote no message: a line without end, or another version of the protocol.
    #[serde(alias = "rubbish")]
    Malformed,
    /// It answered, but too late.
    Time,
    /// It gave up.
    Resignation,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::IllegalTurn => "illegal turn",
            Self::Malformed => "malformed output",
            Self::Time => "time",
            Self::Resignation => "resignation",
        })
    }
}

/// A fault of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", below(last_lines))]
pub(crate) struct EngineFault {
    pub(crate) kind: FaultKind,
    /// In words, without the engine's name.
    pub(crate) reason: String,
    /// The last lines that it wrote, to standard output and standard error.
    pub(crate) last_lines: Vec<String>,
}

/// The lines below a reason.
fn below(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("; its last lines:\n  {}", lines.join("\n  ")),
    }
}

/// Why a wait for an engine ended without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interruption {
    /// The match is to stop: no engine is at fault.
    #[error("the match is stopping")]
    Stopped,
    /// The engine is at fault.
    #[error(transparent)]
    Fault(Box<EngineFault>),
}

impl From<EngineFault> for Interruption {
    fn from(fault: EngineFault) -> Self {
        Self::Fault(Box::new(fault))
    }
}
