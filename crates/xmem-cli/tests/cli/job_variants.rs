//! Recordings of several jobs that were made to be compared: the same ranks of each.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use serde_json::{Value, json};

const VARIANTS: &str = include_str!("../../../../docs/schema/xmem.variants.1.schema.json");
const INSPECT: &str = include_str!("../../../../docs/schema/xmem.inspect.2.schema.json");

/// A recording of `xmem profile` of a rank that needs as many MiB.
fn trace((rank, world_size): (u32, u32), strategies: &Value, mib: u64) -> Vec<u8> {
    let trace = json!({
        "xmem_recording": {
            "schema": "xmem.recording.1",
            "torch": "2.11.0",
            "distributed": {"rank": rank, "world_size": world_size, "backend": "gloo"},
            "strategies": strategies,
        },
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
             "args": {"Bytes": mib << 20, "Addr": 64, "Device Type": 0, "Device Id": -1}},
        ],
    });
    trace.to_string().into_bytes()
}

fn ddp() -> Value {
    json!([{"name": "DDP", "options": {}}])
}

fn view() -> Value {
    json!([{"name": "DDP", "options": {"gradient_as_bucket_view": "True"}}])
}

fn fsdp() -> Value {
    json!([
        {"name": "FSDP2", "options": {"reshard_after_forward": "False"}},
        {"name": "tensor parallel", "options": {"ranks": "2"}},
    ])
}

fn replay(folder: &Folder, names: &[&str], rest: &[&str]) -> Ran {
    let names: Vec<String> = names.iter().map(|name| folder.path(name)).collect();
    let given = names.iter().map(String::as_str);
    xmem(["replay"].into_iter().chain(given).chain(["--capacity=4GiB"]).chain(rest.iter().copied()))
}

