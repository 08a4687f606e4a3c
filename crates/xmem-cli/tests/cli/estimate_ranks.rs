//! `xmem estimate --ranks`: one of several GPUs from the graph of a job for one.

use crate::shell::{Ran, xmem as run};
use expect_test::expect_file;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/graphs/ranks")
}

fn estimate(graph: &str, options: &[&str]) -> Ran {
    let file = folder().join(format!("{graph}.pt2")).display().to_string();
    run(["estimate", file.as_str(), "-d", "a100-40g"].into_iter().chain(options.iter().copied()))
}

fn answer(graph: &str, options: &[&str]) -> Value {
    estimate(graph, &[options, &["-f", "json"]].concat()).json()
}

fn peaks(answer: &Value) -> [u64; 2] {
    ["allocated_bytes", "reserved_bytes"].map(|key| answer["peak"][key].as_u64().expect("bytes"))
}

#[expect(clippy::cast_precision_loss, reason = "percentages of memory")]
fn error(estimated: u64, recorded: u64) -> f64 {
    100.0 * (estimated as f64 / recorded as f64 - 1.0)
}

/// `recorded.toml` has what `job.py` needed on one of so many virtual GPUs; `today.txt` has the errors.
#[test]
fn one_of_several_gpus_needs_what_was_recorded() {
    let text = std::fs::read_to_string(folder().join("recorded.toml")).expect("the recordings");
    let recorded: toml::Table = text.parse().expect("TOML");
    let recordings = recorded["recording"].as_array().expect("a list");
    assert!(recordings.len() >= 12, "{} recordings", recordings.len());
    let mut lines =
        vec![format!("{:<60} {:>10} {:>10}", "error in percent", "allocated", "reserved")];
    for recording in recordings {
        let text = |key: &str| recording[key].as_str().expect("a text");
        let bytes = |key: &str| {
            u64::try_from(recording[key].as_integer().expect("a number")).expect("bytes")
        };
        let options: Vec<&str> = text("estimate").split_whitespace().collect();
        let answer = answer(text("graph"), &options);
        assert_eq!(answer["range"]["confidence"], "likely", "{recording}");
        let [allocated, reserved] = peaks(&answer);
        let a = error(allocated, bytes("allocated-bytes"));
        let r = error(reserved, bytes("reserved-bytes"));
        assert!(a.abs() <= 0.2 && r.abs() <= 3.0, "{recording}: {a} {r}");
        let name = format!("{} {}", text("graph"), text("estimate"));
        lines.push(format!("{:<60} {a:>+10.3} {r:>+10.2}", name.trim_end()));
    }
    expect_file![folder().join("today.txt")].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn the_blocks_of_a_model_are_divided_unless_modules_are_named() {
    for (graph, modules, one) in [
        ("gpt", "--fsdp=layers.*", "--fsdp=layers.0"),
        ("resnet50", "--fsdp=layer1.*,layer2.*,layer3.*,layer4.*", "--fsdp=layer1.0"),
    ] {
        let named = answer(graph, &["--ranks", "4", modules]);
        assert_eq!(peaks(&answer(graph, &["--ranks", "4", "--fsdp"])), peaks(&named), "{graph}");
        // All others are the model's own, which are there at once.
        let single = answer(graph, &["--ranks", "4", one]);
        assert!(peaks(&single)[0] > peaks(&named)[0], "{graph}");
    }
}

#[test]
fn another_number_of_ranks_is_the_same_by_the_graph_and_by_a_what_if() {
    for options in [&["--fsdp"][..], &["--fsdp", "--fsdp-dtype", "bfloat16"], &[]] {
        let asked = answer("gpt", &[&["--ranks", "16"], options].concat());
        let what_if = ["--ranks", "8", "--what-if", "world-size=16"];
        assert_eq!(peaks(&asked), peaks(&answer("gpt", &[&what_if[..], options].concat())));
    }
}

#[test]
fn what_ranks_cannot_be_is_said() {
    for (options, message) in [
        (&["--fsdp"][..], "--ranks <N>"),
        (&["--ranks", "0"], "0"),
        (&["--ranks", "8", "--fsdp=blocks.*"], "no module that the graph calls is `blocks.*`"),
        (&["--ranks", "8", "--fsdp", "--ddp-bucket-view"], "cannot be used with"),
        (&["--ranks", "8", "--fsdp", "--fsdp-dtype", "int8"], "unknown type `int8`"),
    ] {
        let ran = estimate("gpt", options);
        assert_eq!(ran.code, 2, "{options:?}");
        assert!(ran.stderr.contains(message), "{options:?}: {}", ran.stderr);
    }
}
