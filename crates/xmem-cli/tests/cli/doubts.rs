//! Snapshots that a replay without a difference says nothing about.

use crate::job::Folder;
use crate::pickle::pickle;
use crate::shell::xmem;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const AT: u64 = 0x7f00_0000_0000;

fn segment(address: u64, size: u64) -> Value {
    let block = json!({"address": address, "size": size, "requested_size": size, "state": "active_allocated"});
    json!({
        "device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
        "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
        "is_expandable": false, "blocks": [block],
    })
}

fn entry(action: &str, addr: u64, size: u64) -> Value {
    json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1})
}

/// A segment of 20 MiB with one block, from beginning to end.
fn honest() -> (Vec<Value>, Vec<Value>) {
    let history = vec![entry("segment_alloc", AT, 20 * MIB), entry("alloc", AT, 20 * MIB)];
    (vec![segment(AT, 20 * MIB)], history)
}

#[test]
fn a_replay_that_says_nothing_is_never_exact() {
    let folder = Folder::empty();
    let run = |name: &str, segments: Vec<Value>, history: Vec<Value>| {
        let file = folder.path(name);
        folder.put(name, &pickle(&json!({"segments": segments, "device_traces": [history]})));
        (
            xmem(["snapshot", "replay", &file, "-f", "json"]),
            xmem(["snapshot", "replay", &file]),
            file,
        )
    };
    let (segments, history) = honest();
    let (ran, ..) = run("honest", segments.clone(), history.clone());
    assert_eq!((ran.code, &ran.json()["verdict"]), (0, &json!("exact")), "{}", ran.stdout);

    let with = |more: Value| [history.clone(), vec![more]].concat();
    let mut gap = segment(AT, 20 * MIB);
    gap["total_size"] = json!(22 * MIB);
    for (name, segments, history, code) in [
        ("nothing", vec![], vec![entry("snapshot", 0, 0)], "nothing-replayed"),
        (
            "frees of unknown blocks",
            vec![],
            vec![entry("free_requested", 7, 512), entry("free_completed", 7, 512)],
            "nothing-replayed",
        ),
        (
            "unknown action",
            segments.clone(),
            with(entry("segment_teleport", AT, 512)),
            "unknown-action",
        ),
        (
            "overlap",
            vec![segments[0].clone(), segment(AT + MIB, 20 * MIB)],
            history.clone(),
            "segments-overlap",
        ),
        ("gap", vec![gap], history.clone(), "impossible-segment"),
        ("beyond", vec![segment(u64::MAX - 511, 20 * MIB)], history.clone(), "impossible-segment"),
        (
            "sum",
            vec![segment(0, 1 << 63), segment(1 << 63, (1 << 63) - 512), segment(AT, 20 * MIB)],
            history.clone(),
            "sum-beyond-64-bits",
        ),
        ("huge entry", segments.clone(), with(entry("alloc", AT, u64::MAX)), "impossible-entry"),
        ("twice", segments, with(entry("segment_alloc", AT, 20 * MIB)), "segment-allocated-twice"),
    ] {
        let (ran, text, file) = run(name, segments, history);
        assert!(!text.stdout.contains("EXACT"), "{name}: {}", text.stdout);
        assert!([1, 3, 4].contains(&text.code) && text.code == ran.code, "{name}: {}", text.code);
        if ran.code == 3 {
            continue;
        }
        let document = ran.json();
        assert_ne!(document["verdict"], "exact", "{name}");
        assert_eq!(document["exact"], false, "{name}");
        let diagnostics = document["diagnostics"].as_array().expect("list").iter();
        let codes: Vec<&Value> = diagnostics.map(|diagnostic| &diagnostic["code"]).collect();
        assert!(codes.contains(&&json!(code)), "{name}: {codes:?}");
        let info = xmem(["snapshot", "info", &file, "-f", "json"]);
        if code != "nothing-replayed" {
            assert!(info.stdout.contains(code), "{name}: {}", info.stdout);
        }
    }
}
