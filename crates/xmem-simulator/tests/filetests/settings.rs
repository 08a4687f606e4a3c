//! Devices and options, as the files write them.

use xmem_simulator::{
    AddressOrder, AllocatorConfig, BfcConfig, Completion, DeviceConfig, MemoryLimit,
    PowerOfTwoDivisions,
};
use xmem_types::Bytes;

pub(crate) fn device_setting(device: &mut DeviceConfig, setting: &str) -> Result<(), String> {
    match setting.split_once('=').ok_or("key=value")? {
        ("capacity", size) => device.capacity = Some(bytes(size)?),
        ("taken", size) => device.taken = bytes(size)?,
        ("total", size) => device.reported_total = Some(bytes(size)?),
        ("order", "driver") => device.address_order = AddressOrder::Driver,
        ("order", "ascending") => device.address_order = AddressOrder::Ascending,
        ("order", "descending") => device.address_order = AddressOrder::Descending,
        ("events", "held") => device.completion = Completion::AtSynchronization,
        (key, _) => return Err(format!("unknown setting {key}")),
    }
    Ok(())
}

pub(crate) fn pytorch_option(
    config: &mut AllocatorConfig,
    key: &str,
    value: &str,
) -> Result<(), String> {
    match key {
        "max_split_size" => config.max_split_size = Some(bytes(value)?),
        "max_non_split_rounding" => config.max_non_split_rounding = bytes(value)?,
        "divisions" => {
            let n = value.parse().map_err(|_| "a number")?;
            config.roundup_power2_divisions = PowerOfTwoDivisions([n; 16]);
        }
        "memory_fraction" => config.memory_fraction = Some(number(value)?),
        _ => return Err(format!("unknown option {key}")),
    }
    Ok(())
}

pub(crate) fn bfc_option(config: &mut BfcConfig, key: &str, value: &str) -> Result<(), String> {
    match key {
        "limit" => config.limit = MemoryLimit::Exactly(bytes(value)?),
        "memory_fraction" => config.limit = MemoryLimit::Fraction(number(value)?),
        "allow_growth" => config.allow_growth = yes(value)?,
        "garbage_collection" => config.garbage_collection = yes(value)?,
        "coalesce_regions" => config.coalesce_regions = yes(value)?,
        "fragmentation_fraction" => config.fragmentation_fraction = Some(number(value)?),
        _ => return Err(format!("unknown option {key}")),
    }
    Ok(())
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

pub(crate) fn number(value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{value} is not a number"))
}

/// Sums of sizes: `10MiB-512`, `1MiB+1`, `300KiB`, `2049`.
pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    let mut total = 0i128;
    let mut rest = text;
    let mut sign = 1;
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let term: Bytes = rest[..end].parse().map_err(|e| format!("{e}"))?;
        total += sign * i128::from(term.get());
        let Some(operator) = rest[end..].chars().next() else { break };
        sign = if operator == '+' { 1 } else { -1 };
        rest = &rest[end + 1..];
    }
    u64::try_from(total).map(Bytes).map_err(|_| format!("{text} is below zero"))
}
