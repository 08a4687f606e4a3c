//! The kernels of CUDA's memory-efficient attention, and their workspaces
//! (aten/src/ATen/native/transformers/cuda/mem_eff_attention, kernel_forward.h, kernel_backward.h).
//!
//! Which kernel runs depends on the type, the width of a head, and the shared memory of the GPU
//! (kernels/cutlassB.h). Block sizes recorded with PyTorch 2.11's CUDA build, kernels stubbed, on compute
//! capabilities 7.5, 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0.

use super::select::AttentionCall;
use crate::frame::count::Count;
use xmem_devices::ComputeCapability;
use xmem_types::Bytes;

/// The widest head whose output the forward kernel keeps in registers (`kSingleValueIteration`).
const WIDEST_IN_REGISTERS: u64 = 128;
/// The keys of a block of the backward kernels that accumulate (`kBlockSizeJ`).
const BLOCK_KEYS: u64 = 64;
/// The blocks that the backward wants at once: while there are fewer, the keys of a head are split among
/// several (attention_backward.cu, `num_splits_key`).
const PARALLEL_BLOCKS: u64 = 200;
/// The lock and the counter in front of each partial query gradient (`GradQTempStorage`).
const TILE_HEADER: u64 = 16;

/// The backward kernel of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EfficientKernel {
    /// Rows and columns of a partial query gradient.
    tile: [u64; 2],
    accumulators: Accumulators,
}

/// The gradients of key and value while they are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accumulators {
    /// In registers, or in the outputs themselves.
    InPlace,
    /// In 32-bit copies in the workspace, whose rows are a multiple of so many elements
    /// (`kNeedsAccumGradK`: 16-bit types whose heads are wider than a block).
    Copies(u64),
}

impl EfficientKernel {
    pub(super) fn of(call: &AttentionCall, capability: ComputeCapability) -> Self {
        use Accumulators::{Copies, InPlace};
        let kernel = |rows, columns, accumulators| Self { tile: [rows, columns], accumulators };
        let memory = SharedMemory::of(capability);
        let half = call.query.dtype.is_half();
        match (call.widest(), half, memory) {
            (0..=64, ..) | (_, false, SharedMemory::Small | SharedMemory::Turing) => {
                kernel(64, 64, InPlace)
            }
            (_, false, SharedMemory::Large) => kernel(128, 64, InPlace),
            (129.., true, _) => kernel(128, 64, Copies(128)),
            (_, true, SharedMemory::Turing) => kernel(128, 64, InPlace),
            (_, true, SharedMemory::Large) => kernel(128, 128, InPlace),
            // Kernels made for 8.6 and 8.9.
            (..=96, true, SharedMemory::Small) if capability.major == 8 && !call.dropout => {
                kernel(128, 64, InPlace)
            }
            (_, true, SharedMemory::Small) => kernel(64, 64, Copies(64)),
        }
    }

    /// The workspace of the backward: a partial query gradient for each tile of each head, and the
    /// accumulators of as many key blocks as run at once (`workspace_elements_gq`, `workspace_elements_gk`,
    /// `workspace_elements_gv`).
    pub(super) fn workspace(self, call: &AttentionCall) -> Count {
        let [rows, columns] = self.tile;
        let tiles = Count(call.length()).div_ceil(rows) * call.width().div_ceil(columns);
        let partial = tiles * (rows * columns * 4 + TILE_HEADER);
        let heads = Count(call.batch()) * call.heads();
        let sums = match self.accumulators {
            Accumulators::InPlace => Count(0),
            Accumulators::Copies(multiple) => {
                let widths = [&call.key, &call.value].map(|t| Count(t.dims[3]));
                let columns = widths.map(|width| width.next_multiple_of(multiple));
                let splits = (PARALLEL_BLOCKS / heads.get().max(1)).max(1);
                let splits = Count(call.key.dims[2]).div_ceil(BLOCK_KEYS).min(Count(splits));
                splits * BLOCK_KEYS * (columns[0] + columns[1]) * 4
            }
        };
        heads * (partial + sums)
    }
}

/// The 32-bit output that the forward sums up in memory before it writes a 16-bit one
/// (`kNeedsOutputAccumulatorBuffer`), for the length of the call.
pub(super) fn forward_scratch(call: &AttentionCall) -> Option<Bytes> {
    let in_memory = call.widest() > WIDEST_IN_REGISTERS && call.query.dtype.is_half();
    in_memory.then(|| (call.output_elements() * 4).into())
}

