//! Many traces, a line each: how many at a time, CSV, and going on with what is there.

use crate::job::{self, Folder};
use crate::recorded;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use serde_json::Value;
use std::collections::BTreeSet;

const ERROR: &str = include_str!("../../../../docs/schema/xmem.error.1.schema.json");

/// Four good traces among which two are bad.
fn several() -> Folder {
    let folder = Folder::empty();
    for name in ["a.json", "c.json", "e.json"] {
        folder.put(name, &job::trace());
    }
    folder.put("b.json", b"to whom it may concern\n");
    folder.put("d.json", b"");
    folder.put("f.json", &job::trace_without_memory());
    folder
}

fn replay(folder: &Folder, rest: &[&str]) -> Ran {
    let folder = folder.path(".");
    xmem(["replay", folder.as_str(), "--capacity", "4GiB"].iter().chain(rest))
}

fn set(text: &str) -> BTreeSet<&str> {
    text.lines().collect()
}

#[test]
fn the_lines_do_not_depend_on_how_many_traces_are_at_work() {
    let folder = several();
    for format in ["jsonl", "csv"] {
        let with = |jobs| replay(&folder, &["-f", format, "--jobs", jobs]);
        let (one, four) = (with("1"), with("4"));
        assert_eq!(set(&one.stdout), set(&four.stdout), "{format}");
        assert_eq!(one.stdout.lines().count(), 6 + usize::from(format == "csv"));
        assert_eq!((one.code, four.code), (3, 3));
        assert_eq!(one.stderr.lines().collect::<BTreeSet<_>>(), set(&four.stderr), "{format}");
    }
    for format in ["json", "text"] {
        let with = |jobs| replay(&folder, &["-f", format, "--jobs", jobs]).stdout;
        assert_eq!(with("1"), with("4"), "{format}");
    }
}

#[test]
fn shards_have_every_trace_once_and_their_lines_are_those_of_one_run() {
    let folder = several();
    let all = replay(&folder, &["-f", "jsonl"]).stdout;
    let shards = ["1/3", "2/3", "3/3"].map(|shard| {
        let ran = replay(&folder, &["-f", "jsonl", "--shard", shard]);
        assert!(ran.stdout.lines().count() < 6, "{shard}");
        ran.stdout
    });
    let together = shards.concat();
    assert_eq!(together.lines().count(), all.lines().count());
    assert_eq!(set(&together), set(&all));

    // Files of parts, put together, are a file that a run continues: nothing is left to do.
    let file = folder.path("../all.jsonl");
    let (good, _): (Vec<&str>, _) = together.lines().partition(|line| !line.contains("xmem.error"));
    std::fs::write(&file, good.join("\n") + "\n").expect("written");
    let ran = replay(&folder, &["-f", "jsonl", "-o", &file, "--skip-done"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let merged = std::fs::read_to_string(&file).expect("read");
    assert_eq!(set(&merged), set(&all));
    assert!(merged.starts_with(good[0]), "what is done was kept");
}

#[test]
fn a_single_trace_is_in_one_shard_and_the_others_have_nothing_to_do() {
    let folder = Folder::empty();
    folder.put("a.json", &job::trace());
    let trace = folder.path("a.json");
    let count = |shard: &&str| {
        let args = ["replay", &trace, "--capacity", "4GiB", "-f", "jsonl", "--shard", *shard];
        let ran = xmem(args);
        let note = format!("note: no trace of 1 is in part {shard}\n");
        let expected = if ran.stdout.is_empty() { note.as_str() } else { "" };
        assert_eq!((ran.code, ran.stderr.as_str()), (0, expected), "{shard}");
        ran.stdout.lines().count()
    };
    assert_eq!(["1/2", "2/2"].iter().map(count).sum::<usize>(), 1);
}

#[test]
fn one_trace_after_the_other_gives_lines_in_their_order() {
    let folder = several();
    let named = |name: &str| folder.path(name);
    let traces = ["e.json", "b.json", "a.json"].map(named);
    let args = ["replay", "--capacity", "4GiB", "-f", "jsonl", "-j", "1"];
    let ran = xmem(args.into_iter().chain(traces.iter().map(String::as_str)));
    let names: Vec<String> =
        ran.lines().iter().map(|line| line["trace"].as_str().expect("name").to_owned()).collect();
    assert_eq!(names, traces);
}

#[test]
fn an_error_about_a_trace_is_a_line_that_follows_its_schema() {
    let folder = several();
    let schema: Value = serde_json::from_str(ERROR).expect("schema");
    let lines = replay(&folder, &["-f", "jsonl"]).lines();
    let errors: Vec<&Value> = lines.iter().filter(|l| l["schema"] == "xmem.error/1").collect();
    assert_eq!(errors.len(), 2);
    for error in errors {
        check(&schema, error).expect("valid");
    }
}

/// A value of a document by the name of its column, as it stands in CSV.
fn at<'v>(document: &'v Value, column: &str) -> &'v Value {
    column.split('.').fold(document, |value, key| &value[key])
}

