//! Facts of a GPU that no answer about PyTorch's own memory depends on, but that libraries ask for when they
//! choose among their kernels.

use crate::device::ComputeCapability;
use crate::speed::Throughput;
use xmem_types::Bytes;

/// Limits of a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Shared memory that a block may opt in to.
    pub shared_per_block_optin: Bytes,
    /// Shared memory of a multiprocessor.
    pub shared_per_sm: Bytes,
    /// Resident blocks of a multiprocessor.
    pub blocks_per_sm: u32,
    /// Registers of 32 bits of a multiprocessor.
    pub registers_per_sm: u32,
}

impl ComputeCapability {
    /// The limits of this compute capability, from the table "Technical Specifications per Compute Capability"
    /// of NVIDIA's CUDA C++ Programming Guide. One that it does not have is taken for its nearest relative.
    #[must_use]
    pub const fn limits(self) -> Limits {
        let (per_block, per_sm, blocks_per_sm) = match (self.major, self.minor) {
            (6, 1) => (48, 96, 32),
            (..=6, _) => (48, 64, 32),
            (7, 5..) => (64, 64, 16),
            (7, _) => (96, 96, 32),
            (8, 0) => (163, 164, 32),
            (8, 7) => (163, 164, 16),
            (8, 9..) => (99, 100, 24),
            (8, _) => (99, 100, 16),
            (12.., _) => (99, 100, 24),
            (9..=11, _) => (227, 228, 32),
        };
        Limits {
            shared_per_block_optin: Bytes(per_block << 10),
            shared_per_sm: Bytes(per_sm << 10),
            blocks_per_sm,
            registers_per_sm: 65536,
        }
    }

    /// The rates of this compute capability.
    ///
    /// Scalar rates: twice those of the table "Throughput of Native Arithmetic Instructions" of NVIDIA's CUDA C++
    /// Programming Guide. Tensor cores: dense peaks of the architecture whitepapers, divided by multiprocessors and
    /// boost clock: Volta 125 TFLOPS (80 × 1530 MHz), Turing 65 (T4: 40 × 1590 MHz), Ampere 312 (A100:
    /// 108 × 1410 MHz), 125 (A10: 72 × 1695 MHz) and 42.5 (Jetson AGX Orin: 16 × 1300 MHz), Ada 121 (L4: 58 × 2040 MHz), Hopper 989 (132 × 1830 MHz),
    /// Blackwell 2250 (B200: 148 × 1856 MHz) and, at half rate, 209.5 (RTX 5090: 170 × 2407 MHz).
    #[must_use]
    pub const fn throughput(self) -> Throughput {
        let (f64, f32, tensor) = match (self.major, self.minor) {
            (6, 0) => (64, 128, 0),
            (..=6, _) => (8, 256, 0),
            (7, 5..) => (4, 128, 1024),
            (7, _) => (64, 128, 1024),
            (8, 0) => (64, 128, 2048),
            (8, 7) => (4, 256, 2048),
            (8, _) | (12.., _) => (4, 256, 1024),
            (9, _) => (128, 256, 4096),
            (10..=11, _) => (128, 256, 8192),
        };
        Throughput {
            f64,
            f32,
            tf32: if self.major >= 8 { tensor / 2 } else { f32 },
            tensor16: if self.major >= 7 { tensor } else { f32 },
            tensor_bf16: if self.major >= 8 { tensor } else { f32 },
        }
    }
}

/// Facts of the board that a GPU is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// Size of the L2 cache.
    pub l2_cache: Bytes,
    /// Boost clock of the multiprocessors, kHz.
    pub sm_clock_khz: u32,
    /// Clock of the memory, kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory's bus, bits.
    pub memory_bus_bits: u32,
    /// Number of the device on the PCI bus, without the vendor's; zero if it is not known.
    pub pci_device: u32,
}

impl Board {
    /// The board assumed for a device of which nothing else is known: clocks and cache of the H100 SXM for its compute
    /// capability, else all of the A100 40GB. The compiler of PyTorch fills the cache when it measures kernels.
    ///
    /// Of 413 recorded convolutions none had other plans on compute capability 8.6 with another cache, other
    /// clocks, more multiprocessors or more memory; on 9.0 the memory clock decided about 2 of 174.
    pub(crate) const fn assumed(of: ComputeCapability) -> Self {
        let (sm_clock_khz, memory_clock_khz, l2_cache) = match of.major {
            9 => (1_980_000, 2_619_000, 50),
            _ => (1_410_000, 1_215_000, 40),
        };
        Self {
            l2_cache: Bytes::mib(l2_cache),
            sm_clock_khz,
            memory_clock_khz,
            memory_bus_bits: 5120,
            pci_device: 0,
        }
    }
}
