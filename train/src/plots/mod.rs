//! What a training shows besides its progress line: TensorBoard's event files, a page of curves, and a plot of the ratings.
//!
//! They show measurements made elsewhere; a resumed run reads none of them.

mod chart;
pub(crate) mod curves;
pub(crate) mod events;
pub(crate) mod ratings;