#[test]
fn rows_say_what_the_documents_say() {
    let traces = ["mlp_adam", "dcgan_adam"].map(recorded::trace);
    let with = |format: &str| {
        let args = ["replay", &traces[0], &traces[1], "-j", "1", "-f", format];
        xmem(args.into_iter().chain(["--devices", "t4-16g,a100-40g", "--min-capacity"]))
    };
    let (documents, rows) = (with("jsonl").lines(), with("csv"));
    let mut reader = csv::Reader::from_reader(rows.stdout.as_bytes());
    let header = reader.headers().expect("header").clone();
    let records: Vec<_> = reader.records().map(|record| record.expect("record")).collect();
    assert_eq!(records.len(), documents.len());
    for (record, document) in records.iter().zip(&documents) {
        for (column, cell) in header.iter().zip(record) {
            let expected = match at(document, column) {
                Value::Null => String::new(),
                // Options begin with a hyphen, which a spreadsheet takes for a formula.
                Value::String(text) if column == "settings" => format!("'{text}"),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(cell, expected, "{column}");
        }
    }
    let known = |column: &str| at(&documents[0], column) != &Value::Null;
    for column in ["trace", "peak.device_bytes", "range.device_bytes.high", "headroom_bytes"] {
        assert!(header.iter().any(|name| name == column) && known(column), "{column}");
    }
}

#[test]
fn a_row_has_the_place_of_an_out_of_memory_or_the_error() {
    let folder = several();
    folder.put("quoted, \"odd\".json", &job::trace());
    let path = folder.path(".");
    let ran = xmem(["replay", &path, "--capacity", "500MiB", "-f", "csv", "--top", "3"]);
    let mut reader = csv::Reader::from_reader(ran.stdout.as_bytes());
    let header = reader.headers().expect("header").clone();
    let column = |name: &str| header.iter().position(|column| column == name).expect("column");
    let mut seen = BTreeSet::new();
    for record in reader.records() {
        let record = record.expect("record");
        let cell = |name| record.get(column(name)).expect("cell");
        let name = cell("trace").rsplit('/').next().expect("name").to_owned();
        let message = match cell("verdict") {
            "does_not_fit" => {
                assert_eq!(cell("out_of_memory.at.op"), "aten::relu");
                assert!(cell("shortfall_bytes").parse::<u64>().expect("bytes") > 0);
                assert!(cell("settings").contains("--capacity 524288000 --cudnn model --top 3"));
                "short"
            }
            "" => {
                assert!(!cell("error").is_empty());
                assert_eq!(cell("settings"), "");
                "bad"
            }
            other => other,
        };
        seen.insert(format!("{name}: {message}"));
    }
    let expected =
        ["a.json: short", "b.json: bad", "c.json: short", "d.json: bad", "e.json: short"];
    let expected = expected.into_iter().chain(["f.json: withheld", "quoted, \"odd\".json: short"]);
    assert_eq!(seen, expected.map(str::to_owned).collect());
}

#[test]
fn what_is_done_is_not_done_again() {
    for format in ["jsonl", "csv"] {
        let folder = several();
        let out = folder.path("out");
        let whole = replay(&folder, &["-f", format]).stdout;
        let go_on = || replay(&folder, &["-f", format, "-o", &out, "--skip-done", "-j", "1"]);
        let ran = go_on();
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{format}: {}", ran.stderr);
        assert_eq!(set(&folder.read("out")), set(&whole), "{format}");
        // What is read again would fail now; what is bad is tried again.
        for name in ["a.json", "c.json", "e.json", "f.json"] {
            folder.put(name, b"gone");
        }
        folder.put("b.json", &job::trace());
        let ran = go_on();
        assert_eq!(ran.code, 3, "{format}");
        assert!(ran.stderr.contains("d.json") && !ran.stderr.contains("a.json"), "{}", ran.stderr);
        let text = folder.read("out");
        assert_eq!(text.lines().count(), whole.lines().count(), "{format}");
        assert_eq!(text.matches("xmem.error/1").count(), usize::from(format == "jsonl"));
        let (fits, withheld) =
            (text.matches(".json,fits,").count(), text.matches("withheld").count());
        if format == "csv" {
            assert_eq!((fits, withheld), (4, 1), "{text}");
        }
        // With nothing left to do but the bad one, the exit code is still that of them all.
        folder.put("d.json", &job::trace());
        assert_eq!(go_on().code, 4, "{format}");
        let complete = folder.read("out");
        assert_eq!(go_on().code, 4, "{format}");
        assert_eq!(folder.read("out"), complete, "{format}");
    }
}

#[test]
fn a_line_that_was_cut_off_is_done_again() {
    for format in ["jsonl", "csv"] {
        let folder = several();
        let out = folder.path("out");
        let whole = replay(&folder, &["-f", format, "-o", &out, "-j", "1"]);
        assert_eq!(whole.code, 3);
        let whole = folder.read("out");
        let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at).collect();
        let cuts = ends.iter().flat_map(|&end| [end.saturating_sub(9), end]).chain([0, 5]);
        for cut in cuts {
            folder.put("out", &whole.as_bytes()[..cut]);
            let ran = replay(&folder, &["-f", format, "-o", &out, "--skip-done"]);
            assert_eq!(ran.code, 3, "{format} {cut}: {}", ran.stderr);
            assert_eq!(set(&folder.read("out")), set(&whole), "{format} {cut}");
            assert_eq!(folder.read("out").lines().count(), whole.lines().count(), "{cut}");
        }
    }
}

