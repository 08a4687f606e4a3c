//! The table of roles. Stages run in this order; in each, the first row whose condition holds decides a
//! block. The text of a row is the evidence that reports show.

use super::clues::Clues;
use super::gradients::Accumulated;
use super::initial::Claim::{Assigned, Wrapped};
use super::stage::Outcome::{Data, Is, Same, Unchanged};
use super::stage::{Row, Stage};
use crate::block::Residency::{Batch, Device, HostOnly, Model};
use crate::block::Role::{
    Activation, Buffer, Gradient, Input, OptimizerState, Parameter, Temporary, Unknown, Workspace,
};
use crate::block::{Evidence, Residency, Role};
use crate::python::Context::{ModuleApply, ModuleInit, OptimizerInit};
use crate::recorder_facts::State;
use crate::recording::TensorKind;
use crate::spans::Phase;

/// A row of the table of roles, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleRule {
    /// The pass that the row belongs to (`backward`, `init`).
    pub stage: &'static str,
    /// Stable, kebab-case name.
    pub name: &'static str,
    /// The role that it decides; none where it keeps that of an earlier stage, or distinguishes batch data and
    /// temporaries apart.
    pub role: Option<Role>,
    /// The residency and the evidence that it decides; none where it keeps those of an earlier stage.
    pub decision: Option<(Residency, Evidence)>,
    /// PyTorch file and function, paper section or schema that it rests on.
    pub source: &'static str,
}

/// The table by which blocks get their roles, in the order in which its rows are tried.
pub fn role_rules() -> impl Iterator<Item = RoleRule> {
    let rule = |stage, row: &Row| {
        let (role, decision) = match row.outcome {
            Is(role, residency, evidence) => (Some(role), Some((residency, Evidence(evidence)))),
            Same(residency, evidence) | Data(residency, evidence) => {
                (None, Some((residency, Evidence(evidence))))
            }
            Unchanged => (None, None),
        };
        RoleRule { stage, name: row.name, role, decision, source: row.source }
    };
    STAGES.iter().flat_map(move |stage| stage.rows.iter().map(move |row| rule(stage.name, row)))
}

/// Name, condition, outcome and source of each row.
macro_rules! rows {
    ($($name:literal: $when:expr => $outcome:expr, $source:literal;)*) => {
        &[$(Row { name: $name, when: $when, outcome: $outcome, source: $source }),*]
    };
}

pub(super) static STAGES: [Stage; 7] = [
    Stage {
        name: "backward",
        of: |block, _| block.phase == Phase::Backward,
        prepare: Clues::of_backward,
        rows: BACKWARD,
    },
    Stage {
        name: "optimizer-step",
        of: |block, _| block.phase == Phase::OptimizerStep,
        prepare: Clues::of_steps,
        rows: OPTIMIZER_STEP,
    },
    Stage {
        name: "data",
        of: |block, _| matches!(block.phase, Phase::Data | Phase::ZeroGrad),
        prepare: Clues::of_data,
        rows: DATA,
    },
    // Parameters first: what is left of the inventory decides about the rest.
    Stage {
        name: "parameters",
        of: |block, _| block.phase == Phase::Init,
        prepare: Clues::of_parameters,
        rows: PARAMETERS,
    },
    Stage {
        name: "init",
        of: |block, _| block.phase == Phase::Init && block.role == Unknown,
        prepare: Clues::of_init,
        rows: INIT,
    },
    Stage {
        name: "forward",
        of: |block, _| block.phase == Phase::Forward,
        prepare: Clues::of_forward,
        rows: FORWARD,
    },
    // What the recorder knows overrules what operators and lifetimes suggest.
    Stage {
        name: "recorded",
        of: |_, facts| !facts.recorder.is_empty(),
        prepare: Clues::of_recording,
        rows: RECORDED,
    },
];

