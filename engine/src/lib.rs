//! What Tusker's programs share besides the rules of [Arimaa](arimaa): the network's encoding, the search, and the files that games are
//! kept in. There is no libtorch here.
//!
//! A module uses only those before it: [`encoding`], [`search`] and [`record`]. Beside them stand [`files`], [`config`], [`run`],
//! [`progress`], [`allocator`] and [`child`], which the programs use, and [`ratings`], which knows results alone.

pub mod allocator;
pub mod child;
pub mod config;
pub mod encoding;
pub mod files;
pub mod progress;
pub mod ratings;
pub mod record;
pub mod run;
pub mod search;
