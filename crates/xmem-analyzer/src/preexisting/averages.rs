//! Averages of the weights that a job keeps beside its model: they are updated after the optimizer's step.

use crate::names::NameKind;
use crate::roles::{Facts, Learned};
use crate::timeline::MarkKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use xmem_types::{Bytes, OpId};

/// Tensors as large as parameters that the operators after a step average with something as large, by size.
///
/// The forms are `lerp_` (`torch.optim.swa_utils`), `mul_` followed by `add_`, a product and a sum that `copy_`
/// writes back, and the same over lists (`_foreach_…`), which name no sizes: they update one tensor for each trained
/// parameter.
pub(super) fn of_round(facts: &Facts<'_>, learned: &Learned) -> Vec<(Bytes, u32)> {
    let parameters = learned.inventory.all();
    let sizes: BTreeSet<Bytes> = parameters.iter().map(|&(size, _)| size).collect();
    let marks = &facts.timeline.marks;
    let mut most = (Bytes::ZERO, Vec::new());
    let is_step = |row: &usize| marks[*row].kind == MarkKind::Step;
    for row in (0..marks.len()).filter(is_step) {
        let after = marks[row + 1..].iter();
        let after =
            after.take_while(|mark| !matches!(mark.kind, MarkKind::Step | MarkKind::Backward));
        let ops = after.filter(|mark| mark.op.is_none()).flat_map(|mark| facts.timeline.ops(mark));
        let (mut found, lists) = in_sequence(facts, ops.copied(), &sizes);
        for &(size, count) in parameters.iter().filter(|_| lists) {
            *found.entry(size).or_default() += count;
        }
        let total = found.iter().map(|(&size, &count)| size * u64::from(count)).sum();
        if total > most.0 {
            most = (total, found.into_iter().collect());
        }
    }
    most.1
}

/// The averages of single operators, and whether there are operators that average whole lists.
fn in_sequence(
    facts: &Facts<'_>,
    ops: impl Iterator<Item = OpId>,
    sizes: &BTreeSet<Bytes>,
) -> (FxHashMap<Bytes, u32>, bool) {
    let program = facts.program;
    let mut found: FxHashMap<Bytes, u32> = FxHashMap::default();
    let mut lists = false;
    // What was scaled in place, and what was the sum of two as large.
    let (mut scaled, mut summed, mut list_scaled) = (None, None, false);
    for op in ops {
        let name = program.op_name(op);
        let size = program.tensor_bytes(op, 0).filter(|size| sizes.contains(size));
        let of_two = size.filter(|_| program.tensor_bytes(op, 1) == size);
        let average = match name {
            "aten::lerp_" => of_two,
            "aten::add_" => of_two.filter(|_| scaled == size),
            "aten::copy_" => of_two.filter(|_| summed == size),
            _ => None,
        };
        if let Some(size) = average {
            *found.entry(size).or_default() += 1;
        }
        lists |= name == "aten::_foreach_lerp_" || list_scaled && name == "aten::_foreach_add_";
        list_scaled = name == "aten::_foreach_mul_";
        scaled = size.filter(|_| name == "aten::mul_");
        summed = of_two.filter(|_| name == "aten::add" && program.kind(op) != NameKind::InPlace);
    }
    (found, lists)
}
