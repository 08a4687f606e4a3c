//! Recordings of the ranks of one distributed job: one answer for the job.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use serde_json::{Value, json};

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const RANKS: &str = include_str!("../../../../docs/schema/xmem.ranks.1.schema.json");

/// A recording of a rank that needs as many MiB.
fn trace(rank: u32, world_size: u32, mib: u64) -> Vec<u8> {
    let info = json!({"backend": "gloo", "rank": rank, "world_size": world_size});
    trace_with(&info, mib)
}

fn trace_with(info: &Value, mib: u64) -> Vec<u8> {
    let trace = json!({
        "distributedInfo": info,
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
             "args": {"Bytes": mib << 20, "Addr": 64, "Device Type": 0, "Device Id": -1}},
        ],
    });
    trace.to_string().into_bytes()
}

/// The ranks 0, 1, 2, 5 and 7 of 8.
fn job() -> Folder {
    let folder = Folder::empty();
    for (rank, mib) in [(0, 100), (1, 80), (2, 80), (5, 80), (7, 300)] {
        folder.put(&format!("rank{rank}.json"), &trace(rank, 8, mib));
    }
    folder
}

fn replay(folder: &Folder, rest: &[&str]) -> Ran {
    let folder = folder.path(".");
    xmem(["replay", folder.as_str()].iter().chain(rest))
}

fn schemas(documents: &[Value]) -> Vec<&str> {
    documents.iter().filter_map(|document| document["schema"].as_str()).collect()
}

#[test]
fn ranks_of_one_job_have_one_answer() {
    let ran = replay(&job(), &["--capacity", "4GiB"]);
    assert_eq!(ran.code, 0);
    let head: Vec<&str> = ran.stdout.lines().take_while(|line| !line.is_empty()).collect();
    let expected = [
        // The traces have no shapes.
        "FITS  (likely)  on custom each, a job of 8 ranks",
        "  rank 7 needs most: 750.00 MiB in nvidia-smi, 300.00 MiB reserved, 300.00 MiB allocated",
        "  peak reserved differs by 220.00 MiB among the recorded ranks:",
        "    rank 0: 550.00 MiB in nvidia-smi, 100.00 MiB reserved",
        "    ranks 1, 2, 5: 530.00 MiB in nvidia-smi, 80.00 MiB reserved",
        "    rank 7: 750.00 MiB in nvidia-smi, 300.00 MiB reserved",
        "  not recorded: ranks 3, 4, 6; what they need is not in this answer",
    ];
    assert_eq!(head, expected, "{}", ran.stdout);
    // The table of the traces follows.
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("rank7.json")).count(), 1);
}

#[test]
fn the_worst_rank_is_the_verdict_of_the_job() {
    let ran = replay(&job(), &["--capacity", "700MiB", "-f", "json"]);
    assert_eq!(ran.code, 1);
    let list = ran.json();
    let list = list.as_array().expect("a list");
    let document = list.last().expect("a document");
    check(&serde_json::from_str(RANKS).expect("schema"), document).expect("valid");
    assert_eq!(schemas(list), [&["xmem.replay/2"; 5][..], &["xmem.ranks/1"]].concat());
    assert_eq!(document["verdict"], "does_not_fit");
    assert_eq!(document["worst"]["rank"], 7);
    let missing = json!([{"first": 3, "last": 4}, {"first": 6, "last": 6}]);
    assert_eq!(document["missing_ranks"], missing);
    let groups = document["groups"].as_array().expect("a list").iter();
    let groups: Vec<&Value> = groups.map(|group| &group["ranks"]).collect();
    assert_eq!(groups, [&json!([0]), &json!([1, 2, 5]), &json!([7])]);
    assert_eq!(document["spread"]["reserved_bytes"], json!({"low": 80 << 20, "high": 300 << 20}));
}

#[test]
fn each_device_has_an_answer_for_the_job() {
    let folder = job();
    let ran = replay(&folder, &["--devices", "t4-16g,l4-24g", "-f", "jsonl"]);
    let lines = ran.lines();
    let jobs: Vec<&Value> = lines.iter().filter(|line| line["schema"] == "xmem.ranks/1").collect();
    assert_eq!(lines.len(), 12);
    let devices: Vec<&Value> = jobs.iter().map(|job| &job["device"]["name"]).collect();
    assert_eq!(devices, ["t4-16g", "l4-24g"]);
}

