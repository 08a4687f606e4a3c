//! A device profile as the JSON that cuDNN reads in place of a device.

use std::fmt::Write as _;
use xmem_devices::{ComputeCapability, Device};

/// The properties, one line of JSON with the keys that `CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION`
/// has in cuDNN 9 (the library's own log names each that is missing).
///
/// Clocks and the size of the L2 cache hardly matter: see `Board` in xmem-devices.
pub(crate) fn json(device: &Device) -> String {
    let cc = device.compute_capability;
    let (limits, board) = (cc.limits(), device.board);
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
        ("maxSharedMemoryPerBlockOptin", limits.shared_per_block_optin.get()),
        ("totalGlobalMem", device.memory.get()),
        ("regsPerBlock", 65536),
        ("warpSize", 32),
        ("maxSharedMemoryPerBlock", 49152),
        ("reservedSharedMemoryPerBlock", 1024),
        ("maxRegistersPerSM", limits.registers_per_sm.into()),
        ("maxCtasPerSM", limits.blocks_per_sm.into()),
        ("maxThreadsPerBlock", 1024),
        ("maxThreadsPerSM", device.max_threads_per_sm.into()),
        ("pciDeviceId", 0),
        ("isTccDriver", 0),
        ("supportCoopLaunch", 1),
        ("smClockRateKHz", board.sm_clock_khz.into()),
        ("memClockRateKHz", board.memory_clock_khz.into()),
        ("l2CacheSize", board.l2_cache.get()),
    ] {
        write!(text, ",\"{key}\":{value}").expect("a string takes everything");
    }
    text += ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]}";
    text
}

/// Returns whether properties are those of a device of that compute capability.
pub(crate) fn is_of(properties: &str, on: ComputeCapability) -> bool {
    let version = u64::from(on.major) * 100 + u64::from(on.minor) * 10;
    properties.contains(&format!("\"deviceVer\":{version},"))
}

/// The multiprocessors of the device that properties describe, if it is of this version.
pub(crate) fn multiprocessors(properties: &str, version: u64) -> Option<u64> {
    let number = |key: &str| {
        let (_, rest) = properties.split_once(&format!("\"{key}\":"))?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    };
    number("multiProcessorCount").filter(|_| number("deviceVer") == Some(version))
}

/// The name of the device that properties describe.
pub(crate) fn name(properties: &str) -> Option<&str> {
    properties.strip_prefix("{\"deviceName\":\"")?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_tell_name_and_compute_capability() {
        let device = xmem_devices::find("rtx3060-12g").expect("built in");
        let properties = json(device);
        assert_eq!(name(&properties), Some(device.title.as_str()));
        for (minor, is_same) in [(6, true), (0, false), (9, false)] {
            assert_eq!(is_of(&properties, ComputeCapability { major: 8, minor }), is_same);
        }
    }
}
