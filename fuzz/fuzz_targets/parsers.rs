//! Events read straight from their text, against simd-json's tape.

#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::parsers(data));
