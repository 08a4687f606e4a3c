//! Random programs: the simulator against a slow model of the same allocator, and laws that hold
//! for every program.

#[path = "../model/mod.rs"]
mod model;
mod programs;
mod replays;
#[path = "../side_by_side/mod.rs"]
mod side_by_side;
#[path = "../../../../fuzz/src/simulator.rs"]
mod simulator;

use model::Outcome;
use model::uncached::UncachedModel;
use programs::{configs, devices, everything, requests};
use proptest::prelude::*;
use side_by_side::Step;
use xmem_simulator::{
    AllocatorConfig, Device, Framework, FrameworkAllocator, Operation, Session, Uncached,
};
use xmem_types::{BlockId, Bytes, StreamId};

/// At least `cases`; `PROPTEST_CASES` asks for more.
fn thorough(cases: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(cases), max_shrink_iters: 20_000, ..usual }
}

proptest! {
    #![proptest_config(thorough(600))]

    #[test]
    fn requests_under_any_options_match_the_model(
        steps in requests(), config in configs(), device in devices()
    ) {
        let config = AllocatorConfig { memory_fraction: None, ..config };
        side_by_side::run(&steps, &config, &device).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn programs_under_any_options_match_the_model(
        steps in everything(), config in configs(), device in devices()
    ) {
        side_by_side::run(&steps, &config, &device).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn programs_under_the_default_options_match_the_model(
        steps in everything(), device in devices()
    ) {
        let config = AllocatorConfig::default();
        side_by_side::run(&steps, &config, &device).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn programs_without_caching_match_the_model(steps in requests(), device in devices()) {
        let mut model = UncachedModel::new(&device);
        let mut session = Session::new(Uncached.over(Device::new(&device), ()));
        let mut live = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let operation = match *step {
                Step::Alloc { size, stream } => {
                    let block = BlockId::new(i);
                    live.push(block);
                    Operation::Alloc { block, size: Bytes(size), stream: StreamId(stream) }
                }
                Step::Free(n) if !live.is_empty() => {
                    Operation::Free(live.swap_remove(n as usize % live.len()))
                }
                _ => continue,
            };
            let got = match session.apply(&operation).expect("requests and frees") {
                xmem_simulator::Outcome::Block(handle) => Outcome::Block(session.allocator().block(handle).addr.0),
                xmem_simulator::Outcome::Nothing => Outcome::Nothing,
                xmem_simulator::Outcome::Failed(_) => Outcome::Refused,
            };
            let want = match model.apply(&operation) {
                Outcome::Full { .. } | Outcome::TooLarge => Outcome::Refused,
                other => other,
            };
            prop_assert_eq!(got, want);
            prop_assert_eq!(session.allocator().device().used().get(), model.device.used);
        }
    }
}

/// The check of the fuzz target `simulate_vs_oracle`, on bytes that are the same in every run.
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
