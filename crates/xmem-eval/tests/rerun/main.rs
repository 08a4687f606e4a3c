//! Recordings of PyTorch's own allocator, run again. See `data/README.md` for their origin.
//!
//! A directory in `XMEM_SNAPSHOTS` is checked as well, if set.
#![expect(clippy::disallowed_methods, reason = "the recordings are files")]

mod differences;
mod exact;

use std::path::{Path, PathBuf};
use xmem_eval::{Rerun, RerunOptions, rerun};
use xmem_snapshot::{Limits, Snapshot};

/// The recordings of this crate, by name.
fn recordings() -> Vec<(String, Snapshot)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let list = within(&folder);
    assert!(list.len() >= 10, "the recordings are missing");
    list
}

/// Those of this crate and those that somebody has besides.
fn all_recordings() -> Vec<(String, Snapshot)> {
    let mut list = recordings();
    if let Some(folder) = std::env::var_os("XMEM_SNAPSHOTS") {
        list.extend(within(&PathBuf::from(folder)));
    }
    list
}

/// Recordings of an H100 (`traces/measured`).
fn measured() -> Vec<(String, Snapshot)> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/measured/h100-80g/snapshots");
    within(&folder)
}

fn within(folder: &Path) -> Vec<(String, Snapshot)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.to_string_lossy().contains(".pickle"))
        .collect();
    paths.sort();
    paths.iter().map(|path| (name(path), read(path))).collect()
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn read(path: &Path) -> Snapshot {
    let bytes = std::fs::read(path).expect("readable");
    let (snapshot, _) = xmem_snapshot::read(&bytes, &Limits::default()).expect("a snapshot");
    snapshot
}

fn recording(name: &str) -> Snapshot {
    let list = recordings();
    let found = list.into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("{name} is missing")).1
}

fn again(snapshot: &Snapshot) -> Rerun {
    rerun(snapshot, &RerunOptions::default()).expect("a history")
}

/// The problem, in a line.
fn complaint(name: &str, rerun: &Rerun) -> String {
    let first = rerun.divergences.first.as_ref();
    let first = first.map(|first| (first.entry, &first.recorded, &first.simulated));
    let counts = rerun.divergences.by_difference;
    format!("{name}: {counts:?} divergences, first {first:?}; end {:?}\n", rerun.end)
}
