//! A copy between host and device whose sides differ in type, or in the order of their elements, is not one
//! transfer: its device side must be contiguous. If it is not, a buffer on the device takes the elements in
//! order. The CPU copies element by element. Types are converted on the host, unless the copy does not
//! block: then the device converts, in a separate buffer.
//!
//! A recording of `xmem profile` marks what is moved, after the copy that moved it.

use crate::frame::context::Context;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Edits;
use crate::rule::Rule;
use std::collections::BTreeSet;
use xmem_analyzer::{Profile, Role, TensorArg, Transfer, TransferKind};
use xmem_types::{BlockId, Nanos, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "host-copy",
        summary: "a copy between host and device that changes type or order goes through a contiguous buffer on the device",
        source: "aten/src/ATen/native/cuda/Copy.cu `copy_requires_temporaries`, `copy_kernel_cuda`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(buffers),
};

/// Operators that make a tensor and copy another into it.
const COPYING: &[&str] = &["aten::_to_copy", "aten::clone"];

fn buffers(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let profile = cx.profile;
    let mut moved: BTreeSet<BlockId> = BTreeSet::new();
    let mut starts = None;
    for transfer in &profile.transfers {
        // Only the first mark of a block is that of a copy.
        let Some(block) = transfer.block.filter(|&block| moved.insert(block)) else { continue };
        let Some(copy) = copy_into(profile, block) else { continue };
        let sizes = sizes(profile, copy, transfer.kind);
        if sizes.is_empty() {
            continue;
        }
        let starts = starts.get_or_insert_with(|| starts_of_operators(profile));
        if !is_last(profile, starts, copy, transfer) {
            continue;
        }
        let at = match transfer.kind {
            TransferKind::ToHost => edits.before(copy),
            _ if edits.live(block) => edits.after(block),
            _ => continue,
        };
        let mut plan = edits.plan(copy, at, Role::Workspace);
        let pieces: Vec<_> = sizes.into_iter().map(|size| plan.take(size)).collect();
        plan.free_all(pieces);
        plan.finish();
    }
}

/// The copy in the operator that made a block.
fn copy_into(profile: &Profile, block: BlockId) -> Option<OpId> {
    let made = profile.block(block).op?;
    let copying = |&op: &OpId| COPYING.contains(&profile.op_name(op));
    let around = profile.tree.path(made).take(3).find(copying)?;
    profile.tree.children(around).find(|&op| profile.op_name(op) == "aten::copy_")
}

/// The buffers that a copy needs on the device, in the order in which they are made.
fn sizes(profile: &Profile, copy: OpId, kind: TransferKind) -> Vec<Count> {
    let arguments = profile.arguments(copy);
    let (Some(to), Some(from)) = (arguments.tensor(0), arguments.tensor(1)) else {
        return Vec::new();
    };
    let converts = to.dtype != from.dtype;
    if !converts && same_order(to, from) {
        return Vec::new();
    }
    let waits = arguments.value(2) != Some("True");
    let elements = Count::elements(to);
    let ordered = |tensor: &TensorArg| (!is_contiguous(tensor)).then(|| elements.of(tensor.dtype));
    match (kind, waits || !converts) {
        (TransferKind::ToHost, true) => ordered(from).into_iter().collect(),
        (TransferKind::ToHost, false) => {
            let order = (!is_contiguous(from)).then(|| elements.of(to.dtype));
            [Some(elements.of(to.dtype)), order].into_iter().flatten().collect()
        }
        (_, true) => ordered(to).into_iter().collect(),
        (_, false) => vec![elements.of(from.dtype)],
    }
}

/// Returns whether both tensors have their elements in one order without gaps. The one that the copy
/// fills has no gaps, as it is new.
fn same_order(to: &TensorArg, from: &TensorArg) -> bool {
    let strides = |tensor: &TensorArg| -> Vec<i64> {
        let dims = tensor.dims.iter().zip(&tensor.strides).filter(|(dim, _)| **dim != 1);
        dims.map(|(_, &stride)| stride).collect()
    };
    to.dims == from.dims && strides(to) == strides(from)
}

/// The start of each operator, in order.
fn starts_of_operators(profile: &Profile) -> Vec<Nanos> {
    let operators = profile.tree.preorder().iter().filter(|&&op| !profile.is_annotation(op));
    let mut starts: Vec<Nanos> = operators.map(|&op| profile.op_start(op)).collect();
    starts.sort_unstable();
    starts
}

