//! See `shards` beside the bodies.
#![no_main]

#[path = "../shards.rs"]
mod shards;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shards::shards(bytes));
