//! See `networks` in `networks.rs`.
#![no_main]

#[path = "../networks.rs"]
mod networks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| networks::networks(bytes));
