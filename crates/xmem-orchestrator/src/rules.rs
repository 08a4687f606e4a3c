//! The table of rules: what is known to differ between the CPU and CUDA, with its source.

use xmem_types::Bytes;

/// A rule of the lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name, for `--explain` and for switching it off.
    pub name: &'static str,
    /// One line: what changes from the CPU to the GPU.
    pub summary: &'static str,
    /// Where it is known from.
    pub source: &'static str,
}

/// What one rule did to a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEffect {
    /// The rule.
    pub rule: &'static Rule,
    /// Blocks it left out, and their bytes on the CPU.
    pub dropped: (u64, Bytes),
    /// Blocks it added, and their bytes on the GPU.
    pub added: (u64, Bytes),
    /// Blocks whose size it changed: count, bytes before, bytes after.
    pub resized: (u64, Bytes, Bytes),
    /// Blocks whose lifetime it changed, and their bytes.
    pub retimed: (u64, Bytes),
}

impl RuleEffect {
    pub(crate) const fn none(rule: &'static Rule) -> Self {
        Self {
            rule,
            dropped: (0, Bytes::ZERO),
            added: (0, Bytes::ZERO),
            resized: (0, Bytes::ZERO, Bytes::ZERO),
            retimed: (0, Bytes::ZERO),
        }
    }

    /// Whether the rule changed anything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.dropped.0 == 0 && self.added.0 == 0 && self.resized.0 == 0 && self.retimed.0 == 0
    }
}

/// Every rule, in the order of reports.
#[must_use]
pub fn rules() -> &'static [Rule] {
    RULES
}

/// Names of the rules, for the code that applies them.
pub(crate) mod name {
    pub(crate) const HOST_ONLY: &str = "host-only";
    pub(crate) const HOST_SCALARS: &str = "host-scalars";
    pub(crate) const MODEL_PLACEMENT: &str = "model-placement";
    pub(crate) const PREEXISTING: &str = "preexisting";
    pub(crate) const LEAF_SCRATCH: &str = "leaf-scratch";
    pub(crate) const DROPOUT: &str = "dropout-mask";
    pub(crate) const CUBLAS: &str = "cublas-workspace";
    pub(crate) const CUBLASLT: &str = "cublaslt-workspace";
    pub(crate) const CUDNN_CONV: &str = "cudnn-convolution";
    pub(crate) const REDUCTION: &str = "reduction-buffer";
    pub(crate) const ATTENTION: &str = "attention";
    pub(crate) const SOFTMAX_BACKWARD: &str = "softmax-backward";
    pub(crate) const EMBEDDING: &str = "embedding-backward";
    pub(crate) const PROMOTED: &str = "promoted-operands";
    pub(crate) const RECURRENT: &str = "cudnn-recurrent";
    pub(crate) const GRU_CELL: &str = "gru-cell";
    pub(crate) const TRANSFER: &str = "batch-transfer";
    pub(crate) const CDIST: &str = "cdist-backward";
    pub(crate) const LOSS_BUFFERS: &str = "loss-buffers";
    pub(crate) const INDEX_BACKWARD: &str = "index-backward";
    pub(crate) const SORT: &str = "sort-buffers";
    pub(crate) const BATCH_NORM: &str = "batch-norm";
    pub(crate) const GROUP_NORM: &str = "group-norm";
    pub(crate) const LAYER_NORM: &str = "layer-norm-statistics";
    pub(crate) const RMS_NORM: &str = "rms-norm";
    pub(crate) const AUTOCAST_LOSS: &str = "autocast-loss";
    pub(crate) const AUTOCAST_WIDE: &str = "autocast-wide";
    pub(crate) const GRADIENT_NORM: &str = "gradient-norm";
    pub(crate) const OPTIMIZER: &str = "optimizer-step";
    pub(crate) const ZERO_GRAD: &str = "zero-grad";
    pub(crate) const SET_TO_NONE: &str = "set-to-none";
}

