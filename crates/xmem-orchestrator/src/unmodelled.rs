//! What is kept as the CPU had it because nobody knows better.
//!
//! An operator that is neither known to ask for the same on both devices nor has a rule keeps what
//! escapes it; its scratch is left out, as any operator's. On CUDA it may need scratch of its own. How
//! much is not known; that it is no more than what it makes, or than its scratch on the CPU, is the
//! bound that the answer's range assumes.

use crate::coverage::{self, Coverage};
use crate::doubt::{Doubt, SizeRange};
use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use crate::scratch::Owners;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use xmem_analyzer::{Residency, Role};
use xmem_types::{Bytes, Nanos, OpId, Sym};

/// What one call of an unknown operator makes on the CPU.
#[derive(Default)]
struct Made {
    kept: Bytes,
    scratch: Bytes,
}

/// Marks what unknown operators make, and puts in what they may need.
pub(crate) fn mark(draft: &mut Draft<'_>) {
    let profile = draft.profile;
    let known = |text: &str| coverage::of(text) != Coverage::Unknown;
    let unknown: FxHashSet<Sym> =
        profile.symbols().filter(|(_, text)| !known(text)).map(|(sym, _)| sym).collect();
    let owners = Owners::of(profile);
    let mut calls: BTreeMap<OpId, Made> = BTreeMap::new();
    for block in 0..profile.blocks.len() {
        if profile.blocks[block].residency == Residency::HostOnly {
            continue;
        }
        let owner = owners.owner(block).filter(|&op| unknown.contains(&profile.op_symbol(op)));
        let item = &mut draft.items[block];
        let Some(op) = owner.filter(|_| item.rule.is_none() && !item.settled) else { continue };
        let call = calls.entry(op).or_default();
        if item.dropped {
            call.scratch += item.size;
        } else {
            item.unmodelled = Some(op);
            call.kept += item.size;
        }
    }
    for (op, Made { kept, scratch }) in calls {
        let range = SizeRange { low: Bytes::ZERO, high: kept.max(scratch), doubt: Doubt::Operator };
        let end = profile.op_end(op).max(profile.op_start(op) + Nanos(1)) - Nanos(1);
        let new = Addition {
            size: Bytes::ZERO,
            alloc: Position::start(profile.op_start(op)),
            free: Some(Position::end(end)),
            role: Role::Workspace,
            op,
        };
        draft.add_uncertain(new, range, name::LEAF_SCRATCH);
    }
}
