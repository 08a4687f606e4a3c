//! Normalization before a comparison: parts of a recording that mean nothing or differ from run to
//! run are removed.

use serde_json::Value;

/// PyTorch leaves the last request's size in free blocks; it means nothing.
pub(crate) fn without_stale_requests(segments: &Value) -> Value {
    let mut segments = segments.clone();
    for segment in segments.as_array_mut().expect("segments") {
        for block in segment["blocks"].as_array_mut().expect("blocks") {
            if block[2] == "inactive" {
                block[1] = 0.into();
            }
        }
    }
    segments
}

/// Frees that complete together, as those deferred during a capture, do so in an order that differs
/// from run to run (that of a hash map of streams): only which ones they are can be compared.
pub(crate) fn in_normal_order(mut events: Vec<Value>) -> Vec<Value> {
    let completes = |event: &Value| event["action"] == "free_completed";
    for run in events.chunk_by_mut(|a, b| completes(a) && completes(b)) {
        run.sort_by_key(|event| event["addr"].as_i64());
    }
    events
}
