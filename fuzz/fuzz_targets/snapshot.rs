//! Reading a memory snapshot from arbitrary bytes, and using what was read.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("snapshot", data));
