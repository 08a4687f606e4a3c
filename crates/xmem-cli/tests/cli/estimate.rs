//! `xmem estimate`: graphs of recorded jobs against what PyTorch's CUDA build did, and what is refused.

use crate::job::Folder;
use crate::shell::{Ran, xmem as run};
use expect_test::expect_file;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[path = "../../../../fuzz/src/graph.rs"]
mod fuzzed;

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
fn sizes_that_follow_from_values_are_the_largest_and_refuse_nothing() {
    let ask = |more: &[&str]| {
        xmem(&[&[graph("masked").as_str(), "-d", "t4-16g", "-f", "json"], more].concat())
    };
    let fits = ask(&[]);
    let answer = fits.json();
    assert_eq!((fits.code, &answer["range"]["confidence"]), (0, &Value::from("likely")));
    let notes = answer["diagnostics"].to_string();
    assert!(notes.contains("index.Tensor: at most 4096"), "{notes}");
    // With fewer chosen rows the job might fit.
    let larger = ask(&["--capacity", "40MiB"]);
    assert_eq!(larger.code, 4);
    assert_eq!(larger.json()["withheld"][0], "assumed-sizes");
}

/// What the fuzz target of graphs checks, of a graph of each format, whole and cut off.
#[test]
fn graphs_end_with_an_answer_or_an_error() {
    for name in ["mlp_adam.pt2", "onnx/mlp.torchscript.onnx", "onnx/unet.dynamo.onnx"] {
        let bytes = std::fs::read(traces().join("graphs").join(name)).expect("a graph");
        for end in [bytes.len(), bytes.len() / 2, 100] {
            fuzzed::graph(&bytes[..end]);
        }
    }
}

