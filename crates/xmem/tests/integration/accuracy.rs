//! The estimates of all recorded traces against what PyTorch's CUDA build did (kernels stubbed).
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::orchestrator::OptimizerImpl;
use xmem::{Estimate, find};

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Relative error of a predicted against a recorded value, signed.
fn error(predicted: u64, recorded: i64) -> f64 {
    (predicted as f64 - recorded as f64) / recorded as f64
}

/// Cases of set `rules` that are known to be further off than the bounds, and why.
const BEYOND: [(&str, &str); 1] = [(
    "unet_adam",
    "cuDNN takes a transform engine with a large workspace, which the table does not foresee",
)];

/// A recorded case that may be looked at while rules are written.
struct Case {
    folder: PathBuf,
    name: String,
    meta: toml::Table,
}

fn table(path: &Path) -> toml::Table {
    let text = std::fs::read_to_string(path).expect("readable");
    text.parse().expect("TOML")
}

/// The untouched cases are judged by `cargo xtask accuracy` alone.
fn recordings() -> Vec<Case> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut cases: Vec<Case> = std::fs::read_dir(traces)
        .expect("traces/ is there")
        .map(|entry| entry.expect("an entry of traces/").path())
        .filter(|folder| folder.join("expected.toml").is_file())
        .map(|folder| Case {
            name: folder.file_name().expect("a name").to_string_lossy().into_owned(),
            meta: table(&folder.join("meta.toml")),
            folder,
        })
        .filter(|case| case.meta.get("set").and_then(toml::Value::as_str) != Some("untouched"))
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// The implementation of a case's optimizer on the GPU, where it is not the default.
fn optimizer(case: &Case) -> Option<OptimizerImpl> {
    Some(match case.meta.get("optimizer-impl")?.as_str()? {
        "fused" => OptimizerImpl::Fused,
        "for-loop" => OptimizerImpl::ForLoop,
        other => panic!("{}: unknown optimizer-impl {other}", case.name),
    })
}

/// The value that nine of ten do not exceed.
fn ninth_of_ten(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() * 9).div_ceil(10) - 1]
}

#[test]
fn recorded_jobs_are_estimated_within_bounds() {
    let (mut reserved_errors, mut allocated_errors) = (Vec::new(), Vec::new());
    for case in recordings() {
        let name = &case.name;
        let expected = table(&case.folder.join("expected.toml"));
        let device = expected["device"]["name"].as_str().expect("a device name");
        let peak = |key: &str| expected["peak"][key].as_integer().expect("bytes");
        let (allocated, reserved) = (peak("allocated-bytes"), peak("reserved-bytes"));

        let mut builder = Estimate::builder(find(device).expect("a known device").clone())
            .convolutions(Arc::new(FittedModel));
        if let Some(optimizer) = optimizer(&case) {
            builder = builder.optimizer(optimizer);
        }
        let answer = builder.build().path(case.folder.join("trace.json.zst")).expect("a trace");

        let off = error(answer.memory.peak.reserved.get(), reserved).abs();
        let off_mib = (answer.memory.peak.reserved.get() as f64 - reserved as f64).abs() / MIB;
        let off_allocated = error(answer.memory.peak.allocated.get(), allocated).abs();
        reserved_errors.push(off);
        allocated_errors.push(off_allocated);
        if BEYOND.iter().any(|(known, _)| known == name) {
            continue;
        }
        // Below 1 GiB, one segment of 20 MiB more or less is no news.
        let one_segment = (reserved as f64) < 1024.0 * MIB && off_mib <= 20.0;
        assert!(
            one_segment || off <= 0.06,
            "{name}: peak reserved is off by {:.2} % ({off_mib:.0} MiB)",
            100.0 * off
        );
        assert!(
            off_allocated <= 0.06,
            "{name}: peak allocated is off by {:.2} %",
            100.0 * off_allocated
        );
    }
    let count = reserved_errors.len();
    assert!(count >= 30, "{count} recordings are too few");
    reserved_errors.sort_by(f64::total_cmp);
    allocated_errors.sort_by(f64::total_cmp);
    for (what, value, bound) in [
        ("median of peak reserved", reserved_errors[count / 2], 0.01),
        ("90th percentile of peak reserved", ninth_of_ten(&reserved_errors), 0.03),
        ("median of peak allocated", allocated_errors[count / 2], 0.005),
    ] {
        assert!(value <= bound, "{what}: {:.2} %, more than {:.1} %", 100.0 * value, 100.0 * bound);
    }
}