const BACKWARD: &[Row] = rows! {
    "gathered-in-backward": |c| c.is_gathered()
        => Is(Parameter, Device, "gathered by FSDP from the shards of all ranks"),
        "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out";
    "accumulated-and-freed": |c| c.accumulated() == Some(Accumulated::Passing)
        => Is(Gradient, Device, "accumulated by AccumulateGrad and freed within backward"),
        "torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad";
    "accumulated-copy": |c| c.accumulated() == Some(Accumulated::Made)
        => Is(Gradient, Device, "made by AccumulateGrad as a copy or sum"),
        "torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad";
    "accumulated-incoming": |c| c.accumulated() == Some(Accumulated::TakenOver)
        => Is(Gradient, Device, "taken over by AccumulateGrad"),
        "torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad";
    "library-workspace-of-backward": |c| c.is_kept() && c.is_library_workspace() && c.is_of_first_iteration()
        => Is(Workspace, Device, "made in the first matrix product of a thread and never freed"),
        "aten/src/ATen/cuda/CublasHandlePool.cpp, getCUDABlasLtWorkspace";
    "scratch-of-cudnn-in-backward": |c| c.is_scratch_of_cudnn()
        => Is(Workspace, Device, "made and freed by one call of cuDNN"),
        "aten/src/ATen/native/cudnn/Conv_v8.cpp, run_conv_plan; aten/src/ATen/native/cudnn/RNN.cpp, _cudnn_rnn_backward";
    "kept-by-a-node": |c| c.outlives_phase() && c.is_in_node()
        => Is(Gradient, Device, "made by a backward node and kept beyond backward"),
        "torch/csrc/autograd/engine.cpp, Engine::evaluate_function";
    "wrapped-number-in-backward": |c| c.is_wrapped_number()
        => Is(Temporary, HostOnly, "a Python number wrapped for an operator"),
        "torch/csrc/autograd/utils/wrap_outputs.h; aten/src/ATen/ScalarOps.h";
    "kept-beside-the-nodes": |c| c.outlives_phase()
        => Is(Temporary, Device, "made in backward outside of its nodes"),
        "torch/csrc/autograd/engine.cpp, Engine::evaluate_function";
    "backward-temporary": |_| true
        => Is(Temporary, Device, "made and freed within backward"),
        "torch/csrc/autograd/engine.cpp, Engine::evaluate_function";
};

const OPTIMIZER_STEP: &[Row] = rows! {
    "step-temporary": |c| !c.outlives_step()
        => Is(Temporary, Device, "made and freed within the optimizer's step"),
        "torch/optim/optimizer.py, Optimizer.profile_hook_step";
    "counter-from-a-number": |c| c.is_from_number()
        => Is(
            OptimizerState,
            HostOnly,
            "a counter: made from a Python number in the optimizer's step and kept beyond it"
        ),
        "torch/optim/adam.py, Adam._init_group; torch/csrc/utils/tensor_new.cpp, internal_new_from_data";
    "counter-of-zeros": |c| c.is_counter()
        => Is(
            OptimizerState,
            HostOnly,
            "a counter: a 0-dimensional tensor made in the optimizer's step and kept beyond it"
        ),
        "torch/optim/rmsprop.py, RMSprop._init_group";
    "state": |_| true
        => Is(OptimizerState, Device, "made in the optimizer's step and kept beyond it"),
        "torch/optim/adam.py, Adam._init_group";
};

