//! A list of operations for `xmem simulate` from arbitrary bytes, run to its end.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("operations", data));
