//! Everything that Tusker's programs share: the rules of Arimaa, their notation, the network's encoding, the search, the
//! network, and the files that games are kept in.
//!
//! A module uses only those before it: [`rules`], then [`notation`], [`aei`], [`encoding`], [`search`], `network` (the only home of
//! libtorch, behind the feature `torch`), and [`shard`]. Beside them stand [`files`], [`config`], [`run`], [`progress`],
//! [`allocator`] and [`child`], which the programs use, [`ratings`], which knows results alone, and [`perft`], which counts turns.

pub mod aei;
pub mod allocator;
pub mod child;
pub mod config;
pub mod encoding;
pub mod files;
#[cfg(feature = "torch")]
pub mod network;
pub mod notation;
pub mod perft;
pub mod progress;
pub mod ratings;
pub mod rules;
pub mod run;
pub mod search;
pub mod shard;