#[test]
fn variants_are_compared_with_the_first() {
    let folder = Folder::empty();
    folder.put("ddp.json", &trace((0, 8), &ddp(), 300));
    folder.put("a-view.json", &trace((0, 8), &view(), 280));
    folder.put("fsdp.json", &trace((0, 8), &fsdp(), 300));
    folder.put("old.json", &trace((0, 8), &Value::Null, 320));
    let names = ["ddp.json", "a-view.json", "fsdp.json", "old.json"];
    let ran = replay(&folder, &names, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let table: Vec<&str> = ran.stdout.lines().take(11).collect();
    let expected = [
        "4 variants of a job on custom each, rank 0 of 8",
        "",
        "  trace    allocated    reserved  difference  nvidia-smi  strategy",
        "  ddp     300.00 MiB  300.00 MiB              750.00 MiB  DDP",
        "  a-view  280.00 MiB  280.00 MiB  -20.00 MiB  730.00 MiB  DDP, gradient_as_bucket_view=True",
        "  fsdp    300.00 MiB  300.00 MiB           0  750.00 MiB  FSDP2, reshard_after_forward=False +",
        "                                                          tensor parallel, ranks=2",
        "  old     320.00 MiB  320.00 MiB  +20.00 MiB  770.00 MiB  not noted",
        "",
        "  difference: reserved memory, from that of the first variant",
        "",
    ];
    assert_eq!(table, expected, "{}", ran.stdout);
    let list = replay(&folder, &names, &["-f", "json"]).json();
    let document = list.as_array().and_then(|list| list.last()).expect("a document");
    check(&serde_json::from_str(VARIANTS).expect("schema"), document).expect("valid");
    let variant = &document["variants"][1];
    assert_eq!(variant["difference"]["device_bytes"], -(20 << 20));
    let options = json!([{"name": "gradient_as_bucket_view", "value": "True"}]);
    assert_eq!(variant["strategies"][0]["options"], options);
}

#[test]
fn files_that_are_named_by_rank_belong_to_the_job_of_that_name() {
    let folder = Folder::empty();
    for (name, mib) in [("a", 100), ("b", 200)] {
        folder.put(&format!("{name}.rank0.json"), &trace((0, 8), &ddp(), mib));
        folder.put(&format!("{name}.rank7.json"), &trace((7, 8), &ddp(), 3 * mib));
    }
    let names = ["a.rank0.json", "b.rank0.json", "a.rank7.json", "b.rank7.json"];
    let list = replay(&folder, &names, &["-f", "jsonl"]).lines();
    let document = list.last().expect("a document");
    assert_eq!(document["schema"], "xmem.variants/1");
    let variants = document["variants"].as_array().expect("a list");
    assert_eq!(variants.len(), 2);
    assert_eq!(variants[1]["ranks"], json!([0, 7]));
    assert_eq!(variants[1]["worst"]["rank"], 7);
    assert_eq!(variants[1]["difference"]["reserved_bytes"], 300 << 20);
    let text = replay(&folder, &names, &[]).stdout;
    assert!(text.starts_with("2 variants of a job on custom each, ranks 0, 7 of 8\n"), "{text}");
}

#[test]
fn numbers_of_ranks_are_compared_too() {
    let folder = Folder::empty();
    folder.put("8.json", &trace((0, 8), &ddp(), 100));
    folder.put("16.json", &trace((0, 16), &ddp(), 90));
    let text = replay(&folder, &["8.json", "16.json"], &[]).stdout;
    assert!(text.starts_with("2 variants of a job on custom each, rank 0\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("  16 ")).expect("a row");
    assert_eq!(row.split_whitespace().nth(1), Some("16"), "{text}");
}

#[test]
fn jobs_of_which_other_ranks_were_recorded_are_not_compared() {
    let folder = Folder::empty();
    folder.put("ddp.json", &trace((0, 8), &ddp(), 100));
    folder.put("fsdp.json", &trace((1, 8), &fsdp(), 100));
    folder.put("ddp1.json", &trace((1, 8), &ddp(), 100));
    let ran = replay(&folder, &["ddp.json", "fsdp.json"], &["-f", "jsonl"]);
    assert_eq!(ran.lines().len(), 2);
    let reason = "has the strategy DDP, and `";
    let note: String = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(note.contains(reason), "{note}");
    let ran = replay(&folder, &["ddp.json", "ddp1.json"], &[]);
    // The traces have no shapes.
    let head = "FITS  (likely)  on custom each, a job of 8 ranks\n";
    assert!(ran.stdout.starts_with(head), "{}", ran.stdout);
}

#[test]
fn variants_are_answered_anew_when_a_run_goes_on() {
    let folder = Folder::empty();
    folder.put("ddp.json", &trace((0, 8), &ddp(), 100));
    folder.put("view.json", &trace((0, 8), &view(), 90));
    let out = folder.path("answers.jsonl");
    let args = ["-f", "jsonl", "-o", out.as_str(), "--skip-done"];
    let lines = || folder.read("answers.jsonl").lines().count();
    assert_eq!(replay(&folder, &["ddp.json", "view.json"], &args[..4]).code, 0);
    assert_eq!(lines(), 3);
    assert_eq!(replay(&folder, &["ddp.json", "view.json"], &args).code, 0);
    assert_eq!(lines(), 2);
}

#[test]
fn strategies_are_shown_by_inspect() {
    let folder = Folder::empty();
    folder.put("fsdp.json", &trace((0, 8), &fsdp(), 100));
    let path = folder.path("fsdp.json");
    let text = xmem(["inspect", path.as_str()]).stdout;
    let line = "  strategies          FSDP2, reshard_after_forward=False, tensor parallel, ranks=2";
    assert!(text.lines().any(|found| found == line), "{text}");
    let document = xmem(["inspect", path.as_str(), "-f", "json"]).json();
    check(&serde_json::from_str(INSPECT).expect("schema"), &document).expect("valid");
    assert_eq!(document["recording"]["strategies"][1]["name"], "tensor parallel");
}
