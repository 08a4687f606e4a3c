//! Damaged traces: what is found, and what is answered.

use crate::job::Folder;
use crate::recorded;
use crate::shell::{Ran, xmem};
use serde_json::{Value, json};
use std::path::Path;

/// The events of a recorded trace, to be damaged.
struct Damaged(Value);

impl Damaged {
    fn new() -> Self {
        let packed = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
        let text = zstd::decode_all(&packed[..]).expect("packed");
        Self(serde_json::from_slice(&text).expect("JSON"))
    }

    fn events(&mut self) -> &mut Vec<Value> {
        self.0["traceEvents"].as_array_mut().expect("events")
    }

    /// Changes the events for which `change` is given the category or, of memory events, the name.
    fn each(&mut self, kind: &str, mut change: impl FnMut(usize, &mut Value)) {
        let events = self.events().iter_mut();
        let of_kind = |event: &&mut Value| event["cat"] == kind || event["name"] == kind;
        events.filter(of_kind).enumerate().for_each(|(at, event)| change(at, event));
    }

    /// Removes events.
    fn remove(&mut self, kind: &str, mut unwanted: impl FnMut(usize, &Value) -> bool) {
        let mut at = 0;
        self.events().retain(|event| {
            if event["cat"] != kind && event["name"] != kind {
                return true;
            }
            at += 1;
            !unwanted(at - 1, event)
        });
    }

    fn replay(&self, options: &[&str]) -> Ran {
        let folder = Folder::empty();
        folder.put("trace.json", self.0.to_string().as_bytes());
        let path = folder.path("trace.json");
        xmem([&["replay", &path, "--capacity", "4GiB"], options].concat())
    }
}

