//! What Tusker's programs share besides the rules of [Arimaa](arimaa), without libtorch: configuration, encoding, search, ratings, game
//! records and run folders.
//!
//! A module uses only those before it: [`progress`]; [`process`]; [`stop`]; [`files`]; [`config`]; [`ratings`]; [`encoding`]; [`search`];
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
