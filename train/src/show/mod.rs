//! What a person sees of a training besides its progress line: TensorBoard's event files.
//!
//! They only show what was measured elsewhere, and are not read to go on with a run.

pub(crate) mod events;
