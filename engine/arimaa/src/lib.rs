#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod aei;
pub mod notation;
#[cfg(feature = "cli")]
pub mod perft;
pub mod rules;
