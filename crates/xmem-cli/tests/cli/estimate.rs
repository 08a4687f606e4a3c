//! `xmem estimate`: graphs of recorded jobs against what PyTorch's CUDA build did, and what is refused.

use crate::job::Folder;
use crate::shell::{Ran, xmem as run};
use expect_test::expect_file;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

fn xmem(args: &[&str]) -> Ran {
    run(["estimate"].into_iter().chain(args.iter().copied()))
}

fn graph(name: &str) -> String {
    traces().join(format!("graphs/{name}.pt2")).display().to_string()
}

/// Peaks by the graph of a case: allocated and reserved bytes.
fn estimated(name: &str) -> (u64, u64) {
    let cudnn = traces().join("cudnn").display().to_string();
    let args = [
        &graph(name),
        "--device",
        "rtx3060-12g",
        "--cudnn",
        &cudnn,
        "--format",
        "json",
        "--exit-zero",
    ];
    let answer = xmem(&args).json();
    let bytes =
        |key: &str| answer["peak"][key].as_u64().unwrap_or_else(|| panic!("{name} has no {key}"));
    (bytes("allocated_bytes"), bytes("reserved_bytes"))
}

/// Peaks of the same job, recorded with PyTorch's CUDA build, kernels stubbed.
fn recorded(name: &str) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(traces().join(name).join("expected.toml")).ok()?;
    let expected: toml::Table = text.parse().expect("TOML");
    let bytes = |key: &str| u64::try_from(expected["peak"][key].as_integer()?).ok();
    Some((bytes("allocated-bytes")?, bytes("reserved-bytes")?))
}

#[expect(clippy::cast_precision_loss, reason = "percentages of memory")]
fn error(estimated: u64, recorded: u64) -> f64 {
    100.0 * (estimated as f64 / recorded as f64 - 1.0)
}

/// The value below which a share of the sizes lie.
fn quantile(errors: &[f64], percent: usize) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes[(sizes.len() - 1) * percent / 100]
}

/// Every graph of a recorded job; `traces/graphs/today.txt` has the errors, so that a change shows.
#[test]
fn graphs_of_recorded_jobs_need_what_was_recorded() {
    let mut names: Vec<String> = std::fs::read_dir(traces().join("graphs"))
        .expect("the graphs")
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".pt2").map(str::to_owned)
        })
        .filter(|name| recorded(name).is_some())
        .collect();
    names.sort();
    assert!(names.len() >= 50, "{} graphs", names.len());
    let mut lines =
        vec![format!("{:<40} {:>10} {:>10}", "error in percent", "allocated", "reserved")];
    let (mut allocated, mut reserved) = (Vec::new(), Vec::new());
    for name in &names {
        let (truth, estimate) = (recorded(name).expect("filtered"), estimated(name));
        let (a, r) = (error(estimate.0, truth.0), error(estimate.1, truth.1));
        lines.push(format!("{name:<40} {a:>+10.3} {r:>+10.2}"));
        allocated.push(a);
        reserved.push(r);
    }
    for percent in [50, 90, 100] {
        let (a, r) = (quantile(&allocated, percent), quantile(&reserved, percent));
        lines.push(format!("{:<40} {a:>10.3} {r:>10.2}", format!("{percent} % within")));
    }
    expect_file![traces().join("graphs/today.txt")].assert_eq(&(lines.join("\n") + "\n"));
    assert!(quantile(&allocated, 50) <= 1.0 && quantile(&allocated, 90) <= 3.0);
    assert!(quantile(&reserved, 50) <= 2.0);
}

#[test]
fn several_batches_are_a_table_and_one_answer_is_likely_at_best() {
    let graph = graph("gpt2_adamw");
    let output = xmem(&[&graph, "-d", "rtx3060-12g", "--batch", "2,4"]);
    assert_eq!(output.stdout.lines().count(), 3, "{}", output.stdout);
    let output = xmem(&[&graph, "-d", "rtx3060-12g", "-f", "json"]);
    assert_eq!((&output.json()["range"]["confidence"], output.code), (&Value::from("likely"), 0));
    assert_eq!(xmem(&[&graph, "--capacity", "150MiB", "-q"]).code, 1);
}

