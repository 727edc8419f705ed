//! Everything that Tusker's programs share: the rules of Arimaa, their notation, the network's encoding, the search, the
//! network, and the files that games are kept in.

pub mod config;
pub mod encoding;
pub mod files;
#[cfg(feature = "torch")]
pub mod network;
pub mod notation;
pub mod perft;
pub mod progress;
pub mod rules;
pub mod run;
pub mod search;
