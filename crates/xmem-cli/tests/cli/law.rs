//! `xmem check` of a law, as `xmem fit --law` writes one.

use crate::job::Folder;
use crate::profile::flat;
use crate::schema_check::check;
use crate::shell::{Ran, command};
use serde_json::{Value, json};

const CHECK: &str = include_str!("../../../../docs/schema/xmem.check.1.schema.json");
const LAW: &str = include_str!("../../../../docs/schema/xmem.law.1.schema.json");

const MIB: u64 = 1 << 20;

/// A job that needs 1000 MiB for each sample, of which 190 MiB are context; batches of 1 to 16, of which the even ones may need
/// up to 1000 MiB more.
fn law() -> Value {
    let values: Vec<u64> = (1..=16).collect();
    let column = |of: &dyn Fn(u64) -> u64| values.iter().map(|v| of(*v) * MIB).collect::<Vec<_>>();
    let figures = |bytes: u64| json!({"allocated_bytes": bytes, "reserved_bytes": bytes, "needs_bytes": bytes});
    json!({
        "schema": "xmem.law/1",
        "name": "batch",
        "command": "python train.py --batch-size 8",
        "device": "t4-16g",
        "device_memory_bytes": 15655829504_u64,
        "context_bytes": 190 * MIB,
        "recorded": [1, 8, 16],
        "values": values,
        "allocated_bytes": column(&|v| v * 900),
        "reserved_bytes": column(&|v| v * 1000),
        "needs_bytes": column(&|v| v * 1000 + 190),
        "needs_low_bytes": column(&|v| v * 1000 + 190),
        "needs_high_bytes": column(&|v| v * 1000 + 190 + if v % 2 == 0 && v % 8 > 0 { 1000 } else { 0 }),
        "blocks": {"constant": 1, "polynomial": 1, "interpolated": 0, "unmatched": 0},
        "checks": [{"value": 8, "recorded": figures(8000 * MIB), "predicted": figures(8000 * MIB)}],
        "with_measures": [
            {"measures": "checkpointing", "gpus": 1, "values": [15, 16], "needs_bytes": [14_000 * MIB, 15_000 * MIB]},
            {"measures": "fused,fsdp=2", "gpus": 2, "values": [8, 16], "needs_bytes": [7000 * MIB, 16_000 * MIB]},
        ],
        "notes": [],
    })
}

fn folder() -> Folder {
    let folder = Folder::empty();
    folder.put("job.law.json", law().to_string().as_bytes());
    folder
}

fn run(folder: &Folder, args: &[&str]) -> Ran {
    let mut command = command(["check"].iter().chain(args).copied());
    let command = command.current_dir(folder.path(".")).env("XMEM_SITE", folder.path("none.toml"));
    folder.put("none.toml", b"");
    command.output().expect("runs").into()
}

#[test]
fn the_law_of_the_tests_is_one() {
    let schema: Value = serde_json::from_str(LAW).expect("a schema");
    check(&schema, &law()).expect("the schema holds");
}

#[test]
fn a_value_is_asked_for_and_decided() {
    let folder = folder();
    let schema: Value = serde_json::from_str(CHECK).expect("a schema");
    for (at, device, code, decision, tight_by, need) in [
        ("batch=8", "t4-16g", 0, "fits", None, 8190),
        ("batch=15", "t4-16g", 1, "does_not_fit", None, 15_190),
        ("batch=13", "t4-16g", 0, "fits", None, 13_190),
        ("batch=14", "t4-16g", 0, "tight", Some("may_fail"), 14_190),
        ("batch=7", "rtx2080ti-11g", 0, "fits", None, 7300),
        ("batch=10", "rtx2080ti-11g", 0, "tight", Some("may_fail"), 10_300),
    ] {
        let ran = run(&folder, &["job.law.json", "--at", at, "-d", device, "-f", "json"]);
        assert_eq!(ran.code, code, "{at}: {}{}", ran.stdout, ran.stderr);
        let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        check(&schema, &found).expect("the schema holds");
        let seen = (found["decision"].as_str(), found["tight_by"].as_str());
        assert_eq!(seen, (Some(decision), tight_by), "{at} on {device}");
        assert_eq!(found["need_bytes"], need * MIB, "{at} on {device}");
    }
    let ran = run(&folder, &["job.law.json", "--at", "batch=8", "-d", "t4-16g"]);
    assert!(
        ran.stdout.starts_with("FITS  needs 8.00 GiB of 14.58 GiB on t4-16g"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("job.law.json (batch=8)"), "{}", ran.stdout);
}

#[test]
fn measures_that_were_recorded_to_fit_are_named() {
    let folder = folder();
    let of = |at: &str| run(&folder, &["job.law.json", "--at", at, "-d", "t4-16g"]).stdout;
    let smaller = "a smaller value fits with fused,fsdp=2 over 2 GPUs, recorded with batch=8 (needs 6.84 GiB)";
    let tight = of("batch=15");
    assert!(
        tight.contains("\n  fits with checkpointing, recorded with batch=15 (needs 13.67 GiB)\n"),
        "{tight}"
    );
    assert!(tight.contains(smaller), "{tight}");
    let beyond = of("batch=16");
    assert!(beyond.contains("a smaller value fits with checkpointing, recorded with batch=15"));
    assert!(!of("batch=8").contains("recorded with"));
}

#[test]
fn what_a_law_cannot_answer_is_refused_with_what_to_do() {
    let folder = folder();
    folder.put("broken.law.json", br#"{"schema": "xmem.law/1", "name": "batch"}"#);
    folder.put("trace.json", br#"{"traceEvents": []}"#);
    for (args, code, message) in [
        (&["job.law.json", "-d", "t4-16g"][..], 2, "add the value, for example --at batch=16"),
        (&["job.law.json", "--at", "seq=8", "-d", "t4-16g"], 2, "is a law of batch, not of seq"),
        (&["job.law.json", "--at", "batch=17", "-d", "t4-16g"], 2, "goes from 1 to 16"),
        (&["job.law.json", "--at", "batch", "-d", "t4-16g"], 2, "for example batch=64"),
        (&["job.law.json", "--at", "batch=8", "-d", "a100-40g"], 2, "is a law for t4-16g"),
        (&["broken.law.json", "--at", "batch=8", "-d", "t4-16g"], 3, "cannot read the law"),
        (&["trace.json", "--at", "batch=8", "-d", "t4-16g"], 2, "`trace.json` is not one"),
    ] {
        let ran = run(&folder, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_job_script_names_a_law_and_a_value() {
    let folder = folder();
    folder.put("site.toml", b"[[gpu]]\ndevice = \"t4-16g\"\ngres = [\"t4\"]\n");
    for (value, code) in [("batch=15", 1), ("batch=8", 0)] {
        let script = format!(
            "#!/bin/sh\n#SBATCH --gres=gpu:t4:1\n#XMEM --trace job.law.json --at {value}\nsrun x\n"
        );
        folder.put("train.sh", script.as_bytes());
        let ran = run(&folder, &["--slurm-job", "train.sh", "--site", "site.toml"]);
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    }
    folder.put("train.sh", b"#SBATCH --gres=gpu:t4:1\n#XMEM --trace job.law.json --at eight\n");
    let ran = run(&folder, &["--slurm-job", "train.sh", "--site", "site.toml"]);
    assert!(ran.code == 2 && flat(&ran).contains("line 2: --at needs"), "{}", ran.stderr);
}
