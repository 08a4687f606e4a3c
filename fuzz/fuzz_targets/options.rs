//! Options of allocators and figures of the command line from arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("options", data));
