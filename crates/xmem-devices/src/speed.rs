//! Rates of a device: clocks, bandwidths, and the operations that a multiprocessor does in a clock.

/// Bytes per second, one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);

impl Bandwidth {
    /// `n` times 10^9 bytes per second, as data sheets count.
    #[must_use]
    pub const fn gb_per_second(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Bytes per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The share of their rate that tensor cores reach when they add in 32 bits, as PyTorch lets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorCores {
    /// The rate of [`Throughput::tensor16`].
    #[default]
    Full,
    /// Half of it: GeForce boards, and a few others by their data sheets.
    HalfRate,
}

/// Clocks and bandwidths of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Boost clock of the multiprocessors, kHz.
    pub sm_clock_khz: u32,
    /// Boost clock of work on tensor cores, kHz.
    pub tensor_clock_khz: u32,
    /// Rate of the tensor cores.
    pub tensor_cores: TensorCores,
    /// Bandwidth of the device's memory.
    pub memory: Bandwidth,
    /// Generation of PCI Express.
    pub pcie_generation: u8,
    /// Lanes of PCI Express.
    pub pcie_lanes: u8,
    /// NVLink to all other GPUs of the machine, one direction; zero where there is none, or only a bridge between
    /// two boards.
    pub nvlink: Bandwidth,
}

impl Speed {
    /// The rates assumed where only the generation of the compute capability is known: H100 SXM from 9, else A100 40GB, both without
    /// NVLink.
    pub(crate) const fn assumed(generation: u8) -> Self {
        let (sm, tensor, memory, pcie_generation) = match generation {
            9.. => (1_980_000, 1_830_000, 3350, 5),
            _ => (1_410_000, 1_410_000, 1555, 4),
        };
        Self {
            sm_clock_khz: sm,
            tensor_clock_khz: tensor,
            tensor_cores: TensorCores::Full,
            memory: Bandwidth::gb_per_second(memory),
            pcie_generation,
            pcie_lanes: 16,
            nvlink: Bandwidth(0),
        }
    }
}

/// Floating-point operations of one multiprocessor in one clock. A multiply-add is two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    /// Double precision.
    pub f64: u32,
    /// Single precision.
    pub f32: u32,
    /// Single precision on tensor cores (TF32); [`f32`](Self::f32) before compute capability 8.0.
    pub tf32: u32,
    /// `float16` on tensor cores; `f32` before 7.0, as cuBLAS computes in single precision there.
    pub tensor16: u32,
    /// `bfloat16` on tensor cores; `f32` before 8.0.
    pub tensor_bf16: u32,
}