#[test]
fn the_plan_of_a_damaged_trace_says_so() {
    let mut trace = Damaged::new();
    trace.remove(MEMORY, |at, _| at % 7 == 3);
    let folder = Folder::empty();
    folder.put("trace.json", trace.0.to_string().as_bytes());
    let ran = xmem(["plan", &folder.path("trace.json"), "--planner", "bestfit"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let (_, notes) = ran.stdout.split_once("Notes\n").expect("notes");
    assert!(notes.contains("serious"), "{notes}");
}

#[test]
fn a_damaged_trace_that_follows_a_plan_is_called_damaged() {
    let mut trace = Damaged::new();
    trace.remove(MEMORY, |at, _| at % 7 == 3);
    let folder = Folder::empty();
    folder.put("trace.json", trace.0.to_string().as_bytes());
    folder.put("list.json", br#"[{"op": "alloc", "id": 1, "size": 512}]"#);
    let [trace, list] = ["trace.json", "list.json"].map(|name| folder.path(name));
    let ran = xmem(["plan", &list, "--planner", "bestfit", "--against", &trace]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
}

const MEMORY: &str = "[memory]";
const OPERATOR: &str = "cpu_op";

fn renumber(trace: &mut Damaged) {
    let numbered = trace.events().iter_mut().filter(|event| event["args"]["Ev Idx"].is_u64());
    for (index, event) in numbered.enumerate() {
        event["args"]["Ev Idx"] = json!(index);
    }
}

fn retotal(trace: &mut Damaged) {
    let mut total = 0;
    trace.each(MEMORY, |_, event| {
        total += event["args"]["Bytes"].as_i64().expect("bytes");
        event["args"]["Total Allocated"] = json!(total);
    });
}

/// Each row: the check that finds the damage, and the damage.
#[test]
fn damage_of_every_kind_withholds_the_verdict_and_is_named() {
    type Damage = fn(&mut Damaged);
    let rows: [(&str, Damage); 26] = [
        ("missing-durations", |t| {
            t.each(OPERATOR, |_, e| drop(e.as_object_mut().expect("event").remove("dur")));
        }),
        ("missing-durations", |t| t.each(OPERATOR, |_, e| e["dur"] = Value::Null)),
        ("missing-durations", |t| t.each(OPERATOR, |_, e| e["dur"] = json!(-1))),
        ("zero-durations", |t| t.each(OPERATOR, |_, e| e["dur"] = json!(0))),
        ("simultaneous-events", |t| t.each(MEMORY, |_, e| e["ts"] = json!(4377048581575.383))),
        ("disordered-times", |t| {
            t.each(OPERATOR, |at, e| e["ts"] = json!(4377048581575.383 - at as f64));
        }),
        ("misnamed-modules", |t| {
            t.each("python_function", |_, e| {
                if e["name"] == "nn.Module: Linear_0" {
                    e["name"] = json!("nn.Module: Linear_1");
                }
            });
        }),
        ("missing-events", |t| t.remove(MEMORY, |at, _| (200..400).contains(&at))),
        ("running-total-differs", |t| {
            t.remove(MEMORY, |at, _| at % 2 == 1);
            renumber(t);
        }),
        ("disordered-events", |t| t.events()[10..700].reverse()),
        ("running-total-differs", |t| {
            t.each(MEMORY, |_, e| {
                e["args"]["Bytes"] = json!(e["args"]["Bytes"].as_i64().expect("bytes") / 1024);
            });
        }),
        ("free-without-allocation", |t| {
            t.each(MEMORY, |_, e| {
                e["args"]["Bytes"] = json!(-e["args"]["Bytes"].as_i64().expect("bytes").abs());
            });
        }),
        ("allocation-at-live-address", |t| t.each(MEMORY, |_, e| e["args"]["Addr"] = json!(64))),
        ("missing-addresses", |t| t.each(MEMORY, |_, e| e["args"]["Addr"] = json!(0))),
        ("free-size-differs", |t| {
            t.each(MEMORY, |_, e| {
                if e["args"]["Bytes"].as_i64() < Some(0) {
                    e["args"]["Bytes"] = json!(-8);
                }
            });
        }),
        ("missing-outputs", |t| {
            t.remove(MEMORY, |_, e| {
                e["args"]["Bytes"].as_i64().is_some_and(|bytes| bytes.abs() > 1 << 20)
            });
            renumber(t);
            retotal(t);
        }),
        ("missing-outputs", |t| {
            t.each(OPERATOR, |_, e| {
                if let Some(dims) = e["args"].get_mut("Input Dims") {
                    *dims =
                        serde_json::from_str(&dims.to_string().replace('2', "3")).expect("JSON");
                }
            });
        }),
        ("impossible-shapes", |t| shapes(t, "9223372036854775808")),
        ("empty-shapes", |t| shapes(t, "0")),
        ("contradictory-arguments", |t| shapes(t, "-7")),
        ("missing-shapes", |t| {
            t.each(OPERATOR, |at, e| {
                if at % 3 == 0 {
                    let index = e["args"]["Ev Idx"].clone();
                    e["args"] = json!({ "Ev Idx": index });
                }
            });
        }),
        ("scattered-threads", |t| {
            t.each(MEMORY, |at, e| {
                if at % 50 == 0 {
                    e["tid"] = json!(4242);
                }
            });
        }),
        ("missing-annotations", |t| {
            t.each("user_annotation", |_, e| e["name"] = json!("something"));
        }),
        ("missing-end", |t| t.remove("Trace", |_, _| true)),
        ("missing-notes", |t| {
            t.each("user_annotation", |at, e| {
                if at == 0 {
                    e["name"] = json!("xmem::iteration 1");
                }
            });
        }),
        ("backward-without-forward", |t| {
            t.each(OPERATOR, |_, e| {
                drop(e["args"].as_object_mut().expect("arguments").remove("Sequence number"));
            });
        }),
    ];
    for (check, damage) in rows {
        let mut trace = Damaged::new();
        damage(&mut trace);
        let ran = trace.replay(&["--format", "json"]);
        let answer = ran.json();
        assert_eq!((ran.code, &answer["verdict"]), (4, &json!("withheld")), "{check}");
        assert_eq!(answer["integrity"]["condition"], "damaged", "{check}");
        let checks = answer["integrity"]["checks"].as_array().expect("checks");
        let found = checks.iter().find(|c| c["check"] == check).expect("a check of this name");
        assert!(found["affected"].as_u64() > Some(0), "{check}: {checks:?}");
        let withheld = answer["withheld"].as_array().expect("reasons");
        assert!(withheld.contains(&json!("damaged-trace")), "{check}: {withheld:?}");
        let notes = answer["diagnostics"].as_array().expect("diagnostics");
        assert!(notes.iter().any(|note| note["code"] == check), "{check}: {notes:?}");
    }
}

fn shapes(trace: &mut Damaged, extent: &str) {
    trace.each(OPERATOR, |_, event| {
        let Some(dims) = event["args"]["Input Dims"].as_array_mut() else { return };
        for dim in dims.iter_mut().filter_map(Value::as_array_mut).flatten() {
            if dim.is_u64() {
                *dim = serde_json::from_str(extent).expect("a number");
            }
        }
    });
}

fn without_a_third_of_the_memory_events() -> Damaged {
    let mut trace = Damaged::new();
    trace.remove(MEMORY, |at, _| (200..400).contains(&at));
    trace
}

#[test]
fn a_damaged_trace_fits_in_no_format_unless_the_answer_says_that_it_is_damaged() {
    let trace = without_a_third_of_the_memory_events();
    let ran = trace.replay(&["-q"]);
    assert!(ran.code == 4 && ran.stdout.starts_with("NO VERDICT"), "{}", ran.stdout);
    assert!(ran.stdout.contains("warning"), "{}", ran.stdout);

    let ran = trace.replay(&[]);
    assert!(ran.stdout.contains("--lenient"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("FITS"), "{}", ran.stdout);

    let ran = trace.replay(&["--lenient", "-q"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stdout.starts_with("WOULD FIT (DAMAGED TRACE)"), "{}", ran.stdout);
    let ran = trace.replay(&["--lenient", "--format", "json"]);
    assert_eq!((ran.code, &ran.json()["verdict"]), (4, &json!("damaged_fits")));
    let ran = trace.replay(&["--lenient", "--capacity", "400MiB", "-q"]);
    assert_eq!(ran.code, 2, "capacity is given twice");
}

#[test]
fn a_damaged_trace_does_not_fit_with_lenient() {
    let trace = without_a_third_of_the_memory_events();
    let folder = Folder::empty();
    folder.put("trace.json", trace.0.to_string().as_bytes());
    let ran =
        xmem(["replay", &folder.path("trace.json"), "--capacity", "400MiB", "--lenient", "-q"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("WOULD NOT FIT (DAMAGED TRACE)"), "{}", ran.stdout);
}

/// A few operators whose shapes differ from those of the iteration before, as when a program depends on
/// its data.
fn doubtful() -> Damaged {
    let mut trace = Damaged::new();
    let mut left = 12;
    let mut operators: Vec<_> = trace.events().iter_mut().collect();
    for event in operators.iter_mut().rev() {
        let views =
            ["aten::view", "aten::t", "aten::detach", "aten::transpose", "aten::as_strided"];
        if event["name"].as_str().is_some_and(|name| views.contains(&name)) && left > 0 {
            let text = event["args"]["Input Dims"].to_string();
            let longer = text.replacen("[[", "[[1,", 1);
            if longer != text {
                event["args"]["Input Dims"] = serde_json::from_str(&longer).expect("JSON");
                let strides = event["args"]["Input Strides"].to_string().replacen("[[", "[[1,", 1);
                event["args"]["Input Strides"] = serde_json::from_str(&strides).expect("JSON");
                left -= 1;
            }
        }
    }
    assert_eq!(left, 0, "the trace has views");
    trace
}

#[test]
fn doubts_lower_the_confidence_and_strict_withholds_the_verdict() {
    let trace = doubtful();
    let ran = trace.replay(&["-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("(doubtful, 1 warning)"), "{}", ran.stdout);
    let answer = trace.replay(&["--format", "json"]).json();
    assert_eq!(answer["range"]["confidence"], "doubtful");
    assert_eq!(answer["warnings"], 1);

    let ran = trace.replay(&["--strict"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stdout.contains("--strict does not accept"), "{}", ran.stdout);
    let answer = trace.replay(&["--strict", "--format", "json"]).json();
    assert_eq!(answer["withheld"], json!(["doubtful-trace"]));
    assert_eq!(trace.replay(&["--strict", "--lenient"]).code, 2);
}

#[test]
fn csv_and_tables_show_warnings_and_confidence() {
    let trace = doubtful();
    let ran = trace.replay(&["--format", "csv"]);
    let mut rows = csv::Reader::from_reader(ran.stdout.as_bytes());
    let header = rows.headers().expect("a header").clone();
    let row = rows.records().next().expect("a row").expect("CSV");
    let cell = |name| &row[header.iter().position(|column| column == name).expect("a column")];
    assert_eq!(cell("warnings"), "1");
    assert_eq!(cell("integrity.condition"), "doubtful");
    assert_eq!(cell("range.confidence"), "doubtful");

    let folder = Folder::empty();
    folder.put("trace.json", trace.0.to_string().as_bytes());
    let ran = xmem(["replay", &folder.path("trace.json"), "--devices", "t4-16g,l4-24g"]);
    for line in ran.stdout.lines().filter(|line| line.contains("FITS")) {
        assert!(line.contains("doubtful"), "{}", ran.stdout);
    }
    assert!(ran.stdout.contains("warnings"), "{}", ran.stdout);
}

#[test]
fn no_recorded_trace_is_damaged_or_doubtful() {
    let trace = recorded::trace("mlp_adam");
    let folder = Path::new(&trace).ancestors().nth(2).expect("the folder of all traces");
    let ran = xmem([
        "replay",
        &folder.display().to_string(),
        "--device",
        "h200-141g",
        "--strict",
        "--format",
        "jsonl",
    ]);
    let answers = ran.lines();
    assert!(answers.len() > 50, "{}", answers.len());
    for answer in &answers {
        let condition = &answer["integrity"]["condition"];
        assert_eq!(condition, "intact", "{}: {}", answer["trace"], answer["diagnostics"]);
    }
    assert_eq!(ran.code, 0);
}
