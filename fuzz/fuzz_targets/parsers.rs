//! Events read straight from their text, against simd-json's tape.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("parsers", data));
