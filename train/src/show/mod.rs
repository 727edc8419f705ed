//! What a person sees of a training besides its progress line: TensorBoard's event files and a page of curves.
//!
//! Both only show what was measured elsewhere; neither is read to go on with a run.

pub(crate) mod curves;
pub(crate) mod events;
mod page;
mod panel;
