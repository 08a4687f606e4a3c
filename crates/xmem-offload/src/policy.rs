//! The policies: what is moved to the host, when, and what is brought back before it is needed.

use crate::graph::LayerKind;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// Everything stays on the device.
    None,
    /// The blocks of [`Policy::Dymem`], on the stream that computes: nothing overlaps (Dymem's baseline).
    Serial,
    /// vDNN (Rhu et al., MICRO 2016): the inputs of convolutions and pooling layers, with a barrier after each layer.
    VdnnAll,
    /// vDNN: the inputs of convolutions only.
    VdnnConv,
    /// SuperNeurons (Wang et al., PPoPP 2018): the inputs of convolutions, prefetched as far as the convolution before.
    SuperNeurons(SuperNeurons),
    /// Dymem (HPDC 2020): inputs of convolutions, pooling, normalization and activation layers, without barriers.
    Dymem,
    /// PyTorch's `torch.autograd.graph.save_on_cpu`: all saved tensors, on the stream that computes.
    SaveOnCpu,
}

/// The options of [`Policy::SuperNeurons`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuperNeurons {
    /// Blocks are moved to the host only where memory is short, least recently used first.
    pub tensor_cache: bool,
    /// Outputs of cheap layers between convolutions are computed again in the backward pass.
    pub recompute: bool,
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy")]
pub struct ParsePolicyError(String);

impl Policy {
    /// All of them, with the options off.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Serial,
        Self::VdnnAll,
        Self::VdnnConv,
        Self::SuperNeurons(SuperNeurons { tensor_cache: false, recompute: false }),
        Self::Dymem,
        Self::SaveOnCpu,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Serial => "serial",
            Self::VdnnAll => "vdnn-all",
            Self::VdnnConv => "vdnn-conv",
            Self::SuperNeurons(_) => "superneurons",
            Self::Dymem => "dymem",
            Self::SaveOnCpu => "save-on-cpu",
        }
    }

    /// True if inputs of layers of this kind are moved to the host.
    #[must_use]
    pub(crate) const fn offloads(self, kind: LayerKind) -> bool {
        use LayerKind::{Act, Conv, Norm, Pool};
        match self {
            Self::None => false,
            Self::VdnnAll => matches!(kind, Conv | Pool),
            Self::VdnnConv | Self::SuperNeurons(_) => matches!(kind, Conv),
            Self::Serial | Self::Dymem => matches!(kind, Conv | Pool | Act | Norm),
            Self::SaveOnCpu => true,
        }
    }

    /// The layer with which a block's copy to the host begins.
    pub(crate) const fn trigger(self) -> Trigger {
        match self {
            Self::Serial | Self::Dymem => Trigger::FirstReader,
            _ => Trigger::LastReader,
        }
    }

    /// The stream that copies.
    pub(crate) const fn copies_on(self) -> CopiesOn {
        match self {
            Self::Serial | Self::SaveOnCpu => CopiesOn::Compute,
            _ => CopiesOn::OwnStream,
        }
    }

    /// The point at which the stream that computes waits for copies.
    pub(crate) const fn barrier(self) -> Barrier {
        match self {
            Self::VdnnAll | Self::VdnnConv | Self::SuperNeurons(_) => Barrier::EachLayer,
            Self::Dymem => Barrier::EndOfForward,
            Self::None | Self::Serial | Self::SaveOnCpu => Barrier::Never,
        }
    }
}

/// The layer with which a block's copy to the host begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The first one of a kind in question that reads it.
    FirstReader,
    /// The last one that reads it.
    LastReader,
}

/// The stream that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopiesOn {
    /// The one that computes: nothing overlaps.
    Compute,
    /// A stream of its own.
    OwnStream,
}

/// The point at which the stream that computes waits for copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// It waits only for what it needs.
    Never,
    /// After each layer, for the copies that began with it.
    EachLayer,
    /// After the forward pass, for all copies to the host.
    EndOfForward,
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
