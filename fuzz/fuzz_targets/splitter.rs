//! Cutting arbitrary bytes into events.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("splitter", data));