/// Each row: other settings, under which nothing counts as done, and the same settings in another
/// form.
#[test]
fn lines_with_other_settings_do_not_count_and_stay() {
    let folder = Folder::empty();
    folder.put("a.json", &job::trace());
    folder.put("b.json", &job::trace());
    folder.put("gpu.toml", GPU.as_bytes());
    let (here, out, gpu) = (folder.path("."), folder.path("out"), folder.path("gpu.toml"));
    let run = |words: &[&str]| {
        let args = ["replay", &here, "-f", "jsonl", "-o", &out, "--skip-done"];
        let ran = xmem(args.iter().chain(words));
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        folder.read("out").lines().count()
    };
    let mut lines = 0;
    for (words, again) in [
        (&["-d", "t4-16g"] as &[&str], &["--device", "T4-16G", "--top", "10"] as &[&str]),
        (&["-d", "a100-40g"], &["--devices", "a100-40g,t4-16g"]),
        (&["-d", "t4-16g", "--torch", "2.6"], &["--torch", "2.6.0+cu124", "-d", "t4-16g"]),
        (&["-d", "t4-16g", "--alloc-conf", ""], &["--alloc-conf", " ", "-d", "t4-16g"]),
        (
            &["-d", "t4-16g", "--alloc-conf", "expandable_segments:True"],
            &["--alloc-conf=expandable_segments:True", "-d", "t4-16g"],
        ),
        (&["-d", "t4-16g", "--memory-fraction", "0.5"], &["--memory-fraction=.5", "-d", "t4-16g"]),
        (&["-d", "t4-16g", "--zero-grad", "pos0"], &["--zero-grad", "pos0", "-d", "t4-16g"]),
        (&["-d", "t4-16g", "--cudnn", "none"], &["--cudnn", "none", "-d", "t4-16g"]),
        (&["-d", "t4-16g", "--iterations", "1"], &["--iterations", "0..1", "-d", "t4-16g"]),
        (&["-d", "t4-16g", "--min-capacity"], &["--min-capacity", "-d", "t4-16g", "--threads=1"]),
        (&["--capacity", "8GiB"], &["--capacity", "8192MiB", "--exit-zero"]),
        (&["--device-file", &gpu], &["--device-file", &gpu, "--jobs", "1"]),
    ] {
        lines += 2;
        assert_eq!(run(words), lines, "{words:?}");
        assert_eq!(run(again), lines, "{again:?}");
    }
    folder.put("gpu.toml", GPU.replace("mib = 12000", "mib = 12001").as_bytes());
    assert_eq!(run(&["--device-file", &gpu]), lines + 2, "another device in the same file");
}

