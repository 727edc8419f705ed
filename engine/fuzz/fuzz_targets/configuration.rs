//! See `configuration` in `settings.rs`.
#![no_main]

#[path = "../settings.rs"]
mod settings;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settings::configuration(bytes));
