//! Reading a memory snapshot from arbitrary bytes, and using what was read.

#![no_main]

#[path = "../snapshot.rs"]
mod snapshot;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    snapshot::read_and_use(data);
});
