//! The estimates of all recorded traces against what PyTorch's CUDA build did (kernels stubbed).
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

use std::path::{Path, PathBuf};
use xmem::{Estimate, find};

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Relative error of a predicted against a recorded value, signed.
fn error(predicted: u64, recorded: i64) -> f64 {
    (predicted as f64 - recorded as f64) / recorded as f64
}

fn recordings() -> Vec<PathBuf> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(traces)
        .expect("traces/ is there")
        .map(|entry| entry.expect("an entry of traces/").path())
        .filter(|folder| folder.join("expected.toml").is_file())
        .collect();
    folders.sort();
    folders
}

#[test]
fn recorded_jobs_are_estimated_within_bounds() {
    let mut reserved_errors = Vec::new();
    for folder in recordings() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(folder.join("expected.toml")).expect("expected.toml");
        let expected: toml::Table = text.parse().expect("TOML");
        let device = expected["device"]["name"].as_str().expect("a device name");
        let peak = |key: &str| expected["peak"][key].as_integer().expect("bytes");
        let (allocated, reserved) = (peak("allocated-bytes"), peak("reserved-bytes"));

        let device = find(device).expect("a known device").clone();
        let answer =
            Estimate::builder(device).build().path(folder.join("trace.json.zst")).expect("a trace");

        let off = error(answer.peak.reserved.get(), reserved);
        let off_mib = (answer.peak.reserved.get() as f64 - reserved as f64).abs() / MIB;
        let small = (reserved as f64) < 150.0 * MIB;
        let close = if small { off_mib <= 20.0 } else { off.abs() <= 0.05 };
        assert!(close, "{name}: peak reserved is off by {:.2} % ({off_mib:.0} MiB)", 100.0 * off);
        let off_allocated = error(answer.peak.allocated.get(), allocated);
        assert!(
            off_allocated.abs() <= 0.06,
            "{name}: peak allocated is off by {:.2} %",
            100.0 * off_allocated
        );
        reserved_errors.push(off.abs());
    }
    assert!(reserved_errors.len() >= 10, "{} recordings are too few", reserved_errors.len());
    reserved_errors.sort_by(f64::total_cmp);
    let median = reserved_errors[reserved_errors.len() / 2];
    assert!(median <= 0.01, "the median error of peak reserved is {:.2} %", 100.0 * median);
}
