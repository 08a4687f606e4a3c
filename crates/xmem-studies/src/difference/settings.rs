//! The settings of runs: what decides about their memory beside the script.

use xmem::Answer;
use xmem_orchestrator::ZeroGradPlace;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunSetting {
    /// The GPU.
    Device,
    /// The memory of the GPU.
    DeviceMemory,
    /// The PyTorch release.
    Torch,
    /// The allocator.
    Allocator,
    /// The allocator's options.
    AllocatorOptions,
    /// The share of the device's memory that the process may take.
    MemoryFraction,
    /// The order of addresses.
    AddressOrder,
    /// The source of workspaces of convolutions.
    Convolutions,
    /// The implementation of optimizers.
    OptimizerImpl,
    /// Where gradients are cleared, if it is not where the recording has it.
    ZeroGrad,
    /// What `zero_grad` does with gradients.
    SetToNone,
    /// The number of ranks, if it is not the recorded one.
    WorldSize,
    /// When collectives are complete.
    Collectives,
    /// Rules that are switched off.
    DisabledRules,
    /// The iterations that the answer is about.
    Iterations,
    /// Samples in a batch, as the recording says.
    BatchSize,
    /// Types of autocast, as the recording says.
    Autocast,
    /// Classes of optimizers.
    Optimizers,
    /// Classes of models, as the recording says.
    Models,
}

impl RunSetting {
    /// Its name in sentences.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::DeviceMemory => "device memory",
            Self::Torch => "PyTorch",
            Self::Allocator => "allocator",
            Self::AllocatorOptions => "allocator options",
            Self::MemoryFraction => "memory fraction",
            Self::AddressOrder => "address order",
            Self::Convolutions => "convolutions",
            Self::OptimizerImpl => "optimizer implementation",
            Self::ZeroGrad => "zero_grad",
            Self::SetToNone => "set_to_none",
            Self::WorldSize => "number of ranks",
            Self::Collectives => "collectives complete",
            Self::DisabledRules => "disabled rules",
            Self::Iterations => "iterations",
            Self::BatchSize => "batch size",
            Self::Autocast => "autocast",
            Self::Optimizers => "optimizers",
            Self::Models => "models",
        }
    }

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::DeviceMemory => "device_memory",
            Self::Torch => "torch",
            Self::Allocator => "allocator",
            Self::AllocatorOptions => "alloc_conf",
            Self::MemoryFraction => "memory_fraction",
            Self::AddressOrder => "address_order",
            Self::Convolutions => "convolutions",
            Self::OptimizerImpl => "optimizer_impl",
            Self::ZeroGrad => "zero_grad",
            Self::SetToNone => "set_to_none",
            Self::WorldSize => "world_size",
            Self::Collectives => "collectives",
            Self::DisabledRules => "disabled_rules",
            Self::Iterations => "iterations",
            Self::BatchSize => "batch_size",
            Self::Autocast => "autocast",
            Self::Optimizers => "optimizers",
            Self::Models => "models",
        }
    }
}

/// A setting that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherSetting {
    /// The setting.
    pub setting: RunSetting,
    /// Its value in the first run; empty for none.
    pub a: String,
    /// Its value in the second run.
    pub b: String,
}

/// The settings that are known of both runs, and differ.
pub(super) fn that_differ(
    a: &[(RunSetting, String)],
    b: &[(RunSetting, String)],
) -> Vec<OtherSetting> {
    let value_in_b = |setting| b.iter().find(|other| other.0 == setting).map(|other| &other.1);
    let mut differ: Vec<OtherSetting> = a
        .iter()
        .filter_map(|(setting, in_a)| Some((*setting, in_a, value_in_b(*setting)?)))
        .filter(|(_, in_a, in_b)| in_a != in_b)
        .map(|(setting, a, b)| OtherSetting { setting, a: a.clone(), b: b.clone() })
        .collect();
    differ.sort_by_key(|other| other.setting);
    differ
}

/// The settings of an answer; those of the recording only where the recording has them.
pub(super) fn of(answer: &Answer) -> Vec<(RunSetting, String)> {
    use RunSetting as S;
    let (target, setup) = (&answer.target, &answer.setup);
    let mut settings = vec![
        (S::Device, answer.device().name.clone()),
        (S::DeviceMemory, answer.device().memory.to_string()),
        (S::Torch, target.torch.to_string()),
        (S::Allocator, setup.kind.name().to_owned()),
        (S::AllocatorOptions, setup.conf.clone()),
        (S::MemoryFraction, setup.memory_fraction.map(|f| f.to_string()).unwrap_or_default()),
        (S::AddressOrder, setup.address_order.name().to_owned()),
        (S::Convolutions, answer.convolutions.source().to_owned()),
        (S::OptimizerImpl, target.optimizer.unwrap_or_default().name().to_owned()),
        (S::ZeroGrad, target.zero_grad.map_or("", ZeroGradPlace::name).to_owned()),
        (S::SetToNone, target.set_to_none.to_string()),
        (
            S::WorldSize,
            target.resharding.as_ref().map(|r| r.rank().world_size.to_string()).unwrap_or_default(),
        ),
        (S::Collectives, target.completion.name().to_owned()),
        (S::DisabledRules, target.disabled.iter().cloned().collect::<Vec<_>>().join(", ")),
        (S::Iterations, format!("{}..{}", answer.iterations.start.0, answer.iterations.end.0)),
    ];
    if !answer.trace.optimizers.is_empty() {
        settings.push((S::Optimizers, answer.trace.optimizers.join(", ")));
    }
    if let Some(recording) = &answer.trace.recording {
        settings.extend(recording.batch_size.map(|size| (S::BatchSize, size.to_string())));
        settings.push((S::Autocast, recording.autocast.join(", ")));
        let models = recording.models.iter();
        let models: Vec<String> = models
            .map(|model| format!("{} with {} of parameters", model.class, model.parameter_bytes))
            .collect();
        settings.push((S::Models, models.join(", ")));
    }
    settings
}