const DATA: &[Row] = rows! {
    // FSDP gathers the parameters of its root before forward is called.
    "gathered-before-forward": |c| c.is_gathered()
        => Is(Parameter, Device, "gathered by FSDP from the shards of all ranks"),
        "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out";
    "made-by-fsdp": |c| c.is_of_fsdp()
        => Is(Temporary, Device, "made by FSDP before forward"),
        "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather";
    "clearing-temporary": |c| c.block().phase == Phase::ZeroGrad
        => Is(Temporary, Device, "made while gradients are cleared"),
        "torch/optim/optimizer.py, Optimizer.zero_grad";
    "loaded-and-kept": |c| c.is_alive_at_forward() && c.outlives_two_iterations()
        => Is(Input, HostOnly, "made while data is loaded, outlives the two iterations after it"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "batch": |c| c.is_alive_at_forward()
        => Is(Input, Batch, "made while data is loaded, alive when forward begins"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "loader-temporary": |c| c.next_forward().is_some()
        => Is(Temporary, HostOnly, "made while data is loaded, freed before forward"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "trailing-temporary": |c| c.block().free_time.is_some()
        => Is(Temporary, HostOnly, "made and freed after the last forward"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "trailing": |_| true
        => Is(Unknown, HostOnly, "made after the last forward"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
};

/// Blocks that operators show to be parameters. What no row decides is left to [`INIT`]: a buffer of
/// another kind, or a data set that was detached.
const PARAMETERS: &[Row] = rows! {
    "wrapped-and-trained": |c| c.claim() == Some(Wrapped) && c.takes_gradient()
        => Is(
            Parameter,
            Model,
            "wrapped as nn.Parameter, never freed, and a gradient of its size is accumulated"
        ),
        "torch/csrc/autograd/python_variable.cpp, THPVariable_make_subclass";
    "assigned-and-trained": |c| c.claim() == Some(Assigned) && c.takes_gradient()
        => Is(
            Parameter,
            Model,
            "became a parameter's data, never freed, and a gradient of its size is accumulated"
        ),
        "torch/nn/modules/module.py, Module._apply; torch/csrc/autograd/variable.cpp, VariableHooks::set_data";
    "registered-and-frozen": |c| c.claim() == Some(Wrapped) && c.is_registered()
        => Is(
            Parameter,
            Model,
            "registered as a module's parameter; no gradient is accumulated (frozen)"
        ),
        "torch/nn/modules/module.py, Module.register_parameter";
    "wrapped-and-frozen": |c| c.claim() == Some(Wrapped) && !c.has_python() && c.takes_frozen_weight()
        => Is(
            Parameter,
            Model,
            "wrapped as nn.Parameter and taken as a weight; no gradient (frozen)"
        ),
        "torch/csrc/autograd/python_variable.cpp, THPVariable_make_subclass";
    "assigned-and-frozen": |c| c.claim() == Some(Assigned)
        => Is(Parameter, Model, "became a parameter's data; no gradient is accumulated (frozen)"),
        "torch/nn/modules/module.py, Module._apply; torch/csrc/autograd/variable.cpp, VariableHooks::set_data";
};

const INIT: &[Row] = rows! {
    "init-temporary": |c| c.is_freed_before_first_forward()
        => Is(Temporary, HostOnly, "freed before the first forward"),
        "torch/nn/init.py";
    "constructor-counter": |c| c.is_kept() && c.context() == OptimizerInit && c.is_from_number()
        => Is(
            OptimizerState,
            HostOnly,
            "a counter: made from a Python number by the optimizer's constructor"
        ),
        "torch/optim/adagrad.py, Adagrad.__init__";
    "constructor-state": |c| c.is_kept() && c.context() == OptimizerInit
        => Is(OptimizerState, Device, "made by the optimizer's constructor and never freed"),
        "torch/optim/adagrad.py, Adagrad.__init__";
    "trained": |c| c.is_kept() && c.takes_gradient()
        => Is(
            Parameter,
            Model,
            "made before the first iteration, never freed, and a gradient of its size is accumulated"
        ),
        "torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad";
    "module-buffer": |c| c.is_kept() && c.context() == ModuleInit
        => Is(Buffer, Model, "made by a module's constructor; no parameter"),
        "torch/nn/modules/module.py, Module.register_buffer";
    "converted-buffer": |c| c.is_kept() && c.context() == ModuleApply
        => Is(Buffer, Model, "converted by Module._apply; no parameter"),
        "torch/nn/modules/module.py, Module._apply";
    "copied-parameter": |c| c.is_kept() && c.is_copy() && c.takes_parameter_size()
        => Is(
            Buffer,
            Device,
            "copied from a tensor of a parameter's size before training, and never freed"
        ),
        "torch/nn/parameter.py, Parameter.__deepcopy__; torch/optim/swa_utils.py, AveragedModel";
    // Without Python stacks, order and form stand for the constructors.
    "buffer-among-parameters": |c| c.is_kept() && !c.has_python() && c.is_among_parameters()
        => Is(Buffer, Model, "made among the model's parameters; no parameter"),
        "torch/nn/modules/batchnorm.py, _NormBase.__init__";
    "state-like-a-parameter": |c| {
        c.is_kept() && !c.has_python() && c.is_like_a_parameter() && c.takes_parameter_size()
    } => Is(
            OptimizerState,
            Device,
            "made like a parameter after the model, before training, and never freed"
        ),
        "torch/optim/adagrad.py, Adagrad.__init__";
    "running-statistics": |c| c.is_kept() && !c.has_python() && c.is_statistic() && !c.is_from_number()
        => Is(
            Buffer,
            Model,
            "made with the model's parameters; a normalization takes statistics of its size"
        ),
        "aten/src/ATen/native/Normalization.cpp, batch_norm";
    "counter-beside-state": |c| {
        c.is_kept() && !c.has_python() && c.is_from_number() && c.is_next_like_a_parameter()
    } => Is(
            OptimizerState,
            HostOnly,
            "a counter: made from a Python number, next to state made like a parameter"
        ),
        "torch/optim/adagrad.py, Adagrad.__init__";
    // Made before training, outside of the model.
    "data-set": |c| c.clues.data_uses.loop_makes_batches
        => Is(
            Input,
            HostOnly,
            "made before training, outside of the model; the loop makes its own batches"
        ),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "data-that-forward-does-not-take": |c| c.does_forward_take() == Some(false)
        => Is(
            Input,
            HostOnly,
            "made before training, outside of the model; forward takes no tensor of its size"
        ),
        "xMem paper, section 3 (analyzer)";
    "data-that-forward-takes": |c| c.does_forward_take() == Some(true)
        => Is(
            Input,
            Batch,
            "made before training, outside of the model; forward takes a tensor of its size"
        ),
        "xMem paper, section 3 (analyzer)";
    "data": |_| true
        => Is(
            Input,
            Batch,
            "made before training, outside of the model; the loop makes no batches"
        ),
        "xMem paper, section 3 (analyzer)";
};

const FORWARD: &[Row] = rows! {
    "gathered-in-forward": |c| c.is_gathered()
        => Is(Parameter, Device, "gathered by FSDP from the shards of all ranks"),
        "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out";
    "wrapped-number-in-forward": |c| c.is_freed_in_forward() && c.is_wrapped_number()
        => Is(Temporary, HostOnly, "a Python number wrapped for an operator"),
        "torch/csrc/autograd/utils/wrap_outputs.h; aten/src/ATen/ScalarOps.h";
    "scratch-of-cudnn": |c| c.is_scratch_of_cudnn()
        => Is(Workspace, Device, "made and freed by one call of cuDNN"),
        "aten/src/ATen/native/cudnn/Conv_v8.cpp, run_conv_plan; aten/src/ATen/native/cudnn/RNN.cpp, _cudnn_rnn";
    "forward-temporary": |c| c.is_freed_in_forward()
        => Is(Temporary, Device, "made and freed within forward"),
        "torch/csrc/autograd/saved_variable.h, SavedVariable";
    "saved-tensor": |c| c.is_freed_in_backward()
        => Is(Activation, Device, "made in forward and freed in backward"),
        "torch/csrc/autograd/saved_variable.h, SavedVariable";
    "lazy-parameter": |c| c.is_made_once() && c.block().op.is_some() && c.takes_gradient()
        => Is(
            Parameter,
            Model,
            "made in the first forward, never freed, and a gradient of its size is accumulated"
        ),
        "torch/nn/modules/lazy.py, LazyModuleMixin";
    "library-workspace": |c| c.is_made_once() && c.is_library_workspace()
        => Is(Workspace, Device, "made in a matrix product and never freed"),
        "aten/src/ATen/cuda/CublasHandlePool.cpp, getCUDABlasLtWorkspace";
    "lazy-buffer": |c| c.is_made_once()
        => Is(Buffer, Device, "made in the first forward only and never freed"),
        "torch/nn/modules/lazy.py, LazyModuleMixin";
    "activation": |_| true
        => Is(Activation, Device, "made in forward and alive at its end"),
        "torch/csrc/autograd/saved_variable.h, SavedVariable";
};

const RECORDED: &[Row] = rows! {
    "named-parameter-on-device": |c| c.is_named(TensorKind::Parameter) && c.is_made_on_device()
        => Is(Parameter, Device, "named as a parameter by the recording"),
        "xmem.recording.1, tensors";
    "named-parameter-on-host": |c| c.is_named(TensorKind::Parameter) && c.is_host_copy()
        => Is(Parameter, HostOnly, "named as a parameter by the recording"),
        "xmem.recording.1, tensors";
    "named-parameter-of-idle-model": |c| c.is_named(TensorKind::Parameter) && c.is_of_idle_model()
        => Is(
            Parameter,
            HostOnly,
            "of a model that is not trained and of which nothing goes to the GPU"
        ),
        "xmem.recording.1, tensors";
    "named-parameter": |c| c.is_named(TensorKind::Parameter)
        => Is(Parameter, Model, "named as a parameter by the recording"),
        "xmem.recording.1, tensors";
    "named-buffer-on-device": |c| c.is_named(TensorKind::Buffer) && c.is_made_on_device()
        => Is(Buffer, Device, "named as a buffer by the recording"),
        "xmem.recording.1, tensors";
    "named-buffer-on-host": |c| c.is_named(TensorKind::Buffer) && c.is_host_copy()
        => Is(Buffer, HostOnly, "named as a buffer by the recording"),
        "xmem.recording.1, tensors";
    "named-buffer-of-idle-model": |c| c.is_named(TensorKind::Buffer) && c.is_of_idle_model()
        => Is(
            Buffer,
            HostOnly,
            "of a model that is not trained and of which nothing goes to the GPU"
        ),
        "xmem.recording.1, tensors";
    "named-buffer": |c| c.is_named(TensorKind::Buffer)
        => Is(Buffer, Model, "named as a buffer by the recording"),
        "xmem.recording.1, tensors";
    "listed-counter": |c| c.listed_state() == Some(State::Counter) && c.block().role != OptimizerState
        => Is(OptimizerState, HostOnly, "listed by the recording as the optimizer's state"),
        "xmem.recording.1, optimizers; torch/optim/optimizer.py, _get_scalar_dtype";
    "listed-state-on-host": |c| c.listed_state().is_some() && c.is_host_copy()
        => Is(OptimizerState, HostOnly, "listed by the recording as the optimizer's state"),
        "xmem.recording.1, optimizers";
    "listed-state": |c| c.listed_state().is_some() && c.block().role != OptimizerState
        => Is(OptimizerState, Device, "listed by the recording as the optimizer's state"),
        "xmem.recording.1, optimizers";
    "listed-gradient-on-host": |c| c.is_listed_gradient() && c.is_host_copy()
        => Is(Gradient, HostOnly, "named by the recording as a parameter's gradient"),
        "xmem.recording.1, tensors";
    "listed-gradient": |c| c.is_listed_gradient() && c.block().role != Gradient
        => Is(Gradient, Device, "named by the recording as a parameter's gradient"),
        "xmem.recording.1, tensors";
    "host-copy": |c| c.is_host_copy()
        => Same(HostOnly, "a copy that the program made for the host"),
        "xmem.recording.1, mark to_host";

    // Memory that the program made before the loop.
    "moved-beside-the-models": |c| c.is_init() && c.is_beside_the_models() && c.arrival().is_some()
        => Same(Model, "of the model, though the recording does not name it, and moved to the GPU"),
        "xmem.recording.1, mark to_device";
    "beside-the-models": |c| c.is_init() && c.is_beside_the_models()
        => Unchanged,
        "xmem.recording.1, tensors";
    "state-made-before": |c| c.is_init() && c.block().role == OptimizerState
        => Unchanged,
        "xmem.recording.1, optimizers";
    "made-on-device-before": |c| c.is_init() && c.is_made_on_device()
        => Data(Device, "made on the GPU before training"),
        "xmem.recording.1, mark on_device";
    "moved-like-a-model": |c| {
        c.is_init() && c.arrival().is_some() && c.is_of_model() && !c.is_freed_before_first_forward()
    } => Is(Buffer, Model, "like a model's, though no model that runs has it, and moved to the GPU"),
        "xmem.recording.1, mark to_device";
    "moved-before": |c| c.is_init() && c.is_moved_before_the_loop()
        => Data(Batch, "moved to the GPU before training"),
        "xmem.recording.1, mark to_device";
    "moved-by-the-loop": |c| c.is_init() && c.arrival().is_some()
        => Data(Batch, "made before training, moved to the GPU by the loop"),
        "xmem.recording.1, mark to_device";
    "like-a-model-and-never-moved": |c| c.is_init() && c.is_before_all_arrivals() && c.is_of_model()
        => Is(Unknown, HostOnly, "made before anything was on the GPU, and never moved there"),
        "xmem.recording.1, mark to_device";
    "never-moved": |c| c.is_init() && c.is_before_all_arrivals()
        => Same(HostOnly, "made before anything was on the GPU, and never moved there"),
        "xmem.recording.1, mark to_device";
    "batch-not-moved": |c| c.is_init() && c.is_batch_beside_moved_ones()
        => Same(HostOnly, "not moved, though batches after it are"),
        "xmem.recording.1, mark to_device";

    // Memory that the loop made before forward.
    "loaded-by-fsdp": |c| c.is_loaded() && c.is_of_fsdp()
        => Unchanged,
        "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, FSDPParamGroup.unshard";
    "loaded-on-device": |c| c.is_loaded() && c.is_made_on_device()
        => Data(Device, "made on the GPU while data is loaded"),
        "xmem.recording.1, mark on_device";
    "loaded-and-moved": |c| c.is_loaded() && c.arrival().is_some()
        => Data(Batch, "made while data is loaded, moved to the GPU"),
        "xmem.recording.1, mark to_device";
    "made-by-the-loader": |c| c.is_loaded() && c.is_in_loader()
        => Same(HostOnly, "made by the data loader, and not moved"),
        "torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__";
    "computed-between-moves": |c| c.is_loaded() && c.is_between_moves() && c.is_alive_at_forward()
        => Data(Device, "computed from what was moved to the GPU before, while more is moved"),
        "xmem.recording.1, mark to_device";
    "made-before-the-batch-moves": |c| c.is_loaded() && c.is_before_the_batch_moves()
        => Same(HostOnly, "made before the batch moves, and not moved"),
        "xmem.recording.1, mark to_device";
    "computed-from-the-batch": |c| c.is_loaded() && c.is_after_the_batch_moved()
        => Data(Device, "computed from what was moved to the GPU before"),
        "xmem.recording.1, mark to_device";
};
