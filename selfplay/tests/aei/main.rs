//! `selfplay aei` as controllers use it. Only the last file asserts the speed; its tests are ignored by default.

mod bad_input;
mod child;
mod hostile;
#[path = "../support/mutation.rs"]
mod mutation;
mod opening;
mod playing;
mod speed;
mod thinking;
