//! How turns are found: a file for each mode.

pub(super) mod gumbel;
pub(super) mod puct;
