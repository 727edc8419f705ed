//! `selfplay generate` as a process: killed, stopped, out of space, beside others, and while networks come.
//!
//! One program, so that tests which mostly wait do so at the same time.

mod audit;
mod disk;
mod kills;
mod networks;
mod process;
mod several;
mod stops;
mod workers;
