//! A device as the rest of the pipeline sees it.

use crate::board::Board;
use crate::speed::Speed;
use std::fmt;
use std::str::FromStr;
use xmem_types::Bytes;

/// A GPU, or a MIG slice of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Short name (`a100-40g`), unique among the built-in devices.
    pub name: String,
    /// Name as `torch.cuda.get_device_name` prints it (`NVIDIA A100-SXM4-40GB`).
    pub title: String,
    /// Other names by which [`find`](crate::find) knows the device.
    pub aliases: Vec<String>,
    /// Memory that a process can see: `total_memory` of `torch.cuda.get_device_properties`, which
    /// is also the total of `cudaMemGetInfo`. The lowest value published for Linux.
    pub memory: Bytes,
    /// Memory that one process takes outside PyTorch's allocator: driver context, loaded kernels,
    /// library handles.
    pub context: Bytes,
    /// By how much memory and context may differ, with the driver, the release of CUDA and the kernels that are
    /// loaded.
    pub tolerance: Tolerance,
    /// Compute capability.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors (`multi_processor_count`).
    pub sms: u32,
    /// Resident threads per multiprocessor (`max_threads_per_multi_processor`).
    pub max_threads_per_sm: u32,
    /// Clocks, cache and bus: those of a relative where they are not known.
    pub board: Board,
    /// Clocks and bandwidths that durations follow from.
    pub speed: Speed,
    /// True where GPU and host have one memory (Jetson): what the operating system, other processes and the job
    /// itself take on the host is taken from [`memory`](Self::memory), and counted in [`context`](Self::context).
    pub shares_host_memory: bool,
    /// The source of each number.
    pub sources: Sources,
}

/// By how much the memory that a [`Device`] leaves to PyTorch's allocator may differ from what is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// How much higher than [`Device::memory`] published totals are.
    pub memory_more: Bytes,
    /// How much less than [`Device::context`] a process may take.
    pub context_less: Bytes,
    /// How much more.
    pub context_more: Bytes,
}

/// The sources of a [`Device`]'s numbers, one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Source of [`Device::memory`].
    pub memory: String,
    /// Source of [`Device::context`].
    pub context: String,
    /// Source of [`Device::compute_capability`].
    pub compute_capability: String,
    /// Source of [`Device::sms`].
    pub sms: String,
    /// Source of [`Device::max_threads_per_sm`].
    pub max_threads_per_sm: String,
    /// Source of [`Device::speed`].
    pub speed: String,
}

/// Context assumed where only a capacity is known: the upper of the two classes of the built-in
/// profiles, so that the answer errs on the side of "does not fit".
const CUSTOM_CONTEXT: Bytes = Bytes::mib(450);

/// The name of a device of which only the memory is known.
const CUSTOM: &str = "custom";

impl Device {
    /// A device of which only the memory is known (`--capacity`).
    ///
    /// `capacity` is taken as [`memory`](Self::memory), that is before the context is taken off.
    /// Everything else is assumed to be an A100's (compute capability 8.0, 108 SMs of 2048
    /// threads) with a context of 450 MiB. The assumptions matter only to the sizes of workspaces
    /// and of a few kernels' temporaries; a device file removes them.
    #[must_use]
    pub fn custom(capacity: Bytes) -> Self {
        let assumed = |what: &str| format!("assumed: {what}");
        Self {
            name: CUSTOM.to_owned(),
            title: format!("a device with {capacity}"),
            aliases: Vec::new(),
            memory: capacity,
            context: CUSTOM_CONTEXT,
            tolerance: Tolerance::default(),
            compute_capability: ComputeCapability { major: 8, minor: 0 },
            sms: 108,
            max_threads_per_sm: 2048,
            board: Board::assumed(ComputeCapability { major: 8, minor: 0 }),
            speed: Speed::assumed(8),
            shares_host_memory: false,
            sources: Sources {
                memory: "given by the user".to_owned(),
                context: assumed("like a data center GPU"),
                compute_capability: assumed("like an A100"),
                sms: assumed("like an A100"),
                max_threads_per_sm: assumed("like an A100"),
                speed: assumed("like an A100, without NVLink"),
            },
        }
    }

    /// The least and the most memory that may be left for PyTorch's allocator.
    #[must_use]
    pub fn available_bounds(&self) -> (Bytes, Bytes) {
        let (least, most) = self.context_bounds();
        let highest = self.memory + self.tolerance.memory_more;
        (self.memory.saturating_sub(most), highest.saturating_sub(least))
    }

    /// The device with another total memory, which is known exactly from `source`.
    #[must_use]
    pub fn with_memory(mut self, memory: Bytes, source: &str) -> Self {
        self.memory = memory;
        self.tolerance.memory_more = Bytes::ZERO;
        source.clone_into(&mut self.sources.memory);
        self
    }

    /// Memory left for PyTorch's allocator: [`memory`](Self::memory) less
    /// [`context`](Self::context).
    #[must_use]
    pub fn available(&self) -> Bytes {
        self.memory.saturating_sub(self.context)
    }

    /// Returns whether only its memory is known ([`custom`](Self::custom)).
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.name == CUSTOM
    }

    /// Returns whether this is a built-in MIG slice.
    #[must_use]
    pub fn is_slice(&self) -> bool {
        self.name.contains("-mig-")
    }

    /// The memory that the short name says (`a100-40g`), if that is more than a process can see.
    #[must_use]
    pub fn nominal_memory(&self) -> Bytes {
        let size = self.name.rsplit('-').next().and_then(|size| size.strip_suffix('g'));
        let size = size.and_then(|size| size.parse().ok()).filter(|size| *size < 1 << 20);
        size.map(Bytes::gib).unwrap_or_default().max(self.memory)
    }

    /// The least and the most that the context may take.
    #[must_use]
    pub fn context_bounds(&self) -> (Bytes, Bytes) {
        let Tolerance { context_less, context_more, .. } = self.tolerance;
        (self.context.saturating_sub(context_less), self.context + context_more)
    }
}

/// A CUDA compute capability (`sm_86` is 8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// Generation.
    pub major: u8,
    /// Variant within the generation.
    pub minor: u8,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

/// Text that is not a compute capability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a compute capability: write major and minor with a dot, like 8.6")]
pub struct ParseComputeCapabilityError {
    text: String,
}

impl FromStr for ComputeCapability {
    type Err = ParseComputeCapabilityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseComputeCapabilityError { text: text.to_owned() };
        let (major, minor) = text.split_once('.').ok_or_else(error)?;
        Ok(Self {
            major: major.parse().map_err(|_| error())?,
            minor: minor.parse().map_err(|_| error())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compute_capability_has_two_parts() {
        assert_eq!("8.6".parse(), Ok(ComputeCapability { major: 8, minor: 6 }));
        assert_eq!(
            "12.0".parse::<ComputeCapability>().map(|c| c.to_string()).as_deref(),
            Ok("12.0")
        );
        for text in ["86", "8.", ".6", "8.6.1", "sm_86", "-8.6"] {
            assert!(text.parse::<ComputeCapability>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_custom_device_keeps_the_capacity_and_takes_its_context_from_it() {
        let device = Device::custom(Bytes::gib(24));
        assert_eq!(device.memory, Bytes::gib(24));
        assert_eq!(device.available(), Bytes::gib(24) - Bytes::mib(450));
        assert_eq!(Device::custom(Bytes::mib(1)).available(), Bytes::ZERO);
    }
}