/// Returns whether nothing ran between a copy and the mark: it is the copy that moved the tensor.
fn is_last(profile: &Profile, starts: &[Nanos], copy: OpId, transfer: &Transfer) -> bool {
    let end = profile.op_end(copy);
    let next = starts.partition_point(|&start| start < end);
    starts.get(next).is_none_or(|&start| start >= transfer.time)
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "a picture that is saved in bytes: contiguous on the device first",
                script: taken(&format!("{BYTES} {IMAGE} False"), 6144),
                target: target(),
                requests: expect![[r#"
                    a picture that is saved in bytes: contiguous on the device first
                        + x 24576 temporary
                    on  + host-copy#1 24576 workspace
                    on  - host-copy#1
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the same without waiting: converted on the device, then put in order",
                script: taken(&format!("{BYTES} {IMAGE} True"), 6144),
                target: target(),
                requests: expect![[r#"
                    the same without waiting: converted on the device, then put in order
                        + x 24576 temporary
                    on  + host-copy#1 6144 workspace
                    on  + host-copy#2 6144 workspace
                    on  - host-copy#1
                    on  - host-copy#2
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the same type and order: one transfer",
                script: taken(&format!("{IMAGE} {IMAGE} False"), 24_576),
                target: target(),
                requests: expect![[r#"
                    the same type and order: one transfer
                        + x 24576 temporary
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a slice: contiguous on the device first",
                script: taken("f32[64,32] f32[64,32]:64,1 False", 8192),
                target: target(),
                requests: expect![[r#"
                    a slice: contiguous on the device first
                        + x 24576 temporary
                    on  + host-copy#1 8192 workspace
                    on  - host-copy#1
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a batch in another order: in the old one first",
                script: given(&format!("{IMAGE} f32[64,32,3] False"), 24_576),
                target: target(),
                requests: expect![[r#"
                    a batch in another order: in the old one first
                        + y 24576 temporary
                    on  + host-copy#1 24576 workspace
                    on  - host-copy#1
                        + z 24576 temporary
                        - y
                        - z
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a batch that is converted on the host",
                script: given("f32[64,32,3] f64[64,32,3] False", 24_576),
                target: target(),
                requests: expect![[r#"
                    a batch that is converted on the host
                        + y 24576 temporary
                        + z 24576 temporary
                        - y
                        - z
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a batch that is converted without waiting: on the device",
                script: given("f32[64,32,3] f64[64,32,3] True", 24_576),
                target: target(),
                requests: expect![[r#"
                    a batch that is converted without waiting: on the device
                        + y 24576 temporary
                    on  + host-copy#1 49152 workspace
                    on  - host-copy#1
                        + z 24576 temporary
                        - y
                        - z
                "#]],
            },
        ]
    }

    /// Colors last in the shape, first in memory.
    const IMAGE: &str = "f32[64,32,3]:32,1,2048";
    const BYTES: &str = "u8[64,32,3]:32,1,2048";

    /// `y = x.to("cpu", …)` of a tensor on the device.
    fn taken(copy: &str, bytes: u64) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes("aten::mul", "f32[64,32,3] f32[]", "x", 24576);
            t.marked("on_device", "x");
            moves(t, "y", copy, bytes);
            t.marked("to_host", "y");
            t.free("x y");
        });
        t
    }

    /// `y = x.to("cuda", …)` of a batch of the loader.
    fn given(copy: &str, bytes: u64) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            moves(t, "y", copy, bytes);
            t.marked("to_device", "y");
            t.makes_seq(1, "aten::mul", "f32[64,32,3] f32[]", "z", 24576);
            t.free("y z");
        });
        t
    }

    fn moves(t: &mut Script, name: &str, copy: &str, bytes: u64) {
        t.op("aten::to", "f32[64,32,3] - 0 False False -", |t| {
            t.op("aten::_to_copy", "f32[64,32,3] 0 - - - False -", |t| {
                t.makes("aten::empty_strided", "(64,32,3) (32,1,2048) 0 0 - False", name, bytes);
                t.op("aten::copy_", copy, |_| ());
            });
        });
    }
}
