//! A list of operations for `xmem simulate` from arbitrary bytes, run to its end.

#![no_main]

#[path = "../readers.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod readers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| readers::operations(data));
