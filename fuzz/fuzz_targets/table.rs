//! A table of blocks from arbitrary bytes.

#![no_main]

#[path = "../plans.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod plans;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plans::table(data));