/// Every model of ONNX of a recorded job, as each exporter wrote it; `traces/graphs/onnx/today.txt` has the errors.
#[test]
fn models_of_onnx_need_what_was_recorded() {
    let folder = traces().join("graphs/onnx");
    let text = std::fs::read_to_string(folder.join("recorded.toml")).expect("the recordings");
    let recorded: toml::Table = text.parse().expect("TOML");
    let files = std::fs::read_dir(&folder).expect("the models").filter_map(|entry| {
        entry.ok()?.file_name().into_string().ok()?.strip_suffix(".onnx").map(str::to_owned)
    });
    let mut names: Vec<String> = files.collect();
    names.sort();
    assert!(names.len() >= 10, "{} models", names.len());
    let mut errors = Vec::new();
    let mut lines =
        vec![format!("{:<36} {:>12} {:>12}", "MiB (error in percent)", "allocated", "reserved")];
    for name in &names {
        let (model, _) = name.split_once('.').expect("a model and an exporter");
        let truth = |key: &str| recorded[model][key].as_integer().expect("a number");
        let batch = truth("batch").to_string();
        let file = folder.join(format!("{name}.onnx")).display().to_string();
        let of_training = ["--training", "--loss", "cross-entropy", "--optimizer", "sgd:momentum"];
        let of_device = ["-d", "t4-16g", "--batch", &batch, "-f", "json"];
        let answer = xmem(&[&[file.as_str()], &of_training[..], &of_device].concat()).json();
        assert_eq!(answer["range"]["confidence"], "likely", "{name}");
        let figure = |key: &str, recorded: &str| {
            let bytes = answer["peak"][key].as_u64().expect("bytes");
            let truth = u64::try_from(truth(recorded)).expect("bytes");
            (format!("{}.{}", bytes >> 20, ((bytes >> 10 & 1023) * 10) >> 10), error(bytes, truth))
        };
        let (allocated, a) = figure("allocated_bytes", "allocated-bytes");
        let (reserved, r) = figure("reserved_bytes", "reserved-bytes");
        lines.push(format!("{name:<36} {allocated:>12} {reserved:>12}  ({a:+.2}, {r:+.2})"));
        assert!(a.abs() <= 3.5, "{name}: {a}");
        errors.push(r);
    }
    assert!(quantile(&errors, 50) <= 0.5, "{errors:?}");
    expect_file![folder.join("today.txt")].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn a_model_of_onnx_says_what_is_assumed_and_what_cannot_be() {
    let folder = Folder::empty();
    let onnx = |name: &str| traces().join(format!("graphs/onnx/{name}.onnx")).display().to_string();
    let model = onnx("resnet18.torchscript");
    let training = ["--training", "--loss", "cross-entropy", "-d", "t4-16g"];
    let with = |file: &str, options: &[&str]| xmem(&[&[file], &training[..], options].concat());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let output = with(&model, &["--notes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for note in [
        "from a model of ONNX that pytorch 2.11.0 wrote",
        "the file leaves the batch size open: it is 1 unless --batch says another",
        "the exporter folded 20 batch normalizations into convolutions",
        "are taken as in place",
        "the file has no dropout",
    ] {
        assert!(words(&output.stdout).contains(note), "{note}: {}", output.stdout);
    }
    let output = with(&model, &["--batch", "8,16"]);
    assert_eq!(output.stdout.lines().count(), 3, "{}", output.stdout);
    assert_eq!(with(&model, &["--freeze", "layer1,layer2", "-q"]).code, 0);
    let says = |ran: &Ran, code: i32, message: &str| {
        let text = words(&ran.stderr.replace('│', " "));
        assert!(ran.code == code && text.contains(message), "{}: {text}", ran.code);
    };
    says(&xmem(&[&model, "-d", "t4-16g"]), 2, "does not say what is done with the model");
    says(&with(&model, &["--length", "9"]), 2, "the length of sequences cannot be changed");
    let gpt2 = onnx("gpt2.dynamo");
    says(&with(&gpt2, &["--length", "9"]), 2, "the graph was exported with fixed sizes");
    let bytes = std::fs::read(&model).expect("the model");
    let cut = folder.path("cut.onnx");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    says(&with(&cut, &[]), 3, "the graph is damaged");
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
    let written = xmem(&[&graph, "-d", "t4-16g", "--batch", "8..40", "--law", &law]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(written.stderr.contains("--law: 33 batch sizes from 8 to 40"), "{}", written.stderr);
    let text = std::fs::read_to_string(&law).expect("written");
    let law: Value = serde_json::from_str(&text).expect("JSON");
    let numbers = |key: &str| -> Vec<u64> {
        law[key].as_array().expect(key).iter().filter_map(Value::as_u64).collect()
    };
    let values = numbers("values");
    assert_eq!((values.len(), law["blocks"]["unmatched"].as_u64()), (33, Some(0)));
    assert_eq!(
        (numbers("recorded"), &numbers("needs_low_bytes")),
        (values.clone(), &numbers("needs_high_bytes"))
    );
    for batch in [8, 23, 31, 40] {
        let at = values.iter().position(|value| *value == batch).expect("a value");
        let asked = xmem(&[&graph, "-d", "t4-16g", "--batch", &batch.to_string(), "-f", "json"]);
        let peak = &asked.json()["peak"];
        let listed = (numbers("allocated_bytes")[at], numbers("reserved_bytes")[at]);
        let known = |key: &str| peak[key].as_u64().expect("a number");
        assert_eq!(listed, (known("allocated_bytes"), known("reserved_bytes")), "{batch}");
    }
}

/// Convolutions, autocast and checkpointing.
#[test]
fn a_law_says_the_largest_batch_that_fits() {
    let folder = Folder::empty();
    let law = folder.path("law.json");
    for (graph, capacity, range) in [
        (graph("resnet18_sgdm"), "900MiB", "2..7"),
        (graph("gpt2_ampbf16_adamw"), "700MiB", "2..6"),
        (graph("qwen3_adamw_ckpt"), "700MiB", "1..4"),
    ] {
        let of = |batch: &str, more: &[&str]| {
            let all = [&[&graph, "--capacity", capacity, "--batch", batch][..], more].concat();
            xmem(&all)
        };
        let searched = of(range, &["-q"]);
        let with_law = of(range, &["--law", &law, "-q"]);
        assert_eq!((&with_law.stdout, with_law.code), (&searched.stdout, searched.code), "{graph}");
        let text = std::fs::read_to_string(&law).expect("written");
        let law: Value = serde_json::from_str(&text).expect("JSON");
        for (at, batch) in law["values"].as_array().expect("values").iter().enumerate() {
            let asked = of(&batch.to_string(), &["-f", "json", "--min-capacity"]).json();
            assert_eq!(law["allocated_bytes"][at], asked["peak"]["allocated_bytes"], "{batch}");
            let needs = &law["needs_bytes"][at];
            assert!(needs.as_u64() >= asked["min_capacity_bytes"].as_u64(), "{batch}: {needs}");
        }
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
