//! What a recorded command sends: lines of the control pipe, and the outline of the trace that it exports.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("recorder", data));
