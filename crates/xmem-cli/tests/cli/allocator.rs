//! The allocator that a replay simulates, and its description.

use crate::job::{self, Folder};
use crate::shell::{Ran, command, xmem};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// The hand-made job with more metadata at the top level of its trace.
fn job_that_says(metadata: &[(&str, &str)]) -> Vec<u8> {
    let mut trace: Value = serde_json::from_slice(&job::trace()).expect("JSON");
    for (key, value) in metadata {
        trace[*key] = json!(value);
    }
    serde_json::to_vec(&trace).expect("JSON")
}

fn allocator(ran: &Ran) -> Value {
    ran.json()["target"]["allocator"].clone()
}

#[test]
fn options_reach_the_answer() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let replay = |more: &[&str]| {
        let args = ["replay", &job, "-d", "t4-16g", "-f", "json"];
        xmem(args.iter().chain(more))
    };
    let usual = replay(&[]);
    assert_eq!(
        allocator(&usual),
        json!({
            "name": "native", "approximate": false, "torch": "2.11", "torch_from": "default",
            "conf": "", "conf_from": "default", "memory_fraction": null, "address_order": "driver",
        })
    );
    let ran = replay(&["--torch", "2.6", "--alloc-conf", "expandable_segments:True"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(allocator(&ran)["torch_from"], "command_line");
    assert_eq!(allocator(&ran)["conf"], "expandable_segments:True");
    // Three blocks of 8, 64 and 8 MiB on pages of 20 MiB, where segments have 20 and 64 MiB.
    assert_eq!(usual.json()["peak"]["reserved_bytes"], 84 * MIB);
    assert_eq!(ran.json()["peak"]["reserved_bytes"], 80 * MIB);
}

#[test]
fn every_allocator_can_be_chosen() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    for (name, reserved, code) in [
        ("native", 84, None),
        ("uncached", 80, Some("uncached-figures")),
        ("cudaMallocAsync", 96, Some("allocator-approximate")),
        // What is left of 14930 MiB without context and TensorFlow's reserve for Turing.
        ("tf-bfc", 14_930 - 190 - 1050, Some("allocator-of-tensorflow")),
        ("tf-bfc-growth", 8 + 128, Some("allocator-of-tensorflow")),
    ] {
        let ran = xmem(["replay", &job, "-d", "t4-16g", "-f", "json", "--allocator", name]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}");
        let answer = ran.json();
        assert_eq!(answer["target"]["allocator"]["name"], name);
        assert_eq!(answer["peak"]["reserved_bytes"], reserved * MIB, "{name}");
        let codes: Vec<&str> = answer["diagnostics"]
            .as_array()
            .expect("list")
            .iter()
            .filter_map(|finding| finding["code"].as_str())
            .collect();
        assert!(code.is_none_or(|code| codes.contains(&code)), "{name}: {codes:?}");
    }
}

#[test]
fn an_approximation_is_called_one() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let ran = xmem(["replay", &job, "-d", "t4-16g", "--alloc-conf", "backend:cudaMallocAsync"]);
    for text in ["with cudaMallocAsync (approximate)", "is simulated approximately"] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
    let args = ["replay", &job, "-d", "t4-16g", "-f", "json", "--allocator", "cudamallocasync"];
    assert_eq!(allocator(&xmem(args))["approximate"], true);
}

#[test]
fn what_the_trace_says_counts_until_the_command_line_says_otherwise() {
    let folder = Folder::new();
    let metadata =
        [("torch_version", "2.6.0+cpu"), ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")];
    folder.put("said.json", &job_that_says(&metadata));
    let said = folder.path("said.json");
    let replay = |more: &[&str]| {
        let args = ["replay", &said, "-d", "t4-16g", "-f", "json"];
        let ran = xmem(args.iter().chain(more));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let answer = ran.json();
        let setup = &answer["target"]["allocator"];
        assert_eq!(answer["target"]["torch"], setup["torch"]);
        let text = |key: &str| setup[key].as_str().expect("text").to_owned();
        [text("torch"), text("torch_from"), text("conf"), text("conf_from")].join(" ")
    };
    assert_eq!(replay(&[]), "2.6 input expandable_segments:True input");
    assert_eq!(replay(&["--torch", "2.8"]), "2.8 command_line expandable_segments:True input");
    assert_eq!(replay(&["--alloc-conf", ""]), "2.6 input  command_line");
    let text = xmem(["replay", &said, "-d", "t4-16g"]).stdout;
    let line = "allocator: PyTorch 2.6 (from the trace), expandable_segments:True (from the trace)";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_the_trace_says_wrongly_is_a_warning() {
    let folder = Folder::new();
    for (metadata, warning) in [
        (&[("PYTORCH_CUDA_ALLOC_CONF", "max_split_size:64")], "allocator-options-unusable"),
        (&[("torch_version", "nightly")], "torch-version-unreadable"),
        (&[("torch_version", "1.7.1")], "torch-version-too-old"),
    ] {
        folder.put("said.json", &job_that_says(metadata));
        let ran = xmem(["replay", &folder.path("said.json"), "-d", "t4-16g", "-f", "json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let answer = ran.json();
        let codes = answer["diagnostics"].as_array().expect("list").iter();
        let found = codes.filter_map(|f| f["code"].as_str()).any(|code| code == warning);
        assert!(found, "{warning}: {}", answer["diagnostics"]);
    }
}

#[test]
fn options_of_this_environment_are_not_the_jobs_but_are_hinted_at_once() {
    let folder = Folder::new();
    folder.put("said.json", &job_that_says(&[("PYTORCH_CUDA_ALLOC_CONF", "")]));
    let (job, said) = (folder.path("job.json"), folder.path("said.json"));
    let run = |args: &[&str]| -> Ran {
        let mut command = command(["replay", "-d", "t4-16g"].iter().chain(args));
        command.env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
        command.output().expect("runs").into()
    };
    let ran = run(&[&job, &job]);
    assert_eq!(ran.stderr.matches("hint: ").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--alloc-conf 'expandable_segments:True'"), "{}", ran.stderr);
    assert_eq!(ran.stdout, xmem(["replay", "-d", "t4-16g", &job, &job]).stdout);
    for quiet in [&[&job, "--alloc-conf", ""] as &[&str], &[&job, "-q"], &[&said]] {
        assert_eq!(run(quiet).stderr, "", "{quiet:?}");
    }
}

#[test]
fn the_smallest_capacity_counts_with_the_memory_fraction() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let with = |capacity: &str| {
        let args = ["replay", &job, "--memory-fraction", "0.1", "--capacity", capacity];
        xmem(args.into_iter().chain(["--min-capacity", "-f", "json"]))
    };
    let answer = with("600MiB").json();
    let least = answer["min_capacity_bytes"].as_u64().expect("integer");
    // 80 MiB are a tenth of 800 MiB, which the context of 450 MiB fits into as well.
    assert!((800 * MIB..845 * MIB).contains(&least), "{least}");
    assert_eq!(with(&least.to_string()).code, 0);
    assert_eq!(with(&(least - 20 * MIB).to_string()).code, 1);
    let needed = answer["out_of_memory"]["needed_bytes"].as_u64().expect("integer");
    assert_eq!(with(&needed.to_string()).code, 0);
}
