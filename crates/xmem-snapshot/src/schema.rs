//! From plain values to a [`Snapshot`]: which key means what, in every PyTorch version.
//!
//! Writers: `_snapshot` in torch/cuda/memory.py over `THCPModule_memorySnapshot`
//! (torch/csrc/cuda/Module.cpp), and `_memory_snapshot_pickled`
//! (torch/csrc/cuda/memory_snapshot.cpp). Before PyTorch 2.0 the file was the bare list of
//! segments.

mod decoder;
mod fields;
mod segments;
mod settings;
mod stacks;
mod traces;

use crate::budget::Budget;
use crate::error::SnapshotError;
use crate::model::Snapshot;
use crate::pickle::{Tree, Value};
use decoder::Decoder;
use xmem_types::{Diagnostics, Location, Severity};

/// Reads the snapshot that `tree` holds.
pub(crate) fn decode(
    tree: &Tree<'_>,
    budget: &mut Budget,
) -> Result<(Snapshot, Diagnostics), SnapshotError> {
    let mut decoder = Decoder::new(tree, budget)?;
    let mut snapshot = Snapshot::default();
    match tree.root {
        Value::List(_) => {
            snapshot.segments = decoder.segments(tree.root, 0)?;
        }
        Value::Dict(_) => document(&mut decoder, &mut snapshot, tree.root)?,
        other => {
            return Err(SnapshotError::Layout {
                path: "the file".to_owned(),
                at: 0,
                problem: format!("holds {}, not a snapshot", other.kind()),
            });
        }
    }
    if tree.trailing > 0 {
        decoder.diagnostics.report("trailing-bytes", Severity::Note, None, || {
            format!("{} bytes after the end of the pickle are ignored", tree.trailing)
        });
    }
    Ok(decoder.finish(snapshot))
}

fn document(
    decoder: &mut Decoder<'_, '_, '_>,
    snapshot: &mut Snapshot,
    root: Value,
) -> Result<(), SnapshotError> {
    let fields = decoder.fields(root, 0)?;
    let at = fields.at;
    let mut segments = None;
    for field in fields {
        match field.key {
            b"segments" => segments = Some(decoder.segments(field.value, at)?),
            b"device_traces" => snapshot.device_traces = decoder.traces(field.value, at)?,
            b"allocator_settings" => {
                snapshot.allocator_settings = Some(decoder.settings(field.value, at)?);
            }
            b"external_annotations" => {
                snapshot.annotations = decoder.annotations(field.value, at)?;
            }
            b"host_segments" | b"host_traces" => {
                let skipped = decoder.elements(field)?.len() as u64;
                decoder.diagnostics.report_many(
                    "host-memory",
                    Severity::Note,
                    Some(Location::ByteOffset(at as u64)),
                    skipped,
                    || "the snapshot also describes pinned host memory, which is not read".into(),
                );
            }
            _ => decoder.unknown("the snapshot", field),
        }
    }
    let Some(segments) = segments else {
        return Err(SnapshotError::Layout {
            path: "the file".to_owned(),
            at,
            problem: "has no key `segments`: is it a memory snapshot?".to_owned(),
        });
    };
    snapshot.segments = segments;
    Ok(())
}
