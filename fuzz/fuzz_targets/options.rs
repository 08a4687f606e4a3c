//! Options of allocators and figures of the command line from arbitrary bytes.

#![no_main]

#[path = "../readers.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod readers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| readers::options(data));
