//! A matrix product takes a cuBLAS handle, whose workspace lies in PyTorch's allocator: the first product of
//! the forward thread and of the autograd thread each allocate one, on each stream that they use. From PyTorch
//! 2.15 on, each call takes one and frees it.

use super::cublaslt_workspace::{self, LtWorkspace};
use super::product_operands;
use crate::frame::call::Call;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, Lowering, Outcome, RuleDefinition};
use crate::frame::draft::{Addition, Edits, Place};
use crate::rule::Rule;
use rustc_hash::FxHashSet;
use xmem_analyzer::Role;
use xmem_devices::ComputeCapability;
use xmem_types::{Bytes, KIB, OpId, StreamId, TorchVersion};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "cublas-workspace",
        summary: "the first matrix product of the forward thread and of the autograd thread each allocate a cuBLAS workspace",
        source: "aten/src/ATen/cuda/CublasHandlePool.cpp `getCUDABlasLtWorkspace`, `parseChosenWorkspaceSize`",
        operators: &[
            "aten::mm",
            "aten::addmm",
            "aten::bmm",
            "aten::baddbmm",
            "aten::addbmm",
            "aten::mv",
            "aten::addmv",
            "aten::dot",
            "aten::vdot",
            "aten::_addmm_activation",
        ],
        covers: &["aten::addmm_", "aten::addmv_", "aten::baddbmm_"],
    },
    applies: Applies::ToOperators(|cx| Box::new(Workspaces::new(cx))),
};

/// The workspaces that exist already: per thread that runs kernels, and its stream.
struct Workspaces {
    size: Bytes,
    cublas: FxHashSet<(Thread, StreamId)>,
    cublaslt: FxHashSet<(Thread, StreamId)>,
}

/// A thread that runs kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Program,
    Backward,
}

impl Workspaces {
    fn new(cx: &Context<'_>) -> Self {
        let target = cx.target;
        let default = || workspace_size(target.device.compute_capability, target.torch);
        let size = target.cublas_workspace.unwrap_or_else(default);
        Self { size, cublas: FxHashSet::default(), cublaslt: FxHashSet::default() }
    }
}

impl Lowering for Workspaces {
    /// Allocates the workspaces that the product's thread does not have yet on its stream.
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome {
        product_operands::copy(call);
        let thread = if call.in_backward() { Thread::Backward } else { Thread::Program };
        let profile = call.profile();
        let place = (thread, profile.stream_at(profile.op_start(call.op)));
        let torch = call.target().torch;
        let life = life(torch);
        let lt = cublaslt_workspace::of_product(call);
        // A workspace of the call is that of the library that runs it; cached ones come with the
        // handle, which either library requests.
        let other = life == Life::Call && matches!(lt, Some(LtWorkspace::Own(_)));
        if call.enables(&RULE) && !other && (life == Life::Call || self.cublas.insert(place)) {
            add(&mut call.edits, self.size, life, call.op);
        }
        if let Some(LtWorkspace::Own(life)) = lt
            && call.enables(&cublaslt_workspace::RULE)
            && (life == Life::Call || self.cublaslt.insert(place))
        {
            // Never more than cuBLAS's: recorded with 2.11, `:16:8` and `:0:0`.
            let size = cublaslt_workspace::SIZE.min(self.size);
            add(&mut call.edits.credit(&cublaslt_workspace::RULE), size, life, call.op);
        }
        Outcome::Done
    }
}

/// The life of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Once per thread and stream, until the process ends.
    Cached,
    /// Per call.
    Call,
}

fn life(torch: TorchVersion) -> Life {
    if torch >= TorchVersion::new(2, 15) { Life::Call } else { Life::Cached }
}

/// Adds a workspace just after the product's output.
fn add(edits: &mut Edits<'_, '_>, size: Bytes, life: Life, op: OpId) {
    let output = edits.blocks_in(op).into_iter().find(|&block| edits.escapes(block, op));
    let base = output.map_or(edits.before(op), |block| edits.item(block).alloc());
    let alloc = edits.next(base);
    let free = match life {
        Life::Call => edits.next(base),
        Life::Cached => Place::NEVER,
    };
    edits.add(Addition { size, alloc, free, role: Role::Workspace, op });
}

/// The size of the cuBLAS workspace per handle and stream
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, `getChosenWorkspaceSize`: `:4096:2:16:8`, on Hopper
/// `:4096:8`; on Blackwell as on Hopper since 2.12).
pub(crate) fn workspace_size(capability: ComputeCapability, torch: TorchVersion) -> Bytes {
    let large = Bytes(4096 * KIB * 8);
    match capability.major {
        9 => large,
        10.. if torch >= TorchVersion::new(2, 12) => large,
        _ => Bytes(4096 * KIB * 2 + 16 * KIB * 8),
    }
}