const RULES: &[Rule] = &[
    Rule {
        name: name::HOST_ONLY,
        summary: "memory that never reaches the GPU is left out: initialisation temporaries, data on the host, optimizer step counters",
        source: "torch/nn/modules/module.py `Module.to`; torch/optim/optimizer.py `_get_scalar_dtype`; xMem paper, section 3 (orchestrator)",
    },
    Rule {
        name: name::HOST_SCALARS,
        summary: "numbers wrapped as 0-dimensional CPU tensors become kernel arguments on CUDA",
        source: "aten/src/ATen/ScalarOps.cpp `wrapped_scalar_tensor`; aten/src/ATen/native/TensorIterator.cpp (CPU scalars)",
    },
    Rule {
        name: name::PROMOTED,
        summary: "operands of another type are converted as CUDA's kernel reads them, where the CPU makes a converted copy",
        source: "aten/src/ATen/TensorIterator.cpp `promote_inputs_to_common_dtype`",
    },
    Rule {
        name: name::MODEL_PLACEMENT,
        summary: "parameters and buffers are allocated when the model is moved to the device, one after another",
        source: "torch/nn/modules/module.py `Module._apply`; xMem paper, section 3",
    },
    Rule {
        name: name::TRANSFER,
        summary: "a batch is allocated where it is moved to the device; what the loader prepared before stays on the host",
        source: "aten/src/ATen/native/TensorConversions.cpp `to_will_alias`; torch/utils/data/dataloader.py",
    },
    Rule {
        name: name::PREEXISTING,
        summary: "parameters and optimizer state made before the recording began are put in",
        source: "xMem paper, section 3; the optimizer's and the backward's recorded input shapes",
    },
    Rule {
        name: name::LEAF_SCRATCH,
        summary: "scratch that a CPU kernel allocates and frees within one leaf operator is left out",
        source: "c10/core/CPUAllocator.cpp; aten/src/ATen/native/mkldnn/IDeepRegistration.cpp",
    },
    Rule {
        name: name::DROPOUT,
        summary: "dropout saves a bool mask (1 byte an element) instead of noise in the input's type",
        source: "aten/src/ATen/native/Dropout.cpp `is_fused_kernel_acceptable`; aten/src/ATen/native/cuda/Dropout.cu `native_dropout_cuda`",
    },
    Rule {
        name: name::CUBLAS,
        summary: "the first matrix product of the forward thread and of the autograd thread each allocate a cuBLAS workspace",
        source: "aten/src/ATen/cuda/CublasHandlePool.cpp `getCUDABlasLtWorkspace`, `parseChosenWorkspaceSize`",
    },
    Rule {
        name: name::CUBLASLT,
        summary: "a linear layer with bias runs through cublasLt, which has a workspace of its own",
        source: "aten/src/ATen/native/cuda/Blas.cpp `addmm_out_cuda_impl`; aten/src/ATen/cuda/CUDABlas.cpp `gemm_and_bias`",
    },
    Rule {
        name: name::CUDNN_CONV,
        summary: "convolutions take a cuDNN workspace for the length of each call",
        source: "aten/src/ATen/native/cudnn/Conv_v8.cpp; answers of cuDNN's heuristics (see the profile data)",
    },
    Rule {
        name: name::REDUCTION,
        summary: "a reduction that is split over thread blocks takes a global buffer and semaphores",
        source: "aten/src/ATen/native/cuda/Reduce.cuh `setReduceConfig`, `gpu_reduce_kernel`",
    },
    Rule {
        name: name::ATTENTION,
        summary: "scaled_dot_product_attention takes the kernel that CUDA would take (flash, memory-efficient, cuDNN, math)",
        source: "aten/src/ATen/native/transformers/cuda/sdp_utils.cpp `select_sdp_backend`, attention.cu, attention_backward.cu; aten/src/ATen/native/transformers/attention.cpp `_scaled_dot_product_attention_math`, `preprocess_mask`",
    },
    Rule {
        name: name::SOFTMAX_BACKWARD,
        summary: "softmax backward computes grad * output into a temporary",
        source: "aten/src/ATen/native/cuda/SoftMax.cu `softmax_backward_cuda_out`",
    },
    Rule {
        name: name::EMBEDDING,
        summary: "embedding backward over more than 3072 indices sorts them, with buffers",
        source: "aten/src/ATen/native/cuda/Embedding.cu `embedding_dense_backward_cuda`; EmbeddingBackwardKernel.cu",
    },
    Rule {
        name: name::BATCH_NORM,
        summary: "batch norm's backward makes the input's gradient first; where channels are innermost, sums per channel and thread block are scratch",
        source: "aten/src/ATen/native/cudnn/BatchNorm.cpp `cudnn_batch_norm_backward`; aten/src/ATen/native/cuda/Normalization.cuh `batch_norm_backward_reduce_cuda_channels_last_template`",
    },
    Rule {
        name: name::GROUP_NORM,
        summary: "group norm takes scales and sums per sample and channel for the length of the call",
        source: "aten/src/ATen/native/cuda/group_norm_kernel.cu `GroupNormKernelImplInternal`, `GroupNormBackwardKernelImplInternal`",
    },
    Rule {
        name: name::LAYER_NORM,
        summary: "layer norm of 16-bit inputs keeps mean and deviation in 32 bits",
        source: "aten/src/ATen/native/cuda/layer_norm_kernel.cu `layer_norm_cuda`",
    },
    Rule {
        name: name::RMS_NORM,
        summary: "rms_norm is one kernel that keeps one number a row, instead of a chain of operators",
        source: "aten/src/ATen/native/layer_norm.cpp `rms_norm_symint`; aten/src/ATen/native/cuda/layer_norm_kernel.cu `_fused_rms_norm_cuda`, `_fused_rms_norm_backward_cuda`",
    },
    Rule {
        name: name::INDEX_BACKWARD,
        summary: "writing through repeated indices with accumulation (the backward of indexing) sorts them, with buffers",
        source: "aten/src/ATen/native/cuda/Indexing.cu `index_put_with_sort_kernel`",
    },
    Rule {
        name: name::SORT,
        summary: "long sorts take index lists and a radix sort's scratch; selection works in place, without the CPU's copy",
        source: "aten/src/ATen/native/cuda/SortStable.cu `launch_stable_sort_kernel`; aten/src/ATen/native/cuda/Sorting.cu `launch_kthvalue_kernel`",
    },
    Rule {
        name: name::LOSS_BUFFERS,
        summary: "mse_loss and smooth_l1_loss hold the losses of all elements, ctc_loss its lengths and log_beta; log_sigmoid keeps no buffer",
        source: "aten/src/ATen/native/cuda/LossCTC.cu; aten/src/ATen/native/Activation.cpp `log_sigmoid_forward_cuda`; aten/src/ATen/native/Loss.cpp `mse_loss_out`, `smooth_l1_loss_out`",
    },
    Rule {
        name: name::CDIST,
        summary: "the backward of cdist writes one row for each pair of vectors before it sums them",
        source: "aten/src/ATen/native/cuda/DistanceKernel.cu `cdist_backward_kernel_impl`",
    },
    Rule {
        name: name::GRU_CELL,
        summary: "a GRU cell is one kernel on both gates, which are kept for backward with a workspace, and has no bias in its products",
        source: "aten/src/ATen/native/cuda/RNN.cu `_thnn_fused_gru_cell_cuda`; tools/autograd/derivatives.yaml `_thnn_fused_gru_cell`",
    },
    Rule {
        name: name::RECURRENT,
        summary: "recurrent layers run through cuDNN: outputs, states and a reserve for backward instead of the CPU's steps; the sizes of reserve and workspace are estimates with a range",
        source: "aten/src/ATen/native/cudnn/RNN.cpp `_cudnn_rnn`, `_cudnn_rnn_backward`; cuDNN documents no formula for cudnnGetRNNTempSpaceSizes",
    },
    Rule {
        name: name::AUTOCAST_LOSS,
        summary: "under autocast CUDA keeps cross_entropy's log-softmax in 16 bits and casts for nll_loss; the CPU casts the logits",
        source: "aten/src/ATen/autocast_mode.cpp (CPU and CUDA lists); aten/src/ATen/native/LossNLL.cpp `cross_entropy_loss_prob_target`, `cross_entropy_loss`",
    },
    Rule {
        name: name::AUTOCAST_WIDE,
        summary: "operators that only CUDA's autocast runs in 32 bits (pow, exp, softmax, layer and group norm, resampling) double what is computed from them, until it is cast down",
        source: "aten/src/ATen/autocast_mode.h `AT_FORALL_FP32`, `AT_FORALL_FP32_SET_OPT_DTYPE`; autocast_mode.cpp (CPU list)",
    },
    Rule {
        name: name::GRADIENT_NORM,
        summary: "the norms of all gradients are taken by one kernel, with partial results for each chunk",
        source: "aten/src/ATen/native/cuda/ForeachReduceOp.cu `foreach_tensor_norm_cuda`; torch/nn/utils/clip_grad.py `_get_total_norm`",
    },
    Rule {
        name: name::OPTIMIZER,
        summary: "the optimizer runs over whole parameter lists (foreach) instead of parameter by parameter",
        source: "torch/optim/optimizer.py `_default_to_fused_or_foreach`; torch/optim/*.py `_multi_tensor_*`",
    },
    Rule {
        name: name::ZERO_GRAD,
        summary: "what-if: gradients are cleared at another place of the loop",
        source: "xMem paper, section 3 (zero_grad positions); torch/optim/optimizer.py `Optimizer.zero_grad`",
    },
    Rule {
        name: name::SET_TO_NONE,
        summary: "what-if: gradients are zeroed in place and never freed",
        source: "torch/optim/optimizer.py `Optimizer.zero_grad(set_to_none)`",
    },
];
