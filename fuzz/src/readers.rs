//! What the fuzz targets of device files, lists of operations and options check.

use std::str::FromStr as _;
use xmem::orchestrator::parse_cublas_workspace_config;
use xmem::predict::SimulationSettings;
use xmem::types::printable;
use xmem::{Bytes, Device, Iterations, TorchVersion};
use xmem_report::json::{SegmentDetail, SimulateForm, SimulateWriter, read_operations};

/// Operations of a list that are run; the time of a longer one shows nothing new.
const MAX_OPERATIONS: usize = 2000;

/// Reading a device file ends, and what it describes makes sense.
pub(crate) fn device_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(device) = Device::from_toml(text) {
        assert!(device.available() <= device.memory, "{device:?}");
        std::hint::black_box(format!("{device:?}"));
    }
}

/// Reading a list of operations, running them and writing what happened ends.
pub(crate) fn operations(data: &[u8]) {
    let Ok(list) = read_operations(data) else { return };
    if list.operations.len() > MAX_OPERATIONS {
        return;
    }
    let Ok(mut simulation) = SimulationSettings::default().start(&list) else { return };
    let form = SimulateForm::Lines;
    let mut writer = SimulateWriter::new(
        std::io::sink(),
        form,
        SegmentDetail::End,
        list.operations.len(),
        "fuzzed",
    );
    writer.begin(&simulation).expect("a sink takes everything");
    for operation in &list.operations {
        let Ok(step) = simulation.step(operation) else { return };
        writer.step(&step, &mut simulation).expect("a sink takes everything");
    }
    writer.end(&simulation).expect("a sink takes everything");
    let summary = simulation.summary();
    assert!(summary.peak_allocated <= summary.peak_reserved, "{summary:?}");
}

/// Options and figures as they stand on a command line or in an environment: read by every release, or
/// refused with a message that a terminal can show.
pub(crate) fn options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let text = &*text;
    for minor in [0, 2, 6, 9, 10, 11, 12, 15] {
        let release = TorchVersion::new(2, minor);
        match xmem_simulator::AllocConf::parse(text, release) {
            Ok(conf) => drop(std::hint::black_box(format!("{conf:?}"))),
            Err(error) => shown(&error.to_string()),
        }
    }
    if let Ok(size) = Bytes::from_str(text) {
        // Shown with two decimals at most, it is still about the same.
        let again = Bytes::from_str(&size.to_string()).expect("a size as xmem shows it");
        assert!(again.get().abs_diff(size.get()) <= size.get() / 50, "{size:?} as {size}");
    }
    if let Err(error) = Iterations::from_str(text) {
        shown(&error.to_string());
    }
    if let Err(error) = TorchVersion::from_str(text) {
        shown(&error.to_string());
    }
    let _ = std::hint::black_box(parse_cublas_workspace_config(text));
    if let Err(error) = xmem::find(text) {
        shown(&error.to_string());
    }
}

fn shown(message: &str) {
    let shown = printable(message);
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
}
