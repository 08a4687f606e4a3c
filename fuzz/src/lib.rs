//! Fuzz targets: what has to hold whatever the bytes are that a user, a cluster or a recorded command hands over. The
//! programs of `fuzz_targets` run one of them under libFuzzer; tests run all of them on their first inputs.

mod cudnn;
mod gate;
mod graph;
mod manifest;
#[path = "../../crates/xmem-simulator/tests/model/mod.rs"]
#[allow(dead_code, reason = "tests use more of the model")]
mod model;
mod plans;
mod readers;
mod recorder;
#[path = "../../crates/xmem-simulator/tests/side_by_side/mod.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod side_by_side;
mod simulator;
mod snapshot;
mod snapshot_replay;
mod traces;
mod verdict;

/// What a target does with bytes.
pub type Check = fn(&[u8]);

/// The targets by their names.
pub const TARGETS: [(&str, Check); 18] = [
    ("cudnn", cudnn::questions),
    ("device_file", readers::device_file),
    ("differential", traces::differential),
    ("gate", gate::gate),
    ("graph", graph::graph),
    ("hints", plans::hints),
    ("ingest", traces::ingest),
    ("manifest", manifest::manifest),
    ("operations", readers::operations),
    ("options", readers::options),
    ("parsers", traces::parsers),
    ("recorder", recorder::recorder),
    ("simulate_vs_oracle", simulator::simulate_vs_oracle),
    ("snapshot", |data| _ = snapshot::read_and_use(data)),
    ("snapshot_replay", snapshot_replay::replay),
    ("splitter", traces::splitter),
    ("table", plans::table),
    ("verdict", verdict::verdict),
];

/// Runs a target on bytes.
///
/// # Panics
/// If there is no such target, or if the target does not hold on these bytes.
pub fn check(target: &str, data: &[u8]) {
    let (_, check) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target of TARGETS");
    check(data);
}

/// A mutation of a trace for `verdict`: one of its numbers, or some that stand together as those of a shape do, are
/// replaced by one at the limit of a type. Random bytes would hardly ever turn numbers into large ones. None for every
/// fourth seed, and where there are no numbers.
pub fn with_other_numbers(data: &[u8], seed: u32) -> Option<Vec<u8>> {
    let places = verdict::numbers(data);
    if seed.is_multiple_of(4) || places.is_empty() {
        return None;
    }
    let chosen = (seed >> 8) as usize;
    let number = verdict::NUMBERS[chosen % verdict::NUMBERS.len()];
    let first = (chosen / verdict::NUMBERS.len()) % places.len();
    let last = (first + 1 + (seed % 4) as usize).min(places.len());
    Some(verdict::with_number(data, &places[first..last], number))
}
