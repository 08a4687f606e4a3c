//! The simulator against the slow model, on programs made of arbitrary bytes.

#![no_main]
#![expect(dead_code, reason = "tests use more of the model")]

#[path = "../../crates/xmem-simulator/tests/model/mod.rs"]
mod model;
#[path = "../../crates/xmem-simulator/tests/side_by_side/mod.rs"]
mod side_by_side;
#[path = "../simulator.rs"]
mod simulator;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    simulator::simulate_vs_oracle(data);
});
