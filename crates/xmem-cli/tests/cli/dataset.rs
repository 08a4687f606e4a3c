//! `xmem replay --format parquet`: answers as a table in parts.

use crate::job::{Folder, growing_trace, trace, trace_without_memory};
use crate::shell::{Ran, xmem};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use std::collections::BTreeMap;
use std::fs::File;
use walkdir::WalkDir;

/// A folder with three jobs and a letter.
fn place() -> Folder {
    let folder = Folder::empty();
    std::fs::create_dir(folder.path("runs")).expect("created");
    folder.put("runs/a.json", &trace());
    folder.put("runs/b.json", &growing_trace(3));
    folder.put("runs/c.json", &trace_without_memory());
    folder.put("runs/d.json", b"to whom it may concern\n");
    folder
}

fn replay(folder: &Folder, more: &[&str]) -> Ran {
    let (runs, out) = (folder.path("runs"), folder.path("answers"));
    let args = ["replay", &runs, "--format", "parquet", "-o", &out];
    xmem([&args[..], more].concat())
}

/// The parts, by their partition.
fn parts(folder: &Folder) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for entry in
        WalkDir::new(folder.path("answers")).into_iter().map(|entry| entry.expect("listed"))
    {
        if entry.file_type().is_file() {
            let partition = entry.path().parent().and_then(|p| p.file_name()).expect("a partition");
            *parts.entry(partition.to_string_lossy().into_owned()).or_default() += 1;
        }
    }
    parts
}

/// Trace, device, verdict and allocated bytes.
type Row = (String, Option<String>, Option<String>, Option<i64>);

/// The rows of all parts, sorted.
fn rows(folder: &Folder) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in
        WalkDir::new(folder.path("answers")).into_iter().map(|entry| entry.expect("listed"))
    {
        if !entry.file_type().is_file() {
            continue;
        }
        let file =
            SerializedFileReader::new(File::open(entry.path()).expect("opened")).expect("Parquet");
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let at = |name: &str| schema.columns().iter().position(|c| c.name() == name).expect(name);
        let columns = ["trace", "device_name", "verdict", "peak_allocated_bytes"].map(at);
        for row in file.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let text = |column: usize| row.get_string(column).ok().cloned();
            let trace = text(columns[0]).expect("a trace");
            let name = trace.rsplit('/').next().unwrap_or_default().to_owned();
            rows.push((name, text(columns[1]), text(columns[2]), row.get_long(columns[3]).ok()));
        }
    }
    rows.sort();
    rows
}

#[test]
fn rows_are_those_of_csv_and_divided_by_device() {
    let folder = place();
    let ran = replay(&folder, &["--devices", "t4-16g,l4-24g"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let expected =
        [("device=__HIVE_DEFAULT_PARTITION__", 1), ("device=l4-24g", 1), ("device=t4-16g", 1)];
    assert_eq!(parts(&folder), expected.map(|(name, count)| (name.to_owned(), count)).into());
    let csv =
        xmem(["replay", &folder.path("runs"), "--devices", "t4-16g,l4-24g", "--format", "csv"]);
    let mut reader = csv::Reader::from_reader(csv.stdout.as_bytes());
    let headers = reader.headers().expect("a header").clone();
    let mut expected = Vec::new();
    for record in reader.records().map(|record| record.expect("a record")) {
        let cell = |name: &str| {
            let at = headers.iter().position(|header| header == name).expect(name);
            Some(record[at].to_owned()).filter(|text| !text.is_empty())
        };
        let name =
            cell("trace").expect("a trace").rsplit('/').next().unwrap_or_default().to_owned();
        let bytes = cell("peak.allocated_bytes").map(|text| text.parse().expect("a number"));
        expected.push((name, cell("device.name"), cell("verdict"), bytes));
    }
    expected.sort();
    assert_eq!(rows(&folder), expected);
    assert_eq!(expected.len(), 7);
}

#[test]
fn a_run_continues_without_answering_twice_and_retries_errors() {
    let folder = place();
    assert_eq!(replay(&folder, &["--device", "t4-16g"]).code, 3);
    // Without --skip-done nothing is written beside it.
    let again = replay(&folder, &["--device", "t4-16g"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("has answers of an earlier run"), "{}", again.stderr);
    folder.put("runs/d.json", &trace());
    folder.put("runs/e.json", &trace());
    let more = replay(&folder, &["--device", "t4-16g", "--skip-done", "--exit-zero"]);
    assert_eq!(more.code, 0, "{}", more.stderr);
    let found = rows(&folder);
    let names: Vec<&str> = found.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(names, ["a.json", "b.json", "c.json", "d.json", "e.json"]);
    assert!(found.iter().all(|row| row.2.is_some()), "{found:?}");
    let before = parts(&folder);
    let last = replay(&folder, &["--device", "t4-16g", "--skip-done"]);
    assert_eq!((last.code, parts(&folder)), (4, before), "{}", last.stderr);
}

#[test]
fn shards_write_beside_each_other_and_keep_their_errors() {
    let folder = place();
    for shard in ["1/2", "2/2", "1/2", "2/2"] {
        let ran = replay(&folder, &["--device", "t4-16g", "--shard", shard, "--skip-done"]);
        assert!([0, 3, 4].contains(&ran.code), "{}", ran.stderr);
    }
    let found = rows(&folder);
    let names: Vec<&str> = found.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(names, ["a.json", "b.json", "c.json", "d.json"]);
}

#[test]
fn the_place_of_a_table_is_a_folder_and_its_parts_are_tables() {
    let folder = place();
    let runs = folder.path("runs");
    let no_folder = xmem(["replay", &runs, "--device", "t4-16g", "--format", "parquet"]);
    assert_eq!(no_folder.code, 2, "{}", no_folder.stderr);
    folder.put("answers", b"a file");
    let file = replay(&folder, &["--device", "t4-16g"]);
    assert!(file.code == 2 && file.stderr.contains("is a file"), "{}", file.stderr);
    std::fs::remove_file(folder.path("answers")).expect("removed");
    std::fs::create_dir(folder.path("answers")).expect("created");
    let other = "answers/device=__HIVE_DEFAULT_PARTITION__/part-0.parquet";
    std::fs::create_dir_all(folder.path("answers/device=__HIVE_DEFAULT_PARTITION__"))
        .expect("created");
    folder.put(other, b"not Parquet");
    let other = replay(&folder, &["--device", "t4-16g", "--skip-done"]);
    assert!(other.code == 3 && other.stderr.contains("part-0.parquet"), "{}", other.stderr);
    // What somebody else had there was removed.
    assert_eq!(parts(&folder).len(), 1);
    let snapshot = replay(&folder, &["--device", "t4-16g", "--snapshot", "s.pickle"]);
    assert!(snapshot.code == 2 && snapshot.stderr.contains("--snapshot"), "{}", snapshot.stderr);
    let vary = replay(&folder, &["--device", "t4-16g", "--vary", "batch=1..4"]);
    assert!(vary.code == 2 && vary.stderr.contains("XM0412"), "{}", vary.stderr);
    let lines = xmem(["replay", &runs, "--device", "t4-16g", "-f", "jsonl", "-o", "s3://bucket/x"]);
    assert!(lines.code == 2 && lines.stderr.contains("--format parquet"), "{}", lines.stderr);
}
