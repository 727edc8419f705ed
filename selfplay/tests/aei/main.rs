//! `selfplay aei` as controllers speak with it. Nothing here asserts how fast it is but the last file, which is not run by itself.

mod bad_input;
mod child;
mod opening;
mod playing;
mod speed;
mod thinking;
