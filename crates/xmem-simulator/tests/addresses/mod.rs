//! The addresses that a recording's stand-in for the driver gave.
//!
//! Sequences with the order `driver` were recorded with an earlier model of the driver, which took
//! released address space again from the bottom up. The allocator's rules do not depend on it.

use serde_json::Value;

/// The first segment of a sequence. All others are above or below, outside of the simulated space.
const FIRST: i64 = 1 << 47;

/// The addresses of a sequence's segments, in order. None if the sequence has a simple order, or
/// expandable segments, of which it does not tell all reserved ranges.
pub(crate) fn addresses(case: &Value) -> Vec<u64> {
    let events = || case["trace"].as_array().expect("trace").iter();
    let has_pages = events().any(|event| event["action"] == "segment_map");
    if case["address_order"] != "driver" || has_pages {
        return Vec::new();
    }
    let segments = events().filter(|event| event["action"] == "segment_alloc");
    let offset = |event: &Value| event["addr"].as_i64().expect("an address");
    segments.map(|event| (FIRST + offset(event)).cast_unsigned()).collect()
}
