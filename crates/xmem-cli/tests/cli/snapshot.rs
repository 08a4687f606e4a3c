//! Memory snapshots: what is in them, and running them again.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem, xmem_with_input};
use expect_test::expect;
use serde_json::Value;

const INFO: &str = include_str!("../../../../docs/schema/xmem.snapshot-info.2.schema.json");
const REPLAY: &str = include_str!("../../../../docs/schema/xmem.snapshot-replay.2.schema.json");
const NAMES: [&str; 10] = [
    "expandable_streams",
    "held",
    "job_expandable",
    "job_max_split",
    "job_tight",
    "max_split_without_stacks",
    "mlp_adam",
    "newest_entries",
    "pool",
    "without_stacks",
];

fn recording(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../xmem-eval/tests/data");
    format!("{folder}/{name}.pickle.zst")
}

fn valid(schema: &str, ran: &Ran) -> Value {
    let document = ran.json();
    check(&serde_json::from_str(schema).expect("schema"), &document).expect("valid");
    document
}

/// The page without its first lines, which name the file.
fn page(ran: &Ran, lines: usize) -> String {
    ran.stdout.lines().skip(lines).map(|line| format!("{line}\n")).collect()
}

#[test]
fn info_says_what_is_there_and_what_happened() {
    let ran = xmem(["snapshot", "info", &recording("job_tight"), "--top", "3"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
          written by          PyTorch 2.9 to 2.11 (inferred from the keys)
          allocator options   PyTorch's defaults
          call stacks         25 distinct
          scopes              Optimizer.step#AdamW.step (4), Optimizer.zero_grad#AdamW.zero_grad (10)

        Device 0
          reserved            250.00 MiB in 15 segments: 10 large, 5 small
          in use              97.63 MiB in 27 blocks, 97.63 MiB of it requested
          waiting             257.00 KiB in 2 blocks for other streams
          free                152.12 MiB in 16 pieces, the largest 32.00 MiB
          other streams       0x5638d0c670f0 22.00 MiB
          history             510 events over 0.05 s: 155 allocations, 155 frees
            from the device   24 segment allocations, 18 releases
            out of memory     3 allocations
            begins            with 132.00 MiB reserved, 97.63 MiB of it in use
            peak reserved     250.00 MiB
            peak requested    214.03 MiB
          Largest blocks in use
             4 ×   16.00 MiB  (no call stack)
             2 ×    8.12 MiB  (no call stack)
             4 ×    4.00 MiB  (no call stack)
    "#]].assert_eq(&page(&ran, 1));
}

#[test]
fn info_as_json_follows_its_schema() {
    for name in NAMES {
        let ran = xmem(["snapshot", "info", &recording(name), "-f", "json"]);
        let document = valid(INFO, &ran);
        let device = &document["devices"][0];
        let bytes = |pointer: &str| device.pointer(pointer).and_then(Value::as_u64).expect(pointer);
        let parts = bytes("/live/bytes") + bytes("/pending/bytes") + bytes("/free/bytes");
        assert_eq!(parts, bytes("/segments/all/bytes"), "{name}");
        assert_eq!(bytes("/history/reserved/end_bytes"), bytes("/segments/all/bytes"), "{name}");
    }
}

#[test]
fn recordings_run_again_with_exit_code_0() {
    for name in NAMES {
        let ran = xmem(["snapshot", "replay", &recording(name), "-f", "json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}");
        let document = valid(REPLAY, &ran);
        assert_eq!(document["exact"], true, "{name}");
        assert_eq!(document["divergences"]["total"], 0, "{name}");
    }
    let ran = xmem(["snapshot", "replay", &recording("job_tight")]);
    expect![[r#"
          allocator           PyTorch 2.11, recorded options, recorded addresses
          replayed            510 events: 155 allocations, 155 frees, 24 segment allocations, 18 segment
                              releases
          initial state       132.00 MiB reserved in 9 segments, 97.63 MiB of it in use in 27 blocks
          inferred            2 × empty_cache, 14 × free of a block in use by another stream, 1 × allocation
                              that failed at first
          out of memory       3 allocations
          differences         none
          at the end          all 15 segments and 45 blocks are equal
          peak reserved       250.00 MiB in both
          allocated at end    97.63 MiB in both
          peak allocated      214.03 MiB (simulated)

        Notes
          note     a block from before the recording is followed by free memory, of which up to 1 MiB may
                   have belonged to it
    "#]].assert_eq(&page(&ran, 2));
    let ran = xmem(["snapshot", "replay", &recording("held"), "--quiet"]);
    assert!(ran.stdout.starts_with("EXACT  ") && ran.stdout.lines().count() == 1);
}

#[test]
fn a_difference_is_shown_with_its_surroundings_and_exit_code_1() {
    let args = ["snapshot", "replay", &recording("mlp_adam"), "--address-order", "asc"];
    let ran = xmem(args);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    expect![[r#"
          allocator           PyTorch 2.11, recorded options, ascending addresses
          replayed            417 events: 156 allocations, 121 frees, 19 segment allocations, 0 segment
                              releases
          initial state       no memory reserved
          differences         8 × block at another address
          at the end          0 of 19 segments and 4 of 53 blocks differ
          peak reserved       250.00 MiB in both
          allocated at end    177.66 MiB in both
          peak allocated      218.26 MiB (simulated)

        First difference: event 226
          request             16777216 B, rounded to 16777216 B, stream 0
          PyTorch             alloc 16777216 B at segment 17 + 0x0
          simulator           alloc 16777216 B at segment 9 + 0x0
          at that address     free block of 16777216 B at segment 17 + 0x0
          free blocks of the simulator that are large enough, best fit first
                16777216 B at segment 9 + 0x0, segment of 16.00 MiB  <- simulator
                16777216 B at segment 10 + 0x0, segment of 16.00 MiB
                16777216 B at segment 17 + 0x0, segment of 16.00 MiB  <- PyTorch
                16777216 B at segment 18 + 0x0, segment of 16.00 MiB
                20971520 B at segment 16 + 0x0, segment of 20.00 MiB
          preceding events, equal in both
                 220  alloc 1048576 B at segment 7 + 0x0
                 221  free_requested 1048576 B at segment 6 + 0x0
                 222  free_completed 1048576 B at segment 6 + 0x0
                 223  free_requested 1048576 B at segment 6 + 0x100000
                 224  free_completed 1048576 B at segment 6 + 0x100000
                 225  alloc 1048576 B at segment 7 + 0x100000

        Differences at the end
          block at segment 9 + 0x0: 16777216 B inactive, simulated 16777216 B active_allocated, 16777216 B requested
          block at segment 10 + 0x0: 16777216 B inactive, simulated 16777216 B active_allocated, 16777216 B requested
          block at segment 17 + 0x0: 16777216 B active_allocated, 16777216 B requested, simulated 16777216 B inactive
          block at segment 18 + 0x0: 16777216 B active_allocated, 16777216 B requested, simulated 16777216 B inactive
    "#]].assert_eq(&page(&ran, 2));
    let ran = xmem(args.iter().chain(&["-f", "json"]));
    let document = valid(REPLAY, &ran);
    assert_eq!((ran.code, &document["exact"]), (1, &Value::Bool(false)));
    assert_eq!(document["divergences"]["first"]["entry"], 226);
    let other = ["--alloc-conf", "expandable_segments:True", "--torch", "2.6", "-f", "json"];
    let ran = xmem(["snapshot", "replay", &recording("mlp_adam")].into_iter().chain(other));
    assert_eq!(valid(REPLAY, &ran)["allocator"]["torch"], "2.6");
}

#[test]
fn a_capacity_decides_where_memory_runs_out() {
    let run = |capacity| {
        let args = ["snapshot", "replay", &recording("job_tight"), "--capacity", capacity];
        xmem(args.iter().chain(&["-f", "json"]))
    };
    assert_eq!(run("262MiB").code, 0);
    let ample = run("1GiB");
    assert_eq!(ample.code, 1);
    // The three that failed no longer do.
    assert!(valid(REPLAY, &ample)["divergences"]["outcome"].as_u64() >= Some(3));
}

#[test]
fn snapshots_come_through_a_pipe_too() {
    let path = recording("mlp_adam");
    let bytes = std::fs::read(&path).expect("recorded");
    let piped = xmem_with_input(["snapshot", "info", "-", "-f", "json"], &bytes).json();
    let direct = xmem(["snapshot", "info", &path, "-f", "json"]).json();
    assert_eq!(piped["devices"], direct["devices"]);
}

#[test]
fn what_cannot_be_run_again_is_refused_with_a_way_out() {
    let folder = Folder::new();
    let (bad, good) = (folder.path("bad.json"), recording("mlp_adam"));
    let missing = folder.path("nothing.pickle");
    for (args, code, words) in [
        (vec!["info", missing.as_str()], 3, "standard input"),
        (vec!["info", bad.as_str()], 3, "not a memory snapshot"),
        (vec!["replay", good.as_str(), "--device-index", "4"], 3, "_record_memory_history()"),
        (vec!["replay", good.as_str(), "--alloc-conf", "max_split:5"], 2, "max_split"),
        (vec!["replay", good.as_str(), "--alloc-conf", "backend:cudaMallocAsync"], 2, "native"),
        (vec!["replay", good.as_str(), "--memory-fraction", "0.5"], 2, "--capacity"),
        (vec!["info", good.as_str(), "--max-input", "1KiB"], 3, "more than 1.00 KiB"),
    ] {
        let ran = xmem(["snapshot"].iter().chain(&args));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}
