//! When collectives are complete: `--collectives`, on a recording of a virtual GPU whose streams were logged.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use serde_json::{Value, json};

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const RECORDING: &str = include_str!("../../../../docs/schema/xmem.recording.1.schema.json");

const MIB: i64 = 1 << 20;

fn event(ts: i64, bytes: i64, total: i64) -> Value {
    event_at(1 << 30, ts, bytes, total)
}

fn event_at(address: i64, ts: i64, bytes: i64, total: i64) -> Value {
    json!({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
        "args": {"Bytes": bytes, "Addr": address, "Device Type": 1, "Device Id": 0,
            "Total Allocated": total, "Total Reserved": 138 * MIB}})
}

/// 40 MiB, which an all-gather on another stream uses, and 40 MiB that are requested a millisecond after their free.
fn notes() -> Value {
    json!({
        "schema": "xmem.recording.1",
        "torch": "2.11.0",
        "virtual_gpu": {"device": "a100-40g", "peaks": {}},
        "distributed": {"rank": 0, "world_size": 8, "nodes": 1, "backend": "nccl", "groups": [8]},
        "allocator_history": {
            "complete": true,
            "devices": [{
                "index": 0, "actions": "safca", "addresses": [2_097_152, 0, 0, 0, 0],
                "sizes": [40 * MIB, 40 * MIB, 40 * MIB], "streams": [["0x0", 2]], "awaited": [[2, 1]],
            }],
            "activity": {
                // In ns: 20 and 100 µs.
                "kinds": "Ga", "times": [20_000, 80_000], "threads": [1, 1], "streams": [1, 1],
                "values": [480_000_000, 1], "ranks": [[0, 8, "0x40000000"]], "pauses": [],
            },
        },
    })
}

fn recording(notes: &Value) -> Folder {
    let events =
        [event(10, 40 * MIB, 40 * MIB), event(99, -40 * MIB, 0), event(1_100, 40 * MIB, 40 * MIB)];
    recording_of(notes, &events)
}

