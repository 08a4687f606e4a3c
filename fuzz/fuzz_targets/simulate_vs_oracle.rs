//! The simulator against the slow model, on programs made of arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("simulate_vs_oracle", data));
