//! What `xmem check` reads beside traces, from arbitrary bytes.

#![no_main]

#[path = "../gate.rs"]
mod gate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| gate::gate(data));
