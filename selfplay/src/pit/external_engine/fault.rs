//! Why an engine loses a game besides by the rules.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The ways to lose a game that the rules don't know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// The program ended, or can't be started again.
    Crash,
    /// It gave no answer, not even to `stop`.
    Hang,
    /// Its turn is against the rules, or no turn at all.
    IllegalTurn,
    /// What it wrote is no message: a line that doesn't end.
    Rubbish,
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
            Self::Rubbish => "rubbish",
            Self::Time => "time",
            Self::Resignation => "resignation",
        })
    }
}

/// What an engine did instead of playing on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", below(last_lines))]
pub(crate) struct EngineFault {
    pub(crate) kind: FaultKind,
    /// In words, without the engine's name.
    pub(crate) reason: String,
    /// The last lines that it wrote, to standard output and standard error.
    pub(crate) last_lines: Vec<String>,
}

/// Channels below a reason.
fn below(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => {
            let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
            format!("; its last lines:{lines}")
        }
    }
}

/// Why an engine doesn't go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interruption {
    /// The match is to stop: no engine is at fault.
    #[error("the match is to stop")]
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
