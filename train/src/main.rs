//! The program `train`: makes runs, trains networks on their games, and runs the whole loop.

fn main() {}
