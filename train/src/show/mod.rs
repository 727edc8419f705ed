//! What a person sees of a training besides its progress line: TensorBoard's event files, a page of curves, and a plot of the ratings.
//!
//! They only show what was measured elsewhere; none is read to go on with a run.

pub(crate) mod curves;
pub(crate) mod events;
mod page;
mod panel;
pub(crate) mod strength;
