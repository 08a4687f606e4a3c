//! The file that tells the native library about the device.

use crate::environment::Requirements;
use crate::family::Family;
use crate::prepare::{Capacity, Completion, VirtualGpu};
use std::fmt::Write as _;
use std::path::Path;

/// Copies up to this size are carried out, so that small data can be read back, and the memory that the
/// process touches stays small.
const COPY_LIMIT: u64 = 64 << 10;

/// Half of the least address space that the native library reserves (`MIN_SPAN` in `native/memory.c`).
const UNLIMITED: u64 = 4 << 40;

/// The driver that the device reports: one that serves every build of PyTorch so far.
const DRIVER: u32 = 13000;

/// The content of the file: a key and a value in each line.
pub(crate) fn text(gpu: &VirtualGpu, requirements: &Requirements, log: &Path) -> String {
    let device = &gpu.device;
    let cc = device.compute_capability;
    let limits = cc.limits();
    let runtime = runtime_version(requirements);
    let mut text = String::new();
    let mut add = |key: &str, value: &dyn std::fmt::Display| {
        writeln!(text, "{key}={value}").expect("a string takes everything");
    };
    add("name", &one_line(&device.title));
    add("memory", &device.memory.get());
    add("context", &device.context.get());
    match gpu.capacity {
        Capacity::OfDevice => {}
        Capacity::Of(size) => add("capacity", &size.get()),
        Capacity::Unlimited => add("capacity", &UNLIMITED),
    }
    add("devices", &gpu.devices);
    add("major", &cc.major);
    add("minor", &cc.minor);
    add("sms", &device.sms);
    add("threads_per_sm", &device.max_threads_per_sm);
    add("blocks_per_sm", &limits.blocks_per_sm);
    add("registers_per_sm", &limits.registers_per_sm);
    add("shared_per_block_optin", &limits.shared_per_block_optin.get());
    add("shared_per_sm", &limits.shared_per_sm.get());
    let board = &device.board;
    add("l2", &board.l2_cache.get());
    add("sm_clock", &board.sm_clock_khz);
    add("memory_clock", &board.memory_clock_khz);
    add("bus_width", &board.memory_bus_bits);
    add("pci_device", &board.pci_device);
    add("runtime", &runtime);
    add("driver", &DRIVER.max(runtime));
    add("cublas", &blas_version(requirements, runtime));
    add("nccl", &nccl_version(requirements));
    add("run_ahead", &u8::from(gpu.completion == Completion::HostWaits));
    add("copy_limit", &COPY_LIMIT);
    add("log", &one_line(&log.to_string_lossy()));
    let cudnn = requirements.name(Family::Cudnn).and_then(|name| requirements.files.get(name));
    if let Some(path) = cudnn {
        add("cudnn", &one_line(&path.to_string_lossy()));
    }
    text
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The parts of a package's version.
fn version(requirements: &Requirements, package: &str) -> Option<[u32; 3]> {
    let mut parts = requirements.versions.get(package)?.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten().unwrap_or(0), parts.next().flatten().unwrap_or(0)])
}

/// The version of the runtime as CUDA numbers it: that of the package if its major version is that of the
/// library that torch needs, else the major version alone.
pub(crate) fn runtime_version(requirements: &Requirements) -> u32 {
    let name = requirements.name(Family::Runtime).unwrap_or_default();
    let number = name.split_once(".so.").map(|(_, number)| number).unwrap_or_default();
    let major = number.split('.').next().and_then(|part| part.parse().ok()).unwrap_or(12);
    match version(requirements, "cuda_runtime") {
        Some([package, minor, _]) if package == major => major * 1000 + minor * 10,
        // libcudart.so.11.0 is that of all releases of CUDA 11; the last is 11.8.
        _ if major == 11 => 11080,
        _ => major * 1000,
    }
}

/// The version of cuBLAS as it numbers it.
fn blas_version(requirements: &Requirements, runtime: u32) -> u32 {
    match version(requirements, "cublas") {
        Some([major, minor, patch]) => major * 10_000 + minor * 100 + patch,
        None => runtime / 1000 * 10_000,
    }
}

/// The version of NCCL as it numbers it.
fn nccl_version(requirements: &Requirements) -> u32 {
    match version(requirements, "nccl") {
        Some([major, minor, patch]) => major * 10_000 + minor * 100 + patch,
        None => 22_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_environment() {
        for (name, package, expected) in [
            ("libcudart.so.13", Some("13.0.96"), 13000),
            ("libcudart.so.12", Some("12.4.127"), 12040),
            ("libcudart.so.12", Some("11.8.89"), 12000),
            ("libcudart.so.12", None, 12000),
            ("libcudart-d0da41ae.so.11.0", None, 11080),
        ] {
            let mut requirements = Requirements::default();
            requirements.names.insert(name.to_owned());
            if let Some(package) = package {
                requirements.versions.insert("cuda_runtime".to_owned(), package.to_owned());
            }
            assert_eq!(runtime_version(&requirements), expected, "{name} {package:?}");
        }
    }
}
