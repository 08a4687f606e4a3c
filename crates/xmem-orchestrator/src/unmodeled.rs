//! Memory of operators without a CUDA model.
//!
//! An operator that is neither known to request the same on both devices nor has a rule keeps what
//! escapes it; its scratch is left out, as any operator's. On CUDA it may need scratch of its own. The
//! amount is not known; the answer's range assumes that it is at most what the operator keeps, or its
//! scratch on the CPU.

use crate::coverage::{self, Coverage};
use crate::frame::conversions::Owners;
use crate::frame::draft::{Addition, Edits};
use crate::uncertainty::{SizeRange, Uncertainty};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use xmem_analyzer::{Residency, Role};
use xmem_types::{Bytes, OpId, Sym};

/// The memory of one call of an operator without a model, on the CPU.
#[derive(Default)]
struct Made {
    kept: Bytes,
    scratch: Bytes,
}

/// Marks the blocks of operators without a model, and adds the scratch that they may need.
pub(crate) fn mark(edits: &mut Edits<'_, '_>) {
    let profile = edits.profile();
    let known = |text: &str| coverage::of(text) != Coverage::Unknown;
    let unknown: FxHashSet<Sym> =
        profile.symbols().filter(|(_, text)| !known(text)).map(|(sym, _)| sym).collect();
    let owners = Owners::of(profile);
    let mut calls: BTreeMap<OpId, Made> = BTreeMap::new();
    for (id, block) in edits.blocks() {
        if block.residency == Residency::HostOnly || edits.item(id).is_settled() {
            continue;
        }
        let owner = owners.owner(id).filter(|&op| unknown.contains(&profile.op_symbol(op)));
        let Some(op) = owner else { continue };
        let call = calls.entry(op).or_default();
        let size = edits.item(id).size();
        if edits.live(id) {
            edits.mark_unmodeled(id, op);
            call.kept += size;
        } else {
            call.scratch += size;
        }
    }
    for (op, Made { kept, scratch }) in calls {
        let high = kept.max(scratch);
        let range = SizeRange::new(Bytes::ZERO, high, Uncertainty::Operator);
        let (alloc, free) = (edits.before(op), edits.at_end(op));
        let role = Role::Workspace;
        edits.add_uncertain(Addition { size: Bytes::ZERO, alloc, free, role, op }, range);
    }
}
