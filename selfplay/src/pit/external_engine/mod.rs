//! Programs of others as players: AEI engines, each a child process that speaks over its standard input and output.
//!
//! | part | what it does |
//! |---|---|
//! | `EngineCommand` | the program, its arguments and options, as requested |
//! | [`TimeControl`], [`EngineClock`] | how long an engine may think, and what it has left |
//! | `EngineProcess` | the child: lines in and out, bounded, its last lines kept, gone when it is dropped |
//! | `Engine` | the talk: opening phase, games, turns, each checked by the rules |
//! | [`EnginePlayer`] | an engine's place at a worker: started, and started anew where it was at fault |
//! | [`EngineFault`] | why an engine loses a game besides by the rules |
//!
//! Nothing that a child does can stop, block or crash this program: a line that never ends is cut, one that never comes is waited for
//! up to a limit, and what is sent never waits for the child to read it.

mod clock;
mod command;
mod fault;
mod lines;
mod player;
mod process;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use clock::{EngineClock, TimeControl};
pub(crate) use fault::{EngineFault, FaultKind, Interruption};
pub(crate) use player::{EnginePlayer, EngineSpec};
