//! The PyTorch releases that write such a snapshot.

use crate::Snapshot;
use xmem_types::TorchVersion;

/// The newest release whose snapshots are known.
const NEWEST: TorchVersion = TorchVersion::new(2, 15);

impl Snapshot {
    /// The first and the last release that write the keys of this snapshot. Each key is given with the
    /// first release whose binaries contain its name (`libc10_cuda.so`, `libtorch_python.so`).
    #[must_use]
    pub fn releases(&self) -> (TorchVersion, TorchVersion) {
        releases(self)
    }
}

fn releases(snapshot: &Snapshot) -> (TorchVersion, TorchVersion) {
    let Some(settings) = &snapshot.allocator_settings else {
        let last = if snapshot.device_traces.is_empty() { 13 } else { 0 };
        let last = if last == 13 { TorchVersion::new(1, 13) } else { TorchVersion::new(2, 0) };
        return (TorchVersion::new(1, 13), last);
    };
    let other = |name: &str| settings.other.contains_key(name);
    // The keys of each release, newest first: the first one found says since when, the one before
    // it until when.
    let marks = [
        (13, other("max_round_threshold")),
        (9, other("graph_capture_record_stream_reuse")),
        (3, settings.text.is_some()),
        (2, other("pinned_num_register_threads")),
        (0, true),
    ];
    let found = marks.iter().position(|&(_, present)| present).unwrap_or(marks.len() - 1);
    let first = TorchVersion::new(2, marks[found].0);
    let last = match found.checked_sub(1) {
        Some(newer) => TorchVersion::new(2, marks[newer].0 - 1),
        None => NEWEST,
    };
    // What was recorded here comes from releases of the middle of such a span.
    let usual = TorchVersion::default();
    (first, if first <= usual && usual <= last { usual } else { last })
}
