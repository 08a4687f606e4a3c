//! The names of policies and their options.

use crate::moves::Moves;
use crate::policies::{
    Checkpoint, Dymem, HostOptimizer, NoPolicy, OffloadActivations, PolicyRules, SaveOnCpu, Serial,
    SuperNeurons, Vdnn, VdnnSet,
};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_types::Bytes;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// Everything stays on the device.
    None,
    /// The blocks of [`Policy::Dymem`], on the stream that computes: nothing overlaps (Dymem's baseline).
    Serial(Moves),
    /// vDNN (Rhu et al., MICRO 2016): the inputs of all layers that it moves, with a barrier after each layer.
    VdnnAll(Moves),
    /// vDNN: the inputs of convolutions only.
    VdnnConv,
    /// SuperNeurons (Wang et al., PPoPP 2018): prefetched as far as the convolution before.
    SuperNeurons(SuperNeurons),
    /// Dymem (HPDC 2020): without barriers.
    Dymem(Moves),
    /// PyTorch's `torch.autograd.graph.save_on_cpu`: all saved tensors, on the stream that computes.
    SaveOnCpu,
    /// torchtune's `OffloadActivations`: all saved tensors that a budget does not leave, on a stream of their own.
    OffloadActivations(OffloadActivations),
    /// Selective activation checkpointing within a budget (`torch.utils.checkpoint`).
    Checkpoint(Checkpoint),
    /// State and step of the optimizer on the host (torchao's `CPUOffloadOptimizer`, ZeRO-Offload).
    HostOptimizer(HostOptimizer),
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy")]
pub struct ParsePolicyError(String);

impl Policy {
    /// All of them: with equal sets, other options off, and budgets of zero.
    pub const ALL: [Self; 10] = [
        Self::None,
        Self::Serial(Moves::Same),
        Self::VdnnAll(Moves::Same),
        Self::VdnnConv,
        Self::SuperNeurons(SuperNeurons {
            moves: Moves::Same,
            tensor_cache: false,
            recompute: false,
        }),
        Self::Dymem(Moves::Same),
        Self::SaveOnCpu,
        Self::OffloadActivations(OffloadActivations { budget: Bytes::ZERO }),
        Self::Checkpoint(Checkpoint { budget: Bytes::ZERO }),
        Self::HostOptimizer(HostOptimizer { bandwidth: HostOptimizer::BANDWIDTH }),
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Serial(_) => "serial",
            Self::VdnnAll(_) => "vdnn-all",
            Self::VdnnConv => "vdnn-conv",
            Self::SuperNeurons(_) => "superneurons",
            Self::Dymem(_) => "dymem",
            Self::SaveOnCpu => "save-on-cpu",
            Self::OffloadActivations(_) => "offload-activations",
            Self::Checkpoint(_) => "checkpoint",
            Self::HostOptimizer(_) => "host-optimizer",
        }
    }

    /// The file of the policy.
    pub(crate) fn rules(self) -> Box<dyn PolicyRules> {
        match self {
            Self::None => Box::new(NoPolicy),
            Self::Serial(moves) => Box::new(Serial { moves }),
            Self::VdnnAll(moves) => Box::new(Vdnn { set: VdnnSet::All(moves) }),
            Self::VdnnConv => Box::new(Vdnn { set: VdnnSet::Convolutions }),
            Self::SuperNeurons(options) => Box::new(options),
            Self::Dymem(moves) => Box::new(Dymem { moves }),
            Self::SaveOnCpu => Box::new(SaveOnCpu),
            Self::OffloadActivations(options) => Box::new(options),
            Self::Checkpoint(options) => Box::new(options),
            Self::HostOptimizer(options) => Box::new(options),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|policy| policy.name() == name);
        named.ok_or_else(|| ParsePolicyError(name.to_owned()))
    }
}