fn recording_of(notes: &Value, events: &[Value]) -> Folder {
    let folder = Folder::empty();
    let operator = json!({"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 9, "dur": 2000});
    let events = [&[operator][..], events].concat();
    let trace = json!({
        "baseTimeNanoseconds": 0,
        "xmem_recording": notes,
        "traceEvents": events,
    });
    folder.put("trace.json", trace.to_string().as_bytes());
    folder
}

fn replay(folder: &Folder, rest: &[&str]) -> Ran {
    let path = folder.path("trace.json");
    xmem(["replay", path.as_str(), "--device", "a100-40g"].iter().chain(rest))
}

#[test]
fn memory_that_a_collective_uses_is_free_when_it_is_complete() {
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    check(&schema(RECORDING), &notes()).expect("a recording");
    let folder = recording(&notes());
    // The all-gather takes 1.78 ms over NVLink, and 0.9 ms over a link that is twice as fast.
    for (options, reserved) in [
        (&[][..], 40),
        (&["--collectives=at-once"], 40),
        (&["--collectives=run-ahead"], 80),
        (&["--collectives=bandwidth", "--rates=host=1"], 80),
        (&["--collectives=bandwidth", "--rates=host=1,nvlink=480"], 40),
        (&["--collectives=bandwidth", "--rates=host=0.5,nvlink=480"], 80),
    ] {
        let ran = replay(&folder, &[&["--format=json"], options].concat());
        let answer: Value = serde_json::from_str(&ran.stdout).expect(&ran.stderr);
        check(&schema(REPLAY), &answer).expect("an answer");
        let complete =
            options.first().map_or("at-once", |option| &option["--collectives=".len()..]);
        assert_eq!(answer["target"]["collectives"]["complete"], complete);
        assert_eq!(answer["peak"]["reserved_bytes"], reserved * MIB, "{options:?}");
        if complete == "at-once" {
            let end = &answer["range"]["reserved_bytes"]["high"];
            assert_eq!(*end, 80 * MIB, "{}", answer["range"]);
        }
        let model = &answer["target"]["collectives"]["model"];
        assert_eq!(model.is_null(), complete != "bandwidth", "{options:?}");
    }
    let options = ["--format=json", "--collectives=bandwidth", "--rates=network=12.5"];
    let answer: Value = serde_json::from_str(&replay(&folder, &options).stdout).expect("JSON");
    let model = &answer["target"]["collectives"]["model"];
    assert_eq!(model["network_bytes_per_second"], 12_500_000_000_u64);
    let notes = answer["diagnostics"].to_string();
    assert!(notes.contains("network 12.5 GB/s"), "{notes}");
    let text = replay(&folder, &options[1..]).stdout;
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("network 12.5 GB/s"), "{text}");
}

/// Two blocks that all-gathers use, the larger one beside a small one; then 60 MiB, and 38, which fit into either. Where the
/// short all-gather is complete and the long one is not, they get the larger block, of which 0.5 MiB are too few to be split.
#[test]
fn the_range_covers_peaks_between_complete_at_once_and_late() {
    let half = MIB / 2;
    let [first, second, third] = [1_i64 << 30, (1 << 30) + 64 * MIB, (1 << 30) + 128 * MIB];
    let small = second + 77 * half;
    let mut notes = notes();
    let unit = |address: i64| address / 512;
    let places =
        [first, first, second, second, small, second, second, first, first, third, third, first];
    let steps: Vec<i64> = std::iter::once(unit(first))
        .chain(places.windows(2).map(|pair| unit(pair[1]) - unit(pair[0])))
        .collect();
    notes["allocator_history"]["devices"][0] = json!({
        "index": 0, "actions": "sasaafcfcsaa", "addresses": steps, "streams": [["0x0", 5]],
        "sizes": [38 * MIB, 38 * MIB, 40 * MIB, 77 * half, 3 * half, 60 * MIB, 60 * MIB, 38 * MIB],
        "awaited": [[5, 1], [7, 2]],
    });
    notes["allocator_history"]["activity"] = json!({
        "kinds": "GaGa", "times": [20_000, 10_000, 10_000, 10_000], "threads": [1, 1, 1, 1],
        "streams": [1, 1, 1, 1], "values": [1_000_000, 1, 480_000_000, 2],
        "ranks": [[0, 8, format!("{second:#x}")], [2, 8, format!("{first:#x}")]], "pauses": [],
    });
    let events = [
        event_at(first, 10, 38 * MIB, 38 * MIB),
        event_at(second, 11, 77 * half, 153 * half),
        event_at(small, 12, 3 * half, 78 * MIB),
        event_at(second, 98, -77 * half, 79 * half),
        event_at(first, 99, -38 * MIB, 3 * half),
        event_at(third, 1_100, 60 * MIB, 123 * half),
        event_at(first, 1_101, 38 * MIB, 199 * half),
    ];
    let folder = recording_of(&notes, &events);
    let answer = |complete: &str| -> Value {
        let ran = replay(&folder, &["--format=json", "--collectives", complete]);
        serde_json::from_str(&ran.stdout).expect(&ran.stderr)
    };
    for (complete, allocated, reserved) in [
        ("at-once", 199 * half, 138),
        ("bandwidth", 200 * half, 138),
        ("run-ahead", 199 * half, 176),
    ] {
        let peak = &answer(complete)["peak"];
        assert_eq!(peak["allocated_bytes"], allocated, "{complete}");
        assert_eq!(peak["reserved_bytes"], reserved * MIB, "{complete}");
    }
    let range = &answer("at-once")["range"];
    assert_eq!(range["allocated_bytes"], json!({"low": 199 * half, "high": 200 * half}), "{range}");
    assert_eq!(range["reserved_bytes"], json!({"low": 138 * MIB, "high": 176 * MIB}), "{range}");
}

#[test]
fn a_recording_without_the_log_of_streams_says_what_to_do() {
    let mut notes = notes();
    notes["allocator_history"].as_object_mut().expect("object").remove("activity");
    let folder = recording(&notes);
    assert!(replay(&folder, &[]).code < 2);
    let ran = replay(&folder, &["--collectives=bandwidth"]);
    assert!(
        ran.stderr.contains("`--collectives bandwidth` has nothing to go by"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`xmem profile --virtual-gpu`"), "{}", ran.stderr);
    assert_ne!(ran.code, 0);
}

#[test]
fn rates_have_names_and_are_numbers_above_zero() {
    for (rates, expected) in [
        ("ethernet=1", "unknown parameter `ethernet`"),
        ("network", "expected KEY=VALUE"),
        ("network=0", "`0` is not a number above 0"),
        ("host=NaN", "`NaN` is not a number above 0"),
    ] {
        let ran = replay(&Folder::empty(), &["--collectives=bandwidth", "--rates", rates]);
        assert!(ran.stderr.contains(expected), "{rates}: {}", ran.stderr);
    }
}
