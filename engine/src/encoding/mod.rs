//! What a network is shown of a step state, and what its policy's numbers stand for. No tensors here.
//!
//! The side to move always plays north: for Silver the ranks are flipped and the colours exchanged, so that a state and the
//! same state with exchanged colours encode to equal rows. An [`InputRow`] holds [`PLANES`] bitboards and [`SCALARS`] numbers
//! (264 bytes); unpacked they are [`CHANNELS`] planes of 8×8 ([`InputRow::write_planes`]), each scalar filling a plane of its
//! own. A policy has [`POLICY_SIZE`] entries, one for each [`Action::index`]; a [`LegalMask`] says which of them are legal.
//!
//! ```
//! use engine::encoding::{LegalMask, encode, plane};
//! use arimaa::rules::{Action, Game, StepState};
//! let game = Game::new();
//! let state = StepState::new(game.position());
//! let row = encode(&state, 0);
//! assert_eq!(row.planes[plane::TRAPS].count_ones(), 4);
//! let legal = LegalMask::new(&state.legal_actions(game.history()), state.side());
//! assert!(legal.contains(Action::Place("a1".parse()?).index(state.side())));
//! assert_eq!(legal.count(), 16);
//! # Ok::<(), arimaa::rules::SquareError>(())
//! ```

mod policy;
mod row;
#[cfg(test)]
pub(crate) mod samples;

pub use policy::{LegalMask, MIRRORED_INDICES, mirror_index, mirror_policy};
pub use row::{InputRow, encode, plane, scalar};

use arimaa::rules::Action;
use std::ops::RangeInclusive;

/// The version of everything in this module: networks, shards and journals name the version that they were made with.
pub const ENCODING_VERSION: u32 = 3;

/// The versions that are read. Version 2 has the same policy, and the first [`PLANES_OF_VERSION_2`] planes: its games are trained
/// on, and its networks ignore the other planes.
pub const READABLE_VERSIONS: RangeInclusive<u32> = 2..=ENCODING_VERSION;

/// Bitboards of an [`InputRow`].
pub const PLANES: usize = 27;

/// Bitboards of an [`InputRow`] in version 2.
pub const PLANES_OF_VERSION_2: usize = 21;

/// Numbers of an [`InputRow`], each of which fills a whole plane.
pub const SCALARS: usize = 12;

/// Planes of 8×8 that a network is shown: the bitboards, then the scalars.
pub const CHANNELS: usize = PLANES + SCALARS;

/// Entries of a policy: steps north, east, south, west from each square, placements, and the end of the turn.
pub const POLICY_SIZE: usize = Action::COUNT;
