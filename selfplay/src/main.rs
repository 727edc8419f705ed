//! The program `selfplay`: games of Arimaa for training, and everything that is done with them.

fn main() {}
