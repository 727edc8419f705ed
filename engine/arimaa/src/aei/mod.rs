//! The Arimaa Engine Interface, version 1: what a controller (a game room, a referee) and an engine say to each other, one message
//! a line. How an engine behaves is left to those who use this: the program `selfplay` plays as one, and its pit drives others.
//!
//! | sender | type | looks like |
//! |---|---|---|
//! | controller | [`Command`] | `makemove Ed2n Ed3n`, `setoption name tcmove value 30` |
//! | engine | [`Reply`] | `bestmove Ed2n Ed3n`, `info score 65`, `log Warning: …` |
//!
//! Both are read by `parse` and written by `to_string`, from the same words: what one side writes, the other reads as the same value.
//! Turns and positions in them are standard notation ([`parse_turn`](crate::notation::parse_turn) reads a turn once the position is
//! known, capture words like `rc3x` included, and [`format_turn`](crate::notation::format_turn) writes it).
//!
//! Controllers set options by name. The names that the protocol itself gives a meaning are [`StandardOption`]; what values an option
//! takes is its [`OptionKind`], for these and for an engine's own.
//!
//! ```
//! use arimaa::aei::{Command, Reply, StandardOption};
//! let command: Command = "setoption name tcmove value 30".parse()?;
//! let Command::SetOption { name, value } = &command else { unreachable!() };
//! let option: StandardOption = name.parse()?;
//! assert_eq!(option.kind().read(value.as_deref())?.number(), Some(30.0));
//! assert_eq!(Reply::BestMove("Ed2n rc3x".into()).to_string(), "bestmove Ed2n rc3x");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: `AEI_PROTOCOL.md` and `ENGINE_MANIFEST.md` of the repository Janzert/AEI.

mod command;
mod error;
mod options;
mod reply;
#[cfg(test)]
mod tests;
mod words;

pub use command::Command;
pub use error::{MessageError, OptionError};
pub use options::{OptionKind, OptionValue, StandardOption};
pub use reply::{IdentityKind, Info, LogLevel, Reply, format_variation};

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: u32 = 1;