#[test]
fn an_answer_for_a_job_is_not_kept_when_a_run_goes_on() {
    let folder = job();
    let out = folder.path("answers.jsonl");
    let args = ["--capacity", "4GiB", "-f", "jsonl", "-o", out.as_str()];
    assert_eq!(replay(&folder, &args).code, 0);
    let lines = || folder.read("answers.jsonl").lines().count();
    assert_eq!(lines(), 6);
    assert_eq!(replay(&folder, &[&args[..], &["--skip-done"]].concat()).code, 0);
    assert_eq!(lines(), 5);
}

#[test]
fn recordings_of_several_jobs_are_answered_one_by_one_with_a_note() {
    for (name, other, reason) in [
        ("again.json", trace(7, 8, 300), "rank 7 was recorded twice"),
        ("other.json", trace(3, 16, 300), "has world size 16"),
        ("plain.json", br#"{"traceEvents": []}"#.to_vec(), "names none"),
    ] {
        let folder = job();
        folder.put(name, &other);
        let ran = replay(&folder, &["--capacity", "4GiB", "-f", "json"]);
        let list = ran.json();
        let list = list.as_array().expect("a list");
        assert_eq!(schemas(list), ["xmem.replay/2"; 6], "{name}");
        assert_eq!(
            ran.stderr.matches("note: no answer for a whole job").count(),
            1,
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(reason), "{name}: {}", ran.stderr);
        let quiet = replay(&folder, &["--capacity", "4GiB", "-f", "json", "--quiet"]);
        assert!(!quiet.stderr.contains("whole job"), "{}", quiet.stderr);
    }
}

#[test]
fn memory_of_nccl_is_beside_the_context() {
    let folder = Folder::empty();
    let group = json!({"backend_config": "cuda:nccl", "pg_size": 8});
    let info = json!({"backend": "nccl", "rank": 0, "world_size": 8, "nccl_version": "2.28.9",
                      "pg_config": [group, group]});
    folder.put("nccl.json", &trace_with(&info, 100));
    folder.put("gloo.json", &trace(0, 8, 100));
    let [with, without] = ["nccl.json", "gloo.json"].map(|name| {
        let ran = xmem(["replay", &folder.path(name), "-d", "a100-80g", "-f", "json"]);
        check(&serde_json::from_str(REPLAY).expect("schema"), &ran.json()).expect("valid");
        ran.json()
    });
    let mib = |value: &Value| value.as_u64().expect("bytes") >> 20;
    assert_eq!(with["nccl"]["communicators"], 2);
    assert_eq!(with["nccl"]["communicators_counted"], false);
    let range = &with["nccl"]["range_bytes"];
    let nccl = [&range["low"], &with["nccl"]["expected_bytes"], &range["high"]].map(mib);
    assert_eq!(nccl, [48, 864, 1924]);
    assert!(without.get("nccl").is_none());
    assert_eq!(with["device"]["context_bytes"], without["device"]["context_bytes"]);
    let differs = |pointer: &str| {
        let value = |answer: &Value| mib(answer.pointer(pointer).expect("a value"));
        value(&with).abs_diff(value(&without))
    };
    for (pointer, expected) in [
        ("/peak/reserved_bytes", 0),
        ("/peak/device_bytes", 864),
        ("/unlimited/device_bytes", 864),
        ("/device/available_bytes", 864),
        ("/headroom_bytes", 864),
        ("/range/device_bytes/low", 48),
        ("/range/device_bytes/high", 1924),
    ] {
        assert_eq!(differs(pointer), expected, "{pointer}");
    }
    let text = xmem(["replay", &folder.path("nccl.json"), "-d", "a100-80g"]).stdout;
    assert!(text.contains("MiB) + NCCL\n"), "{text}");
    let line = "    NCCL                   864.00 MiB   48 to 1924 MiB, up to 2 communicators\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn memory_outside_the_allocator_is_beside_the_context() {
    let folder = Folder::empty();
    let info = json!({"backend": "nccl", "rank": 0, "world_size": 8});
    let mut trace: Value = serde_json::from_slice(&trace_with(&info, 100)).expect("JSON");
    let answers = [0, 66 << 20, u64::MAX].map(|outside| {
        let facts = json!({"schema": "xmem.recording.1", "virtual_gpu": {"outside": outside}});
        trace["xmem_recording"] = facts;
        folder.put("trace.json", &serde_json::to_vec(&trace).expect("JSON"));
        let of =
            |format| xmem(["replay", &folder.path("trace.json"), "-d", "a100-80g", "-f", format]);
        let json = of("json").json();
        check(&serde_json::from_str(REPLAY).expect("schema"), &json).expect("valid");
        (json, of("text").stdout)
    });
    let [(none, without), (some, with), (most, _)] = &answers;
    assert!(none.get("outside_bytes").is_none());
    assert_eq!(some["outside_bytes"], 66 << 20);
    assert_eq!(some["device"]["context_bytes"], none["device"]["context_bytes"]);
    for pointer in ["/peak/device_bytes", "/range/device_bytes/low", "/range/device_bytes/high"] {
        let bytes =
            |answer: &Value| answer.pointer(pointer).and_then(Value::as_u64).expect("bytes");
        assert_eq!(bytes(some) - bytes(none), 66 << 20, "{pointer}");
    }
    assert_eq!(most["verdict"], "does_not_fit");
    let line = "    other memory            66.00 MiB   not from PyTorch's allocator: symmetric memory, cudaMalloc";
    assert!(with.contains(line) && with.contains("450.00 MiB context"), "{with}");
    assert!(!without.contains("other memory"), "{without}");
}

#[test]
fn a_verdict_that_depends_on_nccl_says_so() {
    let folder = Folder::empty();
    let info = json!({"backend": "nccl", "rank": 0, "world_size": 8});
    folder.put("nccl.json", &trace_with(&info, 100));
    for (capacity, said) in [("1GiB", "May fit"), ("1500MiB", "May not fit"), ("4GiB", "")] {
        let text = xmem(["replay", &folder.path("nccl.json"), "--capacity", capacity]).stdout;
        let line = text.lines().find(|line| line.contains("the driver and NCCL"));
        match (line, said) {
            (None, "") => {}
            (Some(line), said) if !said.is_empty() => assert!(line.starts_with(said), "{text}"),
            _ => panic!("{capacity}: {text}"),
        }
    }
    let other = json!({"backend": "nccl", "rank": 1, "world_size": 8});
    folder.put("other.json", &trace_with(&other, 100));
    let text = replay(&folder, &["--capacity", "1500MiB"]).stdout;
    assert!(text.starts_with("TIGHT  (may fail)  on custom each"), "{text}");
}

#[test]
fn another_number_of_ranks_is_answered_where_the_recording_says_how_parameters_are_sharded() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sharding/ranks8.json.zst");
    let replay = |ranks: &str, rest: &[&str]| {
        let what_if = format!("--what-if=world-size={ranks}");
        let fixed = ["replay", recording, "--device=a100-40g", what_if.as_str()];
        xmem(fixed.iter().chain(rest))
    };
    let ran = replay("32", &[]);
    assert_eq!(ran.code, 0);
    let line = "  what if: rank 0 of 32; recorded as one of 8, and shards have other sizes";
    assert!(ran.stdout.lines().any(|found| found == line), "{}", ran.stdout);
    let document = replay("32", &["-f", "json"]).json();
    check(&serde_json::from_str(REPLAY).expect("schema"), &document).expect("valid");
    assert_eq!(document["target"]["world_size"], 32);
    for (ranks, code, reason) in [
        ("0", 2, "expected a number of ranks, found `0`"),
        ("x", 2, "expected a number of ranks, found `x`"),
    ] {
        let ran = replay(ranks, &[]);
        assert_eq!(ran.code, code);
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn a_recording_that_does_not_say_how_parameters_are_sharded_has_no_other_number_of_ranks() {
    let job = job();
    let path = job.path("rank0.json");
    let ran = xmem(["replay", path.as_str(), "--capacity=4GiB", "--what-if=world-size=16"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let text =
        ran.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(text.contains("does not say how FSDP or DDP divides the parameters"), "{text}");
    assert!(text.contains("xmem profile --ranks 16"), "{text}");
}
