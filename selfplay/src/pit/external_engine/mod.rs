//! External engines as players: child processes that speak the Arimaa Engine Interface over standard input and output.
//!
//! | part | what it does |
//! |---|---|
//! | `EngineCommand` | the program and its arguments, as requested |
//! | [`TimeControl`], [`EngineClock`] | the time of an engine, and the time that is left |
//! | `EngineProcess` | the child: bounded lines in and out, its last lines kept, killed when dropped |
//! | `Engine` | the session: opening phase, games, turns, each checked by the rules |
//! | [`EnginePlayer`] | an engine at a worker: started, and restarted after a fault |
//! | [`EngineFault`] | why an engine loses a game other than by the rules |
//!
//! A child can't stop, block or crash this program: a line without end is cut, each wait has a limit, and sending never waits for the
//! child to read.

mod clock;
mod command;
mod descendants;
mod fault;
mod lines;
mod player;
mod process;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use clock::{EngineClock, TimeControl};
pub(crate) use command::set_option;
pub(crate) use fault::{EngineFault, FaultKind, Interruption};
pub(crate) use player::{EnginePlayer, EngineSpec};