/// The shared memory of a block (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SharedMemory {
    /// 163 KiB or more.
    Large,
    /// 99 KiB.
    Small,
    /// 64 KiB, and kernels of their own.
    Turing,
}

impl SharedMemory {
    fn of(capability: ComputeCapability) -> Self {
        match (capability.major, capability.minor) {
            (..=7, _) => Self::Turing,
            (8, 0 | 7) | (9 | 10, _) => Self::Large,
            _ => Self::Small,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_analyzer::{DType, TensorArg};

    /// One head with 700 queries and 500 keys; width of query and key, of the value.
    fn call(dtype: DType, [width, value]: [u64; 2], dropout: bool) -> AttentionCall {
        let tensor =
            |length, width| TensorArg { dims: vec![1, 1, length, width], strides: vec![], dtype };
        AttentionCall {
            query: tensor(700, width),
            key: tensor(500, width),
            value: tensor(500, value),
            mask: None,
            causal: false,
            dropout,
        }
    }

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed.
    #[test]
    fn workspaces_follow_width_type_and_architecture() {
        use DType::{F16, F32};
        let capabilities = [(7, 5), (8, 0), (8, 6), (12, 0)];
        for (dtype, widths, dropout, expected) in [
            (F16, [64, 64], false, [180_400, 180_400, 180_400, 180_400]),
            (F16, [96, 96], false, [393_408, 393_312, 393_408, 885_088]),
            (F16, [96, 96], true, [393_408, 393_312, 885_088, 885_088]),
            (F16, [32, 96], false, [196_704, 393_312, 196_704, 573_616]),
            (F16, [96, 32], false, [393_408, 393_312, 393_408, 754_016]),
            (F16, [128, 128], false, [393_408, 393_312, 885_088, 885_088]),
            (F16, [160, 160], false, [1_638_688, 1_638_688, 1_638_688, 1_638_688]),
            (F16, [256, 256], true, [1_835_392, 1_835_392, 1_835_392, 1_835_392]),
            (F32, [64, 64], false, [180_400, 180_400, 180_400, 180_400]),
            (F32, [32, 96], false, [180_400, 196_704, 180_400, 180_400]),
            (F32, [96, 96], false, [360_800, 393_408, 360_800, 360_800]),
            (F32, [160, 160], true, [541_200, 590_112, 541_200, 541_200]),
        ] {
            let call = call(dtype, widths, dropout);
            let found = capabilities.map(|(major, minor)| {
                let capability = ComputeCapability { major, minor };
                EfficientKernel::of(&call, capability).workspace(&call).get()
            });
            assert_eq!(found, expected, "{dtype:?} {widths:?} {dropout}");
        }
    }

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed: 128 queries and 4,096 keys.
    #[test]
    fn keys_are_split_among_fewer_blocks_the_more_heads_there_are() {
        let capability = ComputeCapability { major: 8, minor: 0 };
        for (heads, splits) in [(1, 64), (4, 50), (6, 33), (32, 6), (64, 3), (128, 1), (300, 1)] {
            let mut call = call(DType::F16, [160, 160], false);
            call.query.dims = vec![1, heads, 128, 160];
            for tensor in [&mut call.key, &mut call.value] {
                tensor.dims = vec![1, heads, 4096, 160];
            }
            let accumulated = splits * 64 * (256 + 256) * 4;
            let expected = heads * (3 * (128 * 64 * 4 + 16) + accumulated);
            let found = EfficientKernel::of(&call, capability).workspace(&call);
            assert_eq!(found.get(), expected, "{heads} heads");
        }
    }

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed.
    #[test]
    fn wide_heads_of_16_bits_sum_their_output_in_memory() {
        for (dtype, widths, expected) in [
            (DType::F16, [128, 128], None),
            (DType::F16, [160, 160], Some(448_000)),
            (DType::F16, [160, 64], Some(179_200)),
            (DType::F32, [160, 160], None),
        ] {
            let scratch = forward_scratch(&call(dtype, widths, false));
            assert_eq!(scratch, expected.map(Bytes), "{dtype:?} {widths:?}");
        }
    }
}
