//! The metadata that `xmem profile` writes into a trace: it follows its schema, is read without
//! errors, and is shown.

use crate::schema_check::check;
use serde_json::Value;
use xmem::{Job, ReadOptions};
use xmem_report::json::{self, InspectDocument};
use xmem_report::text::{self, Color, Style};

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.recording.1.schema.json");
const INSPECT: &str = include_str!("../../../../docs/schema/xmem.inspect.2.schema.json");
const EXAMPLE: &str = include_str!("recording.json");

fn job() -> Job {
    let trace = format!(r#"{{"xmem_recording": {EXAMPLE}, "traceEvents": []}}"#);
    Job::from_bytes(trace.as_bytes(), &ReadOptions::default()).expect("a trace")
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_recording_follows_its_schema() {
    let (schema, example) = (parse(SCHEMA), parse(EXAMPLE));
    check(&schema, &example).expect("valid");
    let known = schema["properties"].as_object().expect("an object");
    for key in example.as_object().expect("an object").keys() {
        assert!(known.contains_key(key), "`{key}` is not in the schema");
    }
    for (pointer, wrong) in [
        ("/schema", Value::from("xmem.recording.2")),
        ("/tensors/0/kind", Value::from("cache")),
        ("/optimizers/0/implementation", Value::from(7)),
        ("/tensors/0/storage/address", Value::from(7)),
    ] {
        let mut broken = example.clone();
        *broken.pointer_mut(pointer).expect("present") = wrong;
        check(&schema, &broken).expect_err(pointer);
    }
}

#[test]
fn what_follows_the_schema_is_read_and_shown() {
    let job = job();
    let codes: Vec<&str> = job.diagnostics().iter().map(|d| d.code).collect();
    assert!(
        !codes.iter().any(|c| matches!(*c, "recording-field" | "recording-unknown")),
        "{codes:?}"
    );
    assert!(codes.contains(&"recording-cut-short"), "{codes:?}");
    let (facts, findings) = (job.facts(), job.findings());
    let document = parse(&json::pretty(&InspectDocument::new("t.json", facts, &findings)));
    check(&parse(INSPECT), &document).expect("valid");
    let recording = &document["recording"];
    for (pointer, shown) in [
        ("/torch", Value::from("2.11.0+cu130")),
        ("/reported_device", Value::from("a100-40g")),
        ("/iterations/count", Value::from(3)),
        ("/ended/reason", Value::from("exception")),
        ("/models/0/modules", Value::from(2)),
        ("/models/0/parameters", Value::from(2)),
        ("/models/0/parameter_bytes", Value::from(2048)),
        ("/optimizers/0/implementation", Value::from("fused")),
        ("/batch_size", Value::from(32)),
        ("/autocast/0", Value::from("bfloat16")),
    ] {
        assert_eq!(recording.pointer(pointer), Some(&shown), "{pointer}");
    }
    assert_eq!(document.pointer("/rank/rank"), Some(&Value::from(3)));
    assert_eq!(document.pointer("/rank/communicators/0"), Some(&Value::from(8)));
    let page =
        text::inspect("t.json", facts, &findings, &Style { color: Color::Plain, width: 100 });
    for line in [
        "  rank                3 of 8, 2 nodes, NCCL 2.28.9, process groups of 8, 4 ranks, communicators of 8 ranks\n",
        "  recorded with       torch 2.11.0+cu130, Python 3.11.7, xmem 0.1.0\n",
        "  reported GPU        a100-40g\n",
        "  recorded            3 optimizer steps, incomplete: exception (RuntimeError: no)\n",
        "  models              job.Net (2.00 KiB in 2 parameters)\n",
        "  optimizer settings  torch.optim.adamw.AdamW (1 tensors, fused), torch.optim.sgd.SGD (2 tensors)\n",
        "  batch size          32\n",
        "  recorder notes      torch.compile: runs eagerly\n",
    ] {
        assert!(page.contains(line), "{page}");
    }
}
