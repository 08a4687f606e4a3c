//! Reading a trace from arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("ingest", data));
