//! `xmem simulate` on lists written by hand.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem, xmem_with_input};
use expect_test::expect;
use serde_json::{Value, json};
use std::io::Write;

const STEP: &str = include_str!("../../../../docs/schema/xmem.simulate-step.1.schema.json");
const END: &str = include_str!("../../../../docs/schema/xmem.simulate-end.1.schema.json");
const MIB: u64 = 1 << 20;

fn simulate(list: &Value, args: &[&str]) -> Ran {
    let text = serde_json::to_vec(list).expect("JSON");
    xmem_with_input(["simulate", "-"].iter().chain(args), &text)
}

fn alloc(id: u32, mib: u64) -> Value {
    json!({"op": "alloc", "id": id, "size": mib * MIB})
}

fn free(id: u32) -> Value {
    json!({"op": "free", "id": id})
}

fn op(name: &str) -> Value {
    json!({"op": name})
}

/// 30 MiB, 50 MiB in place of it, and 40 MiB more than fit into 100 MiB.
fn too_much() -> Value {
    json!({
        "capacity": 100 * MIB,
        "ops": [alloc(1, 30), free(1), alloc(2, 50), alloc(3, 5), alloc(4, 60), op("empty_cache")],
    })
}

#[test]
fn the_text_answer() {
    let ran = simulate(&too_much(), &[]);
    expect![[r#"
        -, 6 operations: 4 allocs, 1 free, 1 other
          allocator: PyTorch 2.11, ascending addresses
          device: 100.00 MiB of 39.39 GiB available to the allocator

          peak allocated            55.00 MiB
          peak reserved             80.00 MiB
          allocated at end          55.00 MiB
          reserved at end           80.00 MiB   in 2 segments
          retries                           1
          out of memory                     1

        Out of memory: at operation 4, alloc 4: 60.00 MiB
          tried to allocate 60.00 MiB with 20.00 MiB free; 80.00 MiB reserved, 55.00 MiB of it allocated
          25.00 MiB cached, largest free piece 25.00 MiB

        Fragmentation at the end  25.00 MiB (31 %) of reserved memory is free
          25.00 MiB of it in segments that are partly in use; largest free piece 25.00 MiB
    "#]]
    .assert_eq(&ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "a failed allocation is a result");
}

#[test]
fn verbose_text_has_a_line_for_each_operation_and_quiet_text_has_one() {
    let list = json!([
        alloc(1, 3),
        {"op": "alloc", "id": 2, "size": 0, "stream": 3},
        {"op": "record_stream", "id": 1, "stream": 2},
        free(1),
        {"op": "fraction", "value": 0.25},
        {"op": "pool_begin", "pool": 4, "no_split": true},
        {"op": "pool_end", "pool": 4},
        {"op": "capacity", "value": 0},
        alloc(5, 20),
    ]);
    let ran = simulate(&list, &["-v"]);
    let (steps, _) = ran.stdout.split_once("\n\n").expect("a summary follows");
    // A first line at the margin, as expectations lose the indentation that all lines share.
    expect![[r#"
        page:
               #  operation                                 allocated of    reserved
               0  alloc 1: 3.00 MiB                          3.00 MiB of   20.00 MiB  at 0
               1  alloc 2: 0 B on stream 3                   3.00 MiB of   20.00 MiB  no block
               2  record_stream 1 on stream 2                3.00 MiB of   20.00 MiB
               3  free 1                                          0 B of   20.00 MiB
               4  fraction 0.25                                   0 B of   20.00 MiB
               5  pool_begin 4 no_split                           0 B of   20.00 MiB
               6  pool_end 4                                      0 B of   20.00 MiB
               7  capacity 0 B                                    0 B of   20.00 MiB
               8  alloc 5: 20.00 MiB                        20.00 MiB of   20.00 MiB  at 0
    "#]]
    .assert_eq(&format!("page:\n{steps}\n"));
    let quiet = simulate(&list, &["-q"]).stdout;
    assert_eq!(quiet, "peak allocated 20.00 MiB, peak reserved 20.00 MiB, 0 out of memory  -\n");
}

#[test]
fn lines_tell_the_same_as_the_document() {
    let document = simulate(&too_much(), &["--format", "json"]).json();
    let lines = simulate(&too_much(), &["--format", "jsonl"]).lines();
    let (end, steps) = lines.split_last().expect("lines");
    let schema = |text: &str| -> Value { serde_json::from_str(text).expect("schema") };
    let mut trace = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        check(&schema(STEP), step).expect("valid");
        assert_eq!(step["index"], i);
        assert_eq!(step["result"], document["results"][i]);
        trace.extend(step["trace"].as_array().expect("list").iter().cloned());
    }
    check(&schema(END), end).expect("valid");
    assert_eq!(Value::from(trace), document["trace"]);
    for key in ["conf", "torch", "capacity", "total", "allocator", "summary"] {
        assert_eq!(end[key], document[key], "{key}");
    }
    assert_eq!(document["summary"]["first_failure"]["index"], 4);
    assert_eq!(document["results"][4]["oom"], true);
}

#[test]
fn segments_are_listed_as_often_as_asked() {
    for (when, listed) in [("every", [true; 6]), ("none", [false; 6])] {
        let ran = simulate(&too_much(), &["--format", "json", "--segments", when]).json();
        let results = ran["results"].as_array().expect("list");
        let found: Vec<bool> = results.iter().map(|r| r["segments"].is_array()).collect();
        assert_eq!(found, listed, "{when}");
    }
    let ran = simulate(&too_much(), &["--format", "json", "--segments", "end"]).json();
    assert_eq!(ran["results"][4]["segments"], Value::Null);
    let segment = &ran["results"][5]["segments"][1];
    assert_eq!(segment["blocks"], json!([[50 * MIB, 50 * MIB, "active_allocated"]]));
}

#[test]
fn what_the_file_says_counts_until_the_command_line_says_otherwise() {
    let list = json!({
        "conf": "max_split_size_mb:64", "torch": "2.6.0", "capacity": 64 * MIB, "total": 128 * MIB,
        "address_order": "descending", "ops": [alloc(1, 30), alloc(2, 20)],
    });
    let said = |args: &[&str]| {
        let ran = simulate(&list, &[args, &["--format", "json", "--segments", "none"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        let run = ran.json();
        let second = run["results"][1]["addr"].as_i64().map(|addr| addr / MIB as i64);
        let keys = ["conf", "torch", "capacity", "total", "address_order"];
        (keys.map(|key| run[key].to_string()).join(" "), second)
    };
    let (mib64, mib128) = (64 * MIB, 128 * MIB);
    let file = format!(r#""max_split_size_mb:64" "2.6" {mib64} {mib128} "descending""#);
    assert_eq!(said(&[]), (file, Some(-20)));
    let args = ["--alloc-conf", "", "--torch", "2.8", "--capacity", "32MiB", "--total", "1GiB"];
    let given = format!(r#""" "2.8" {} {} "ascending""#, 32 * MIB, 1024 * MIB);
    assert_eq!(said(&[&args as &[_], &["--address-order", "asc"]].concat()), (given, None));
}

#[test]
fn a_bare_list_runs_on_an_ample_device() {
    let run = simulate(&json!([alloc(1, 1)]), &["--format", "json"]).json();
    assert_eq!(run["capacity"], 42_297_786_368_u64);
    assert_eq!(run["total"], 42_297_786_368_u64);
    assert_eq!(run["torch"], "2.11");
    assert_eq!(run["events"], "immediate");
}

#[test]
fn events_are_held_until_the_program_waits() {
    let ops = [
        alloc(1, 30),
        json!({"op": "record_stream", "id": 1, "stream": 1}),
        free(1),
        alloc(2, 30),
        op("synchronize"),
        free(2),
        alloc(3, 30),
    ];
    let reserved = |events: &str| {
        let list = json!({"events": events, "ops": ops});
        let run = simulate(&list, &["--format", "json", "--segments", "none"]).json();
        run["results"][6]["reserved"].as_u64().expect("bytes") / MIB
    };
    assert_eq!(reserved("immediate"), 30);
    assert_eq!(reserved("held"), 60);
}

#[test]
fn every_allocator_carries_out_a_list() {
    for (name, allocated) in [
        ("native", 55),
        ("uncached", 55),
        ("cudaMallocAsync", 55),
        ("tf-bfc", 55),
        // The last chunk of 64 MiB is not split for 50.
        ("tf-bfc-growth", 69),
    ] {
        let ran = simulate(&too_much(), &["--allocator", name, "-f", "json", "--segments", "end"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}");
        let run = ran.json();
        assert_eq!(run["allocator"]["name"], name);
        assert_eq!(run["summary"]["failures"], 1, "{name}");
        assert_eq!(run["summary"]["allocated"], allocated * MIB, "{name}");
    }
}

#[test]
fn compressed_lists_and_files_are_read_and_written() {
    let folder = Folder::new();
    let text = serde_json::to_vec(&too_much()).expect("JSON");
    folder.put("ops.json", &text);
    folder.put("ops.zst", &zstd::encode_all(&text[..], 3).expect("zstd"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).expect("gzip");
    folder.put("ops.gz", &gzip.finish().expect("gzip"));
    let peaks = ["ops.json", "ops.zst", "ops.gz"].map(|name| {
        let (input, output) = (folder.path(name), folder.path("out.json"));
        let ran = xmem(["simulate", &input, "-f", "json", "-o", &output]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{name}");
        let run: Value = serde_json::from_str(&folder.read("out.json")).expect("JSON");
        run["summary"]["peak_reserved"].as_u64().expect("bytes") / MIB
    });
    assert_eq!(peaks, [80; 3]);
    let ran = xmem(["simulate", &folder.path("ops.zst"), "--max-input", "10B"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("--max-input"), "{}", ran.stderr);
}

#[test]
fn keys_that_mean_nothing_are_a_warning() {
    let list = json!({"ops": [], "capcity": 5, "gpu": "a100-40g", "results": [], "color": 1});
    let run = simulate(&list, &["--format", "json"]).json();
    let finding = &run["diagnostics"][0];
    assert_eq!(finding["code"], "unknown-keys");
    let message = finding["message"].as_str().expect("text");
    assert!(message.ends_with("`capcity` (did you mean `capacity`?), `color`"), "{message}");
}

#[test]
fn a_fraction_that_the_program_sets_gives_options_their_effect() {
    let codes = |ops: Value| {
        let list = json!({"conf": "garbage_collection_threshold:0.8", "ops": ops});
        let run = simulate(&list, &["--format", "json"]).json();
        run["diagnostics"].as_array().expect("list").len()
    };
    assert_eq!(codes(json!([alloc(1, 1)])), 1);
    assert_eq!(codes(json!([{"op": "fraction", "value": 0.5}, alloc(1, 1)])), 0);
}

#[test]
fn an_approximation_is_called_one() {
    let ran = simulate(&json!([alloc(1, 1)]), &["--alloc-conf", "backend:cudaMallocAsync"]);
    assert!(ran.stdout.contains("is simulated approximately"), "{}", ran.stdout);
}

/// Each row: the list, and texts that standard error must contain.
#[test]
fn what_is_wrong_with_a_list_is_said_with_its_place() {
    let cases: [(&str, &[&str]); 18] = [
        ("", &["standard input is empty"]),
        ("hello", &["not a list of operations", "line 1, column 1"]),
        ("{}", &["the key `ops`", "is missing"]),
        (r#"{"opps": []}"#, &["did you mean `ops` instead of `opps`"]),
        (r#"{"traceEvents": []}"#, &["`xmem replay`"]),
        (r#"{"ops": 5}"#, &["expected a list of operations"]),
        (r#"{"ops": [], "events": "late"}"#, &["expected `immediate` or `held`"]),
        (r#"[{"op":"free","id":1}"#, &["operation 1", "unexpected end of the text"]),
        (r#"[{"id":1}]"#, &["operation 0", "`op` is missing", "record_stream"]),
        (r#"[[1, 512]]"#, &["expected an operation like"]),
        ("[\n{\"op\":\"alocate\"}]", &["line 2", "`alocate` is not an operation", "mean `alloc`?"]),
        (r#"[{"op":"alloc","id":1,"szie":5}]"#, &["`szie` is not a key", "mean `size`?"]),
        (r#"[{"op":"alloc","id":1}]"#, &["`size` is missing from alloc", r#""size":1048576"#]),
        (r#"[{"op":"alloc","id":1,"size":-1}]"#, &["expected a whole number for `size`"]),
        (r#"[{"op":"alloc","id":4294967296,"size":1}]"#, &["below 4294967296"]),
        (r#"[{"op":"fraction","value":2}]"#, &["from 0 to 1, not 2"]),
        (r#"[{"op":"free","id":7}]"#, &["operation 0", "free 7", "block 7 is not allocated"]),
        (r#"{"ops":[],"conf":"max_split_size:1"}"#, &["did you mean `max_split_size_mb`?"]),
    ];
    for (list, message) in cases {
        let ran = xmem_with_input(["simulate", "-"], list.as_bytes());
        let words: Vec<&str> =
            ran.stderr.split_whitespace().filter(|w| !["│", "|"].contains(w)).collect();
        let flat = words.join(" ");
        assert_eq!(ran.code, 3, "{list}: {flat}");
        assert_eq!(ran.stdout, "", "{list}");
        for text in message {
            assert!(flat.contains(text), "{list}: `{text}` is not in: {flat}");
        }
    }
}

#[test]
fn what_is_wrong_with_the_command_line_has_another_exit_code() {
    for (args, message) in [
        (&["--alloc-conf", "expandable_segments:yes"] as &[_], "True or False"),
        (&["--segments", "end"], "--format json"),
        (&["--torch", "1.9"], "1.13"),
        (&["--address-order", "recorded"], "no recorded addresses"),
    ] {
        let ran = simulate(&json!([]), args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_list_that_breaks_in_the_middle_leaves_no_file() {
    let folder = Folder::new();
    let list = json!([alloc(1, 1), free(1), free(1)]);
    folder.put("ops.json", &serde_json::to_vec(&list).expect("JSON"));
    let before = folder.names();
    let args = ["simulate", &folder.path("ops.json"), "-f", "json", "-o", &folder.path("out.json")];
    let ran = xmem(args);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("operation 2 of"), "{}", ran.stderr);
    assert_eq!(folder.names(), before);
}

#[test]
fn options_of_this_environment_are_hinted_at() {
    let folder = Folder::new();
    folder.put("ops.json", b"[]");
    let mut command = command(["simulate", &folder.path("ops.json")]);
    command.env("PYTORCH_ALLOC_CONF", "max_split_size_mb:64");
    let ran: Ran = command.output().expect("runs").into();
    assert!(
        ran.stderr.starts_with("hint: PYTORCH_ALLOC_CONF is set in this environment"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 0);
}
