//! Traces of many operators in an odd place in time: what once cost the square of their number.

use crate::testing::case::scheduled;
use crate::testing::target;
use std::fmt::Write as _;
use xmem_analyzer::Profile;

/// The square is two thousand million.
const MANY: u64 = 50_000;

/// The shape of one of many operators: its thread, start and duration, and when it allocates.
type Place = fn(u64) -> (u64, u64, u64, u64);

/// A trace of one kind of operator, each of which makes a block that stays.
fn profile(name: &str, place: Place) -> Profile {
    let mut text = String::from(r#"{"schemaVersion": 1, "traceEvents": ["#);
    for i in 0..MANY {
        let (thread, start, duration, alloc) = place(i);
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": {thread},
             "ts": {start}.001, "dur": {duration}.000, "args": {{"Ev Idx": {i}}}}},
             {{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": {thread},
             "ts": {alloc}.001, "args": {{"Total Allocated": {}, "Bytes": 512, "Device Id": -1,
             "Device Type": 0, "Addr": {}}}}}"#,
            512 * (i + 1),
            4096 * (i + 1),
        );
    }
    text.push_str("]}");
    let options = xmem_trace::ReadOptions::default();
    let (trace, _) = xmem_trace::read_bytes(text.as_bytes(), &options).expect("a trace");
    xmem_analyzer::analyze(trace).0
}

#[test]
fn fifty_thousand_operators_at_once_cost_no_square_of_their_number() {
    let places: [(&str, Place); 3] = [
        ("at the same time", |_| (1, 5, 0, 5)),
        ("on threads of their own, all running at once", |i| (i, i, MANY, i + 1)),
        ("each within the one before", |i| (1, 2 * i, 4 * (MANY - i), 2 * i + 1)),
    ];
    for (shown, place) in places {
        for name in ["aten::mm", "aten::sum", "aten::_softmax_backward_data"] {
            let profile = profile(name, place);
            let (schedule, _) = scheduled(&profile, &target());
            let kept =
                schedule.blocks.iter().filter(|b| b.origin.recorded().is_some()).count() as u64;
            assert_eq!(kept, MANY, "{name} {shown}");
        }
    }
}
