//! What Tusker's programs share besides the rules of [Arimaa](arimaa), without libtorch: the network's encoding, the search, and the
//! files that games are kept in.
//!
//! A module uses only those above it: [`files`] and [`progress`]; [`process`] and [`stop`]; [`config`]; [`ratings`]; [`encoding`]; [`search`];
//! [`record`]; [`run`].

pub mod config;
pub mod encoding;
pub mod files;
pub mod process;
pub mod progress;
pub mod ratings;
pub mod record;
pub mod run;
pub mod search;
pub mod stop;