/// The size that a value of `CUBLAS_WORKSPACE_CONFIG` requests: the sum over all `:KiB:count` in it;
/// `None` if there are none, for which PyTorch takes its default with a warning
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`).
///
/// ```
/// use xmem_orchestrator::parse_cublas_workspace_config as parse;
/// use xmem_types::Bytes;
///
/// assert_eq!(parse(":4096:2:16:8"), Some(Bytes(8_519_680)));
/// assert_eq!(parse(":0:0"), Some(Bytes::ZERO));
/// assert_eq!(parse("4096"), None);
/// ```
#[must_use]
pub fn parse_cublas_workspace_config(value: &str) -> Option<Bytes> {
    let mut parts = value.split(':').skip(1);
    let mut total = None;
    while let (Some(size), Some(count)) = (parts.next(), parts.next()) {
        let (Ok(size), Ok(count)) = (size.parse::<u32>(), count.parse::<u32>()) else { break };
        let pair = (u64::from(size) * KIB).saturating_mul(u64::from(count));
        let sum: u64 = total.map_or(0, Bytes::get);
        total = Some(Bytes(sum.saturating_add(pair)));
    }
    total
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::case::on;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;
    use std::fmt::Write as _;
    use xmem_types::RequestKind;

    #[test]
    fn workspace_size_follows_architecture_and_version() {
        let v = |minor| TorchVersion::new(2, minor);
        let cc = |major, minor| ComputeCapability { major, minor };
        for (capability, torch, bytes) in [
            (cc(8, 6), v(11), 8_519_680),
            (cc(7, 5), v(6), 8_519_680),
            (cc(9, 0), v(6), 33_554_432),
            (cc(10, 0), v(11), 8_519_680),
            (cc(10, 0), v(12), 33_554_432),
        ] {
            assert_eq!(workspace_size(capability, torch), Bytes(bytes), "{capability:?} {torch}");
        }
    }

    #[test]
    fn the_requested_workspace_is_the_sum_of_its_pairs() {
        for (value, bytes) in [
            (":4096:8", Some(33_554_432)),
            (":16:8", Some(131_072)),
            (":4096:2:16:8:", Some(8_519_680)),
            (":16:8:x:1", Some(131_072)),
            ("", None),
            (":", None),
            (":16", None),
            (":-1:2", None),
        ] {
            assert_eq!(parse_cublas_workspace_config(value), bytes.map(Bytes), "{value}");
        }
    }

    #[test]
    fn each_stream_has_a_workspace() {
        let mut t = Script::default();
        t.iteration(0, |t| {
            let product = |t: &mut Script, stream: u64, name: &str| {
                t.mark(&format!("xmem::stream {stream}"), |_| ());
                t.makes_seq(1, "aten::mm", "f32[32,32] f32[32,32]", name, 4096);
            };
            product(t, 0, "a");
            product(t, 1, "b");
            product(t, 0, "c");
            t.node(1, "MmBackward0", |t| t.free("a b c"));
        });
        let (schedule, _) = lowered(&t, &target());
        let workspace = |kind| match kind {
            RequestKind::Alloc { size: Bytes(8_519_680), stream } => Some(stream),
            _ => None,
        };
        let streams: Vec<_> = schedule.requests.iter().filter_map(|r| workspace(r.kind)).collect();
        assert_eq!(streams, [StreamId(0), StreamId(1)]);
    }

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "PyTorch 2.11: one for the forward thread, one for autograd's, for ever",
                script: two_layers(),
                target: target(),
                requests: expect![[r#"
                    PyTorch 2.11: one for the forward thread, one for autograd's, for ever
                        + w1 4096 parameter model-placement
                        + b1 128 parameter model-placement
                        + w2 4096 parameter model-placement
                        + b2 128 parameter model-placement
                        + h 8192 activation
                    on  + cublas-workspace#1 8519680 workspace
                        + cublaslt-workspace#1 1048576 workspace
                        + y 8192 activation
                        + gh 8192 gradient
                    on  + cublas-workspace#2 8519680 workspace
                        + gw2 4096 gradient
                        - y
                        + gb2 128 gradient
                        + gx 8192 gradient
                        + gw1 4096 gradient
                        - h
                        + gb1 128 gradient
                        - gh
                        - gx
                        - gw1
                        - gw2
                        - gb1
                        - gb2
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "PyTorch 2.15: one for each call",
                script: two_layers(),
                target: on("rtx3060-12g", 15),
                requests: expect![[r#"
                    PyTorch 2.15: one for each call
                        + w1 4096 parameter model-placement
                        + b1 128 parameter model-placement
                        + w2 4096 parameter model-placement
                        + b2 128 parameter model-placement
                        + h 8192 activation
                        + cublaslt-workspace#1 1048576 workspace
                        - cublaslt-workspace#1
                        + y 8192 activation
                        + cublaslt-workspace#2 1048576 workspace
                        - cublaslt-workspace#2
                        + gh 8192 gradient
                    on  + cublas-workspace#1 8519680 workspace
                    on  - cublas-workspace#1
                        + gw2 4096 gradient
                    on  + cublas-workspace#2 8519680 workspace
                    on  - cublas-workspace#2
                        - y
                        + gb2 128 gradient
                        + gx 8192 gradient
                    on  + cublas-workspace#3 8519680 workspace
                    on  - cublas-workspace#3
                        + gw1 4096 gradient
                    on  + cublas-workspace#4 8519680 workspace
                    on  - cublas-workspace#4
                        - h
                        + gb1 128 gradient
                        - gh
                        - gx
                        - gw1
                        - gw2
                        - gb1
                        - gb2
                "#]],
            },
        ]
    }

    /// Two linear layers with bias, forward and backward.
    pub(crate) fn two_layers() -> Script {
        let mut t = Script::default();
        t.model(&[("w1", &[32, 32]), ("b1", &[32]), ("w2", &[32, 32]), ("b2", &[32])]);
        t.iteration(0, |t| {
            for (sequence, output) in [(1, "h"), (2, "y")] {
                let layer = "f32[64,32] f32[32,32] f32[32]";
                t.op_seq(sequence, "aten::linear", layer, |t| {
                    let arguments = "f32[32] f32[64,32] f32[32,32]:1,32 1 1";
                    t.makes_seq(sequence, "aten::addmm", arguments, output, 8192);
                });
            }
            for (sequence, input, kept) in [(2, "gh", "y"), (1, "gx", "h")] {
                t.node(sequence, "AddmmBackward0", |t| {
                    t.makes("aten::mm", "f32[64,32] f32[32,32]", input, 8192);
                    t.makes(
                        "aten::mm",
                        "f32[32,64]:1,32 f32[64,32]",
                        &format!("gw{sequence}"),
                        4096,
                    );
                    t.free(kept);
                });
                t.accumulate("f32[32,32]");
                t.makes("aten::sum", "f32[64,32] (0) True -", &format!("gb{sequence}"), 128);
                t.accumulate("f32[32]");
            }
            t.free("gh gx gw1 gw2 gb1 gb2");
        });
        t
    }

    /// aten/src/ATen/cuda/CublasHandlePool.cpp and aten/src/ATen/cuda/CUDABlas.cpp of each version.
    #[test]
    fn workspaces_by_device_and_version() {
        let mut table = String::new();
        for (device, minor) in [
            ("rtx3060-12g", 8),
            ("rtx3060-12g", 9),
            ("rtx3060-12g", 11),
            ("rtx3060-12g", 15),
            ("h100-80g", 8),
            ("h100-80g", 11),
            ("h100-80g", 15),
            ("b200-180g", 11),
            ("b200-180g", 12),
            ("b200-180g", 15),
        ] {
            let (schedule, _) = lowered(&two_layers(), &on(device, minor));
            let _ = write!(table, "{device} 2.{minor}:");
            for (name, short) in [("cublas-workspace", "cublas"), ("cublaslt-workspace", "lt")] {
                let added: Vec<_> = schedule
                    .blocks
                    .iter()
                    .filter(|b| b.rule.is_some_and(|r| r.name == name))
                    .collect();
                let freed = schedule.requests.iter().filter(|r| {
                    r.kind == xmem_types::RequestKind::Free
                        && schedule.block(r.block).rule.is_some_and(|r| r.name == name)
                });
                let size = added.first().map_or(0, |b| b.size.get());
                assert!(added.iter().all(|b| b.size.get() == size), "all of one size");
                let _ =
                    write!(table, " {short} {} x {size}, {} freed;", added.len(), freed.count());
            }
            table.push('\n');
        }
        expect![[r#"
            rtx3060-12g 2.8: cublas 2 x 8519680, 0 freed; lt 2 x 1048576, 2 freed;
            rtx3060-12g 2.9: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
            rtx3060-12g 2.11: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
            rtx3060-12g 2.15: cublas 4 x 8519680, 4 freed; lt 2 x 1048576, 2 freed;
            h100-80g 2.8: cublas 2 x 33554432, 0 freed; lt 2 x 1048576, 2 freed;
            h100-80g 2.11: cublas 2 x 33554432, 0 freed; lt 1 x 1048576, 0 freed;
            h100-80g 2.15: cublas 4 x 33554432, 4 freed; lt 2 x 1048576, 2 freed;
            b200-180g 2.11: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
            b200-180g 2.12: cublas 2 x 33554432, 0 freed; lt 0 x 0, 0 freed;
            b200-180g 2.15: cublas 4 x 33554432, 4 freed; lt 2 x 1048576, 2 freed;
        "#]]
        .assert_eq(&table);
    }
}
