//! The games of a run: an index that follows the run's files, pages of it, and single games.
//!
//! | where | what |
//! |---|---|
//! | `entry` | what is kept of a game, and of the file that holds it |
//! | `scan` | the files of games that are there |
//! | `shards` | the games of a shard |
//! | `matches` | the games of a match |
//! | `cache` | the index in `cache/games.index` |
//! | `snapshot` | the newest state of the index |
//! | `index` | [`GamesIndex`]: what is asked of it |
//! | `files_watcher` | the thread that follows the files |
//! | `query` | pages: filters and orders |
//! | `generations` | the games of each network in numbers, and the games to show |
//! | `detail` | one game, replayed |
//!
//! A source is a set of games with ids of its own: `selfplay` (`shards/`), `show` (`show/`), and each match by the name of its folder
//! in `pit/`. Games are decoded for the index and replayed only when one is requested. Damage costs the games that it hits, and is named
//! among the problems.

mod cache;
mod detail;
mod entry;
mod files_watcher;
mod generations;
mod index;
mod matches;
mod query;
mod scan;
mod shards;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use index::GamesIndex;
pub(crate) use query::GamesQuery;
