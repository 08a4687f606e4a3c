//! Notes that were wrong, or named no way to more: on own recordings, in folders and in tables.

use crate::job::{Folder, growing_trace, trace, trace_without_memory};
use crate::shell::xmem;
use serde_json::{Value, json};

const MIB: i64 = 1 << 20;

fn codes(answer: &Value) -> Vec<&str> {
    let notes = answer["diagnostics"].as_array().expect("a list");
    notes.iter().map(|note| note["code"].as_str().expect("a code")).collect()
}

/// A recording of `xmem profile` with an optimizer for which the script asked for `fused=True`.
fn notes(virtual_gpu: bool) -> Value {
    let mut notes = json!({
        "schema": "xmem.recording.1",
        "torch": "2.11.0",
        "optimizers": [{
            "class": "torch.optim.adam.Adam", "implementation": "fused",
            "groups": [{"tensors": 1}],
        }],
    });
    if virtual_gpu {
        notes["virtual_gpu"] = json!({"device": "a100-40g", "peaks": {}});
    }
    notes
}

fn on_a_virtual_gpu() -> Folder {
    let event = json!({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10,
        "args": {"Bytes": 40 * MIB, "Addr": 4096, "Device Type": 1, "Device Id": 0,
            "Total Allocated": 40 * MIB, "Total Reserved": 40 * MIB}});
    let operator = json!({"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 9, "dur": 9});
    let trace = json!({"xmem_recording": notes(true), "traceEvents": [operator, event]});
    let folder = Folder::empty();
    folder.put("trace.json", trace.to_string().as_bytes());
    folder
}

fn answer(path: &str, options: &[&str]) -> Value {
    let args = ["replay", path, "--device", "a100-40g", "--format", "json"];
    xmem(args.iter().chain(options)).json()
}

#[test]
fn what_the_script_itself_asked_for_was_an_ignored_what_if() {
    let folder = on_a_virtual_gpu();
    let path = folder.path("trace.json");
    let plain = answer(&path, &[]);
    assert_eq!(plain["target"]["optimizer_impl"], "fused", "the notes are read");
    assert!(!codes(&plain).contains(&"what-if-ignored"), "{:?}", codes(&plain));
    let asked = answer(&path, &["--optimizer-impl", "for-loop"]);
    assert!(codes(&asked).contains(&"what-if-ignored"), "{:?}", codes(&asked));
}

#[test]
fn a_virtual_gpu_was_told_to_have_0_device_activities() {
    let folder = on_a_virtual_gpu();
    let shown = answer(&folder.path("trace.json"), &[]).to_string();
    assert!(shown.contains("recorded on a GPU (1 device memory events"), "{shown}");
    assert!(!shown.contains("0 device activities"), "{shown}");
}

#[test]
fn own_recordings_were_told_not_to_be_standard_json() {
    // PyTorch writes such numbers.
    let with_nan = |notes: Option<Value>| {
        let mut trace: Value = serde_json::from_slice(&trace()).expect("JSON");
        if let Some(notes) = notes {
            trace["xmem_recording"] = notes;
        }
        let event = r#"{"ph": "X", "cat": "user_annotation", "name": "n", "pid": 7, "tid": 7, "ts": 1, "dur": 1, "args": {"x": NaN}}"#;
        let text = trace.to_string();
        let folder = Folder::empty();
        let text = text.replacen("\"traceEvents\":[", &format!("\"traceEvents\":[{event},"), 1);
        folder.put("trace.json", text.as_bytes());
        answer(&folder.path("trace.json"), &[])
    };
    let other = with_nan(None);
    assert!(codes(&other).contains(&"repaired-event"), "{:?}", codes(&other));
    let own = with_nan(Some(notes(false)));
    assert!(!codes(&own).contains(&"repaired-event"), "{:?}", codes(&own));
}

#[test]
fn more_notes_were_in_json_only() {
    let folder = Folder::empty();
    folder.put("trace.json", &growing_trace(3));
    let path = folder.path("trace.json");
    let all = answer(&path, &[])["diagnostics"].as_array().expect("a list").len();
    let replay = |options: &[&str]| {
        xmem(["replay", &path, "--device", "a100-40g"].iter().chain(options)).stdout
    };
    let few = replay(&[]);
    let count = |page: &str| {
        let rows = page.lines().filter(|line| {
            ["  warning ", "  note    ", "  serious "].iter().any(|label| line.starts_with(label))
        });
        rows.count()
    };
    assert!(count(&few) < all, "{few}");
    let hidden = all - count(&few);
    let rest = match hidden {
        1 => "1 more note: --notes shows it".to_owned(),
        n => format!("{n} more notes: --notes shows them"),
    };
    assert!(few.contains(&rest), "{rest}: {few}");
    assert!(!few.contains("--format json"), "{few}");
    assert_eq!(count(&replay(&["--notes"])), all);
}

#[test]
fn a_stray_config_json_failed_a_folder() {
    let folder = Folder::empty();
    folder.put("run/trace.json", &trace());
    folder.put("run/config.json", br#"{"model_type": "gpt2", "n_layer": 12}"#);
    let ran = xmem(["replay", &folder.path("run"), "--device", "t4-16g"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("config.json"), "{}", ran.stderr);
    assert!(ran.stderr.contains("passed over"), "{}", ran.stderr);
    let checked = xmem(["check", &folder.path("run"), "--device", "t4-16g", "--no-config"]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    // A trace that is cut off may have been one, and a file that is named is what was meant.
    folder.put("run/config.json", br#"{"model_type": "gpt2", "n_la"#);
    assert_eq!(xmem(["replay", &folder.path("run"), "--device", "t4-16g"]).code, 3);
    folder.put("run/config.json", b"{}");
    assert_eq!(xmem(["replay", &folder.path("run/config.json"), "--device", "t4-16g"]).code, 3);
}

#[test]
fn a_trace_without_memory_events_had_figures_in_a_table() {
    let folder = Folder::empty();
    folder.put("runs/job.json", &trace());
    folder.put("runs/silent.json", &trace_without_memory());
    let table = xmem(["replay", &folder.path("runs"), "--device", "t4-16g"]).stdout;
    let row = table.lines().find(|line| line.contains("silent.json")).expect("a row");
    assert!(row.contains("NO VERDICT") && row.contains("no memory events"), "{row}");
    assert!(!row.contains("MiB") && !row.contains("GiB") && !row.contains(" B"), "{row}");
}

#[test]
fn a_trace_without_memory_events_was_blamed_for_shapes() {
    let folder = Folder::empty();
    folder.put("silent.json", &trace_without_memory());
    let answer = answer(&folder.path("silent.json"), &[]);
    assert_eq!(answer["withheld"], json!(["no-memory-events"]));
    assert!(!codes(&answer).contains(&"no-shapes"), "{:?}", codes(&answer));
}

#[test]
fn a_job_that_grows_from_iteration_to_iteration_fitted_without_a_word() {
    let folder = Folder::empty();
    folder.put("trace.json", &growing_trace(3));
    let path = folder.path("trace.json");
    let args = |capacity| ["replay", &path, "--device", "a100-40g", "--capacity", capacity];
    let soon = xmem(args("2GiB"));
    assert!(soon.stdout.starts_with("TIGHT  "), "{}", soon.stdout);
    assert!(soon.stdout.contains("may run out of memory"), "{}", soon.stdout);
    let words = soon.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("grows by 4.00 MiB from iteration to iteration, and 3 were recorded"),
        "{words}"
    );
    assert!(words.contains("runs out of memory after about"), "{words}");
    assert_eq!(soon.code, 0);
    let late = xmem(args("36GiB"));
    assert!(late.stdout.starts_with("FITS  "), "{}", late.stdout);
    assert!(late.stdout.contains("memory grows by"), "{}", late.stdout);
    folder.put("steady.json", &trace());
    assert!(!codes(&answer(&folder.path("steady.json"), &[])).contains(&"memory-grows"));
}
