//! What the fuzz target `simulate_vs_oracle` does, on bytes that are the same in every run.

#![expect(dead_code, reason = "the model also serves other tests, which use more of it")]

#[path = "model/mod.rs"]
mod model;
#[path = "side_by_side/mod.rs"]
mod side_by_side;
#[path = "../../../fuzz/simulator.rs"]
mod simulator;

#[test]
fn programs_made_of_bytes_match_the_model() {
    let mut state = 1u64;
    for length in (20..1500).step_by(40) {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.push((state >> 33) as u8);
        }
        simulator::simulate_vs_oracle(&bytes);
    }
}
