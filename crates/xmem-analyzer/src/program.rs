//! The operators of a trace with their arguments and links: what passes and profile read alike.

use crate::args::{ArgumentTable, Arguments, TensorArg};
use crate::autograd::Autograd;
use crate::block::Block;
use crate::names::{NameKind, Names};
use crate::optree::OpTree;
use xmem_trace::{DeviceKind, OpKind, Trace};
use xmem_types::{Bytes, Nanos, OpId, Sym};

/// A view of the tables that describe operators.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) names: &'a Names,
    pub(crate) tree: &'a OpTree,
    pub(crate) autograd: &'a Autograd,
    pub(crate) arguments: &'a ArgumentTable,
    /// The device whose memory is analyzed.
    pub(crate) device: DeviceKind,
}

/// Blocks of CUDA's allocator are multiples of this (c10/cuda/CUDACachingAllocator.h, `kMinBlockSize`).
const CUDA_BLOCK: u64 = 512;

impl<'a> Program<'a> {
    pub(crate) fn op_symbol(self, op: OpId) -> Sym {
        self.trace.ops.name[op.index()]
    }

    pub(crate) fn op_name(self, op: OpId) -> &'a str {
        self.trace.strings.resolve(self.op_symbol(op))
    }

    /// The meaning of an operator's name.
    pub(crate) fn kind(self, op: OpId) -> NameKind {
        self.names.kind(self.op_symbol(op))
    }

    /// Returns whether the row is an annotation rather than an operator. Old formats say so by name
    /// only.
    pub(crate) fn is_annotation(self, op: OpId) -> bool {
        self.trace.ops.kind[op.index()] == OpKind::Annotation
            || self.names.is_span(self.op_symbol(op))
    }

    pub(crate) fn op_start(self, op: OpId) -> Nanos {
        self.trace.ops.start[op.index()]
    }

    pub(crate) fn op_end(self, op: OpId) -> Nanos {
        self.op_start(op) + self.trace.ops.duration[op.index()]
    }

    pub(crate) fn arguments(self, op: OpId) -> &'a Arguments {
        self.arguments.get(self.trace.ops.signature[op.index()])
    }

    /// The bytes that memory events give for an operator's tensor argument, where its shape was recorded.
    pub(crate) fn tensor_bytes(self, op: OpId, position: usize) -> Option<Bytes> {
        self.arguments(op).tensor(position).map(|t| self.block_bytes(t))
    }

    /// The bytes that memory events give for a tensor: what is requested on the host, blocks on a GPU.
    pub(crate) fn block_bytes(self, tensor: &TensorArg) -> Bytes {
        let bytes = tensor.bytes();
        Bytes(match self.device {
            DeviceKind::Cuda => bytes.checked_next_multiple_of(CUDA_BLOCK).unwrap_or(bytes),
            _ => bytes,
        })
    }

    /// The operators and annotations around a block's allocation, innermost first.
    pub(crate) fn op_path(self, block: &Block) -> impl Iterator<Item = OpId> + use<'a> {
        block.op.into_iter().flat_map(move |op| self.tree.path(op))
    }

    /// The outermost operator at a block's allocation; annotations do not count.
    pub(crate) fn outermost_op(self, block: &Block) -> Option<OpId> {
        self.op_path(block).filter(|&op| !self.is_annotation(op)).last()
    }

    /// Returns whether input shapes were recorded.
    pub(crate) fn has_shapes(self) -> bool {
        self.trace.signatures.len() > 1
    }

    /// Returns whether Python stacks were recorded.
    pub(crate) fn has_python(self) -> bool {
        !self.trace.python.is_empty()
    }
}
