//! Diagnostics in words.

use xmem::predict::Finding;
use xmem_types::{Diagnostics, Location};

/// The oddities, for a person to read.
pub(crate) fn findings(notes: &Diagnostics) -> Vec<Finding> {
    let place = |at: Location| match at {
        Location::ByteOffset(offset) => format!("byte {offset}"),
        Location::MemoryEvent(row) => format!("memory event {row}"),
        Location::Op(op) => format!("operator {}", op.0),
    };
    let finding = |note: &xmem_types::Diagnostic| Finding {
        code: note.code,
        severity: note.severity,
        message: note.message.clone(),
        place: note.first.map(place),
        count: note.count,
    };
    notes.iter().map(finding).collect()
}