/// The file of a device, of 12,000 MiB.
pub(crate) const GPU: &str = r#"
[[device]]
name = "my-gpu"
title = "NVIDIA Mine"
[device.memory]
mib = 12000
source = "a test"
[device.context]
mib = 300
source = "a test"
[device.compute-capability]
value = "8.9"
source = "a test"
[device.sms]
value = 48
source = "a test"
[device.max-threads-per-sm]
value = 1536
source = "a test"
"#;

/// Each row: the content of the file, the format, and the error. The file does not change.
#[test]
fn a_file_of_something_else_is_left_alone() {
    let folder = several();
    let out = folder.path("out");
    let csv = replay(&folder, &["-f", "csv"]).stdout;
    let jsonl = replay(&folder, &["-f", "jsonl"]).stdout;
    let other_columns = csv.replacen("trace,verdict", "verdict,trace", 1);
    let old_columns = csv.replacen("range.confidence", "range.outlook", 1);
    let old_schema = jsonl.replacen("xmem.replay/2", "xmem.replay/1", 1);
    let rows = [
        ("dear diary,\ntoday\n", "jsonl", "line 1 was not written by"),
        ("{\"schema\": \"else/1\", \"trace\": \"t\"}\n", "jsonl", "line 1 was not written by"),
        (csv.as_str(), "jsonl", "line 1 was not written by"),
        (jsonl.as_str(), "csv", "columns differ from those"),
        (other_columns.as_str(), "csv", "columns differ from those"),
        (old_columns.as_str(), "csv", "columns differ from those"),
        (old_schema.as_str(), "jsonl", "has schema xmem.replay/1 of another version"),
        (&(csv.clone() + "and so on\n"), "csv", "line 8 was not written by"),
    ];
    for (content, format, message) in rows {
        folder.put("out", content.as_bytes());
        let ran = replay(&folder, &["-f", format, "-o", &out, "--skip-done"]);
        assert_eq!(ran.code, 3, "{message}");
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
        assert_eq!(folder.read("out"), content, "{message}");
    }
}

#[test]
fn wrong_usage_loses_nothing() {
    let folder = several();
    let (here, out) = (folder.path("."), folder.path("out"));
    folder.put("out", b"precious");
    let rows: [(&[&str], &str); 7] = [
        (&["-f", "jsonl", "--skip-done"], "--output"),
        (
            &["-f", "json", "-o", &out, "--skip-done"],
            "add --format jsonl, --format csv or --format parquet",
        ),
        (&["-o", &out, "--skip-done"], "add --format jsonl, --format csv or --format parquet"),
        (&["-f", "csv", "-o", &out, "--skip-done", "-"], "give file names"),
        (&["-f", "csv", "-o", &out, "--jobs", "0"], "--jobs"),
        (&["-f", "jsonl", "-o", &out, "--alloc-conf", "max_split_size:32"], "max_split_size_mb"),
        (&["-f", "jsonl", "-o", &out, "--snapshot", "s.pickle"], "6 traces were given"),
    ];
    for (words, message) in rows {
        let ran = xmem(["replay", here.as_str(), "--capacity", "4GiB"].iter().chain(words));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words:?}");
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
        assert_eq!(folder.read("out"), "precious", "{words:?}");
    }
}

#[test]
fn an_unwritable_folder_is_an_error() {
    let folder = several();
    let nowhere = folder.path("no/such/folder/out");
    let ran = replay(&folder, &["-f", "jsonl", "-o", &nowhere]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("cannot write"), "{}", ran.stderr);
}