#[test]
fn the_largest_batch_of_a_range_is_the_last_that_fits() {
    let graph = graph("gpt2_adamw");
    let of = |batch: &str| xmem(&[&graph, "--capacity", "700MiB", "--batch", batch, "-q"]);
    let range = of("2..64");
    let largest = range.stdout.trim_end().strip_prefix("largest batch that fits: ");
    let largest: u32 =
        largest.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{}", range.stdout));
    assert!((2..64).contains(&largest), "{largest}");
    assert_eq!((range.code, of(&largest.to_string()).code), (0, 0));
    assert_eq!(of(&(largest + 1).to_string()).code, 1);
    let none = xmem(&[&graph, "--capacity", "150MiB", "--batch", "2..4", "-q"]);
    assert_eq!((none.stdout.as_str(), none.code), ("no batch from 2 to 4 fits\n", 1));
}

#[test]
fn a_law_has_the_memory_of_any_batch_of_the_range() {
    let folder = Folder::empty();
    let (law, graph) = (folder.path("law.json"), graph("mlp_adam"));
    let written = xmem(&[&graph, "-d", "t4-16g", "--batch", "8..40", "--law", &law, "-q"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let text = std::fs::read_to_string(&law).expect("written");
    let law: Value = serde_json::from_str(&text).expect("JSON");
    let numbers = |key: &str| -> Vec<u64> {
        law[key].as_array().expect(key).iter().filter_map(Value::as_u64).collect()
    };
    let values = numbers("values");
    assert_eq!((values.len(), law["blocks"]["unmatched"].as_u64()), (33, Some(0)));
    // Of sizes that were acted and of others.
    for batch in [8, 23, 31, 40] {
        let at = values.iter().position(|value| *value == batch).expect("a value");
        let asked = xmem(&[&graph, "-d", "t4-16g", "--batch", &batch.to_string(), "-f", "json"]);
        let peak = &asked.json()["peak"];
        let listed = (numbers("allocated_bytes")[at], numbers("reserved_bytes")[at]);
        let known = |key: &str| peak[key].as_u64().expect("a number");
        assert_eq!(listed, (known("allocated_bytes"), known("reserved_bytes")), "{batch}");
    }
}

#[test]
fn the_trace_of_a_graph_is_read_by_other_commands() {
    let folder = Folder::empty();
    let trace = folder.path("acted.json");
    let from_graph =
        xmem(&[&graph("mlp_adam"), "-d", "rtx3060-12g", "--trace", &trace, "-f", "json"]).json();
    let replayed = run(["replay", &trace, "-d", "rtx3060-12g", "-f", "json"]).json();
    assert_eq!(from_graph["peak"], replayed["peak"]);
}

#[test]
fn what_is_no_graph_or_says_too_little_is_refused() {
    let folder = Folder::empty();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let says = |args: &[&str], code: i32, message: &str| {
        let output = xmem(args);
        let text = output.stderr.replace("\n  │ ", " ").replace("\n        ", " ");
        assert_eq!(output.code, code, "{text}");
        assert!(text.contains(message), "{text}");
    };
    says(&[&file("text.pt2", b"no archive"), "-d", "t4-16g", "--inference"], 3, "not a graph");
    says(
        &[&file("cut.pt2", b"PK\x03\x04"), "-d", "t4-16g", "--inference"],
        3,
        "cannot read the archive",
    );
    says(&[&graph("missing"), "-d", "t4-16g", "--inference"], 3, "cannot read");
    let known = graph("mlp_adam");
    says(&[&known, "-d", "t4-16g", "--optimizer", "adamm"], 2, "unknown optimizer `adamm`");
    says(&[&known, "-d", "t4-16g", "--dtype", "int8"], 2, "unknown type `int8`");
    says(
        &[&known, "-d", "t4-16g", "--length", "9"],
        2,
        "the length of sequences cannot be changed",
    );
    says(
        &[&known, "-d", "t4-16g", "--batch", "1,2", "--trace", "x.json"],
        2,
        "there are 2 batch sizes",
    );
    says(
        &[&known, "-d", "t4-16g", "--batch", "1..4,8"],
        2,
        "a range of batch sizes is given alone",
    );
    says(&[&known, "-d", "t4-16g", "--batch", "4..1"], 2, "the range ends before it begins");
    says(&[&known, "-d", "t4-16g", "--law", "x.json"], 2, "--law needs a range of batch sizes");
}
