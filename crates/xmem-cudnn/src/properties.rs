//! A device profile as the JSON that cuDNN reads in place of a device.

use std::fmt::Write as _;
use xmem_profiles::{ComputeCapability, Device};

/// Limits of a compute capability, from the table "Technical Specifications per Compute Capability"
/// of NVIDIA's CUDA C++ Programming Guide.
struct Limits {
    /// Bytes of shared memory that a block may opt in to.
    shared_per_block_optin: u32,
    blocks_per_sm: u32,
}

const fn limits(of: ComputeCapability) -> Limits {
    let (kib, blocks_per_sm) = match (of.major, of.minor) {
        (..=6, _) => (48, 32),
        (7, 5..) => (64, 16),
        (7, _) => (96, 32),
        (8, 0) => (163, 32),
        (8, 7) => (163, 16),
        (8, 9..) => (99, 24),
        (8, _) => (99, 16),
        (12.., _) => (99, 24),
        (9..=11, _) => (227, 32),
    };
    Limits { shared_per_block_optin: kib << 10, blocks_per_sm }
}

/// Clocks of multiprocessors and memory, in kHz: those published for the H100 SXM where they matter, and
/// else for the A100 40GB.
const fn clocks(of: ComputeCapability) -> [u64; 2] {
    match of.major {
        9 => [1_980_000, 2_619_000],
        _ => [1_410_000, 1_215_000],
    }
}

/// The properties, one line of JSON with the keys that `CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION`
/// has in cuDNN 9 (the library's own log names each that is missing).
///
/// The size of the L2 cache is not in the profiles, and that of one A100 is given. Of 413 recorded
/// convolutions none had other plans on compute capability 8.6 with another cache, other clocks, more
/// multiprocessors or more memory; on 9.0 the memory clock decided about 2 of 174.
pub(crate) fn json(device: &Device) -> String {
    let cc = device.compute_capability;
    let limits = limits(cc);
    let [sm_clock, memory_clock] = clocks(cc);
    let mut text = String::from("{");
    let mut name = String::new();
    for c in device.title.chars() {
        match c {
            '"' | '\\' => name.extend(['\\', c]),
            c if c.is_control() => name.push(' '),
            c => name.push(c),
        }
    }
    write!(text, "\"deviceName\":\"{name}\"").expect("a string takes everything");
    for (key, value) in [
        ("cudaDeviceId", 0),
        ("deviceVer", u64::from(cc.major) * 100 + u64::from(cc.minor) * 10),
        ("multiProcessorCount", device.sms.into()),
        ("driverVer", 13000),
        ("maxSharedMemoryPerBlockOptin", limits.shared_per_block_optin.into()),
        ("totalGlobalMem", device.memory.get()),
        ("regsPerBlock", 65536),
        ("warpSize", 32),
        ("maxSharedMemoryPerBlock", 49152),
        ("reservedSharedMemoryPerBlock", 1024),
        ("maxRegistersPerSM", 65536),
        ("maxCtasPerSM", limits.blocks_per_sm.into()),
        ("maxThreadsPerBlock", 1024),
        ("maxThreadsPerSM", device.max_threads_per_sm.into()),
        ("pciDeviceId", 0),
        ("isTccDriver", 0),
        ("supportCoopLaunch", 1),
        ("smClockRateKHz", sm_clock),
        ("memClockRateKHz", memory_clock),
        ("l2CacheSize", 40 << 20),
    ] {
        write!(text, ",\"{key}\":{value}").expect("a string takes everything");
    }
    text += ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]}";
    text
}
