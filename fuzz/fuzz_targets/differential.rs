//! The chunked reader against the plain one, on arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("differential", data));
