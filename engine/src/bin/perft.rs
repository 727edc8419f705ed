//! Counts turns.

fn main() {}
