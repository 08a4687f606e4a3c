//! The form of a device file, and its checks.

use crate::board::Board;
use crate::device::{ComputeCapability, Device, ParseComputeCapabilityError, Sources, Tolerance};
use crate::speed::{Bandwidth, Speed, TensorCores};
use serde::Deserialize;
use xmem_types::{Bytes, printable};

/// The reason why a device file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceFileError {
    /// Not TOML, or a key is missing, unknown or of the wrong type.
    #[error("the device file does not have the form of a device profile")]
    Form(#[source] toml::de::Error),
    /// A user's file describes exactly one device.
    #[error("expected one [[device]] table, found {found}: keep each device in a separate file")]
    NotOneDevice {
        /// The number of tables.
        found: usize,
    },
    /// A name that could not be typed on a command line.
    #[error("device name `{name}`: use lower-case letters, digits, `-` and `.` only")]
    Name {
        /// The name as written.
        name: String,
    },
    /// A number without provenance.
    #[error("device `{device}`: `{field}` needs a source: say where the number comes from")]
    NoSource {
        /// Device.
        device: String,
        /// Key of the number.
        field: &'static str,
    },
    /// The compute capability is not of the form `8.6`.
    #[error("device `{device}`: bad `compute-capability`")]
    ComputeCapability {
        /// Device.
        device: String,
        /// The error in it.
        #[source]
        source: ParseComputeCapabilityError,
    },
    /// A number that no device has.
    #[error("device `{device}`: `{field}` is {value}, expected {expected}")]
    Range {
        /// Device.
        device: String,
        /// Key of the number.
        field: &'static str,
        /// The number as written.
        value: u64,
        /// The accepted values.
        expected: &'static str,
    },
}

impl Device {
    /// Reads the one device of a device file. The format is that of the built-in profiles,
    /// described in `data/devices/README.md`.
    ///
    /// # Errors
    /// If the text is not TOML of this schema, a number has no source or an impossible value, or
    /// the file does not hold exactly one device.
    pub fn from_toml(text: &str) -> Result<Self, DeviceFileError> {
        let mut devices = match parse(text) {
            // The error would show lines of a file that is something else.
            Err(DeviceFileError::Form(_)) if !text.contains("[[device]]") => Vec::new(),
            parsed => parsed?,
        };
        match (devices.pop(), devices.len()) {
            (Some(device), 0) => Ok(device),
            (last, others) => {
                Err(DeviceFileError::NotOneDevice { found: others + usize::from(last.is_some()) })
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDto {
    #[serde(default)]
    device: Vec<DeviceDto>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DeviceDto {
    name: String,
    title: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    shares_host_memory: bool,
    memory: MebibytesDto,
    context: MebibytesDto,
    compute_capability: TextDto,
    sms: CountDto,
    max_threads_per_sm: CountDto,
    speed: Option<SpeedDto>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MebibytesDto {
    mib: u64,
    #[serde(rename = "lowest-mib")]
    lowest: Option<u64>,
    #[serde(rename = "highest-mib")]
    highest: Option<u64>,
    source: String,
}

impl MebibytesDto {
    /// The least, what is expected, and the most.
    fn bounds(&self) -> (u64, u64, u64) {
        (self.lowest.unwrap_or(self.mib), self.mib, self.highest.unwrap_or(self.mib))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountDto {
    value: u32,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextDto {
    value: String,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SpeedDto {
    sm_clock_mhz: u32,
    tensor_clock_mhz: Option<u32>,
    #[serde(default)]
    tensor_cores: TensorCoresDto,
    memory_gbps: u32,
    pcie_generation: u8,
    #[serde(default = "sixteen")]
    pcie_lanes: u8,
    #[serde(default)]
    nvlink_gbps: u32,
    source: String,
}

fn sixteen() -> u8 {
    16
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TensorCoresDto {
    #[default]
    FullRate,
    HalfRate,
}

/// The rates of a device and their source, checked.
fn speed(
    device: &str,
    of: ComputeCapability,
    dto: Option<SpeedDto>,
) -> Result<(Speed, String), DeviceFileError> {
    let Some(dto) = dto else {
        let like = if of.major >= 9 { "an H100" } else { "an A100" };
        return Ok((Speed::assumed(of.major), format!("assumed: like {like}, without NVLink")));
    };
    let tensor_clock_mhz = dto.tensor_clock_mhz.unwrap_or(dto.sm_clock_mhz);
    for (field, value, accepted, expected) in [
        ("speed.sm-clock-mhz", dto.sm_clock_mhz, 100..=10_000, "100 to 10000 MHz"),
        ("speed.tensor-clock-mhz", tensor_clock_mhz, 100..=10_000, "100 to 10000 MHz"),
        ("speed.memory-gbps", dto.memory_gbps, 1..=100_000, "1 to 100000 GB/s"),
        ("speed.pcie-generation", dto.pcie_generation.into(), 1..=8, "1 to 8"),
        ("speed.pcie-lanes", dto.pcie_lanes.into(), 1..=16, "1 to 16"),
        ("speed.nvlink-gbps", dto.nvlink_gbps, 0..=100_000, "0 to 100000 GB/s"),
    ] {
        if !accepted.contains(&value) {
            let (device, value) = (device.to_owned(), value.into());
            return Err(DeviceFileError::Range { device, field, value, expected });
        }
    }
    let speed = Speed {
        sm_clock_khz: dto.sm_clock_mhz * 1000,
        tensor_clock_khz: tensor_clock_mhz * 1000,
        tensor_cores: match dto.tensor_cores {
            TensorCoresDto::FullRate => TensorCores::Full,
            TensorCoresDto::HalfRate => TensorCores::HalfRate,
        },
        memory: Bandwidth::gb_per_second(dto.memory_gbps.into()),
        pcie_generation: dto.pcie_generation,
        pcie_lanes: dto.pcie_lanes,
        nvlink: Bandwidth::gb_per_second(dto.nvlink_gbps.into()),
    };
    Ok((speed, sourced(device, "speed", dto.source)?))
}

/// Reads every device of a file.
pub(crate) fn parse(text: &str) -> Result<Vec<Device>, DeviceFileError> {
    let file: FileDto = toml::from_str(text).map_err(DeviceFileError::Form)?;
    file.device.into_iter().map(device).collect()
}

fn device(dto: DeviceDto) -> Result<Device, DeviceFileError> {
    let name = dto.name;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(DeviceFileError::Name { name });
    }
    let (least_memory, memory, most_memory) = dto.memory.bounds();
    let (least, context, most) = dto.context.bounds();
    let compute_capability =
        dto.compute_capability.value.parse::<ComputeCapability>().map_err(|source| {
            DeviceFileError::ComputeCapability { device: name.clone(), source }
        })?;
    let (speed, speed_source) = speed(&name, compute_capability, dto.speed)?;
    let sources = Sources {
        memory: sourced(&name, "memory", dto.memory.source)?,
        context: sourced(&name, "context", dto.context.source)?,
        compute_capability: sourced(&name, "compute-capability", dto.compute_capability.source)?,
        sms: sourced(&name, "sms", dto.sms.source)?,
        max_threads_per_sm: sourced(&name, "max-threads-per-sm", dto.max_threads_per_sm.source)?,
        speed: speed_source,
    };
    let range = |field, value: u64, ok: bool, expected| {
        if ok {
            Ok(())
        } else {
            Err(DeviceFileError::Range { device: name.clone(), field, value, expected })
        }
    };
    range("memory", memory, (1..=1 << 24).contains(&memory), "1 to 16777216 MiB")?;
    range("context", context, context < memory, "less than the memory")?;
    let is_lowest = least_memory == memory;
    let more = (memory..=1 << 24).contains(&most_memory);
    let most_fits = (context..memory).contains(&most);
    for (field, value, ok, expected) in [
        ("memory.lowest-mib", least_memory, is_lowest, "none: `mib` is the lowest"),
        ("memory.highest-mib", most_memory, more, "`mib` to 16777216"),
        ("context.lowest-mib", least, least <= context, "`mib` or less"),
        ("context.highest-mib", most, most_fits, "`mib` or more, less than the memory"),
    ] {
        range(field, value, ok, expected)?;
    }
    let (sms, threads) = (dto.sms.value, dto.max_threads_per_sm.value);
    range("sms", sms.into(), (1..=1024).contains(&sms), "1 to 1024")?;
    range(
        "max-threads-per-sm",
        threads.into(),
        (512..=8192).contains(&threads) && threads % 32 == 0,
        "a multiple of 32 from 512 to 8192",
    )?;
    Ok(Device {
        title: printable(&dto.title).into_owned(),
        aliases: dto.aliases.iter().map(|alias| printable(alias).into_owned()).collect(),
        memory: Bytes::mib(memory),
        context: Bytes::mib(context),
        tolerance: Tolerance {
            memory_more: Bytes::mib(most_memory - memory),
            context_less: Bytes::mib(context - least),
            context_more: Bytes::mib(most - context),
        },
        compute_capability,
        sms,
        max_threads_per_sm: threads,
        board: Board::assumed(compute_capability),
        speed,
        shares_host_memory: dto.shares_host_memory,
        sources,
        name,
    })
}

fn sourced(device: &str, field: &'static str, source: String) -> Result<String, DeviceFileError> {
    if source.trim().is_empty() {
        return Err(DeviceFileError::NoSource { device: device.to_owned(), field });
    }
    Ok(printable(&source).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// The example of `data/devices/README.md` is the fixture, so that it cannot rot.
    fn example() -> String {
        let readme = include_str!("../data/devices/README.md");
        let start = readme.find("```toml\n").expect("example") + "```toml\n".len();
        let len = readme[start..].find("```").expect("end of the example");
        readme[start..start + len].to_owned()
    }

    /// The error, with its sources, of the example after one replacement.
    fn refused(from: &str, to: &str) -> String {
        let text = example();
        assert!(text.contains(from), "{from}");
        let error = Device::from_toml(&text.replacen(from, to, 1)).expect_err("refused");
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        message
    }

    #[test]
    fn the_documented_example_is_a_device() {
        let device = Device::from_toml(&example()).expect("valid");
        assert_eq!(device.name, "my-gpu-16g");
        assert_eq!(device.memory, Bytes::mib(15979));
        assert_eq!(device.compute_capability, ComputeCapability { major: 8, minor: 9 });
        assert_eq!((device.sms, device.max_threads_per_sm), (48, 1536));
        assert_eq!(device.aliases, ["rtx9999"]);
        assert_eq!(device.context_bounds(), (Bytes::mib(150), Bytes::mib(450)));
        assert_eq!(device.tolerance.memory_more, Bytes::ZERO);
        assert_eq!(device.speed.tensor_clock_khz, 2_505_000);
        assert_eq!(device.speed.tensor_cores, TensorCores::HalfRate);
        assert_eq!((device.speed.pcie_generation, device.speed.pcie_lanes), (4, 8));
        assert_eq!(device.speed.nvlink, Bandwidth(0));
        assert_eq!(device.sources.speed, "NVIDIA, data sheet");
    }

    #[test]
    fn a_device_file_without_rates_gets_those_of_a_relative() {
        let text = example();
        let without = &text[..text.find("[device.speed]").expect("table")];
        let device = Device::from_toml(without).expect("valid");
        assert_eq!(device.speed, Speed::assumed(8));
        assert_eq!(device.sources.speed, "assumed: like an A100, without NVLink");
    }

    #[test]
    fn whatever_is_not_of_the_schema_is_refused_with_its_name() {
        for (from, to, expected) in [
            ("aliases =", "alias =", "unknown field `alias`"),
            ("[device.context]", "[device.kontext]", "unknown field `kontext`"),
            ("value = 48\n", "", "missing field `value`"),
            ("mib = 15979", "mib = -1", "invalid value"),
            ("mib = 15979", "mib = 0", "`memory` is 0, expected 1 to 16777216 MiB"),
            ("mib = 300", "mib = 20000", "`context` is 20000, expected less than the memory"),
            (
                "lowest-mib = 150",
                "lowest-mib = 301",
                "`context.lowest-mib` is 301, expected `mib` or less",
            ),
            (
                "highest-mib = 450",
                "highest-mib = 200",
                "`context.highest-mib` is 200, expected `mib` or more",
            ),
            (
                "mib = 15979",
                "mib = 15979\nhighest-mib = 15978",
                "`memory.highest-mib` is 15978, expected `mib` to",
            ),
            (
                "mib = 15979",
                "mib = 15979\nlowest-mib = 1",
                "`memory.lowest-mib` is 1, expected none",
            ),
            ("value = 48", "value = 4800", "`sms` is 4800, expected 1 to 1024"),
            ("value = 1536", "value = 1500", "expected a multiple of 32"),
            ("\"8.9\"", "\"sm_89\"", "`sm_89` is not a compute capability"),
            ("sm-clock-mhz = 2505", "sm-clock-mhz = 1", "`speed.sm-clock-mhz` is 1, expected 100"),
            ("half-rate", "slow", "unknown variant `slow`"),
            ("NVIDIA, data sheet", "", "`speed` needs a source"),
            ("my-gpu-16g", "My GPU", "device name `My GPU`: use lower-case"),
            (
                "source = \"torch.cuda.get_device_properties on my machine, driver 580\"",
                "source = \" \"",
                "`memory` needs a source",
            ),
        ] {
            let message = refused(from, to);
            assert!(message.contains(expected), "{from} -> {to}: {message}");
        }
    }

    #[test]
    fn a_file_holds_one_device() {
        let twice = format!("{}\n{}", example(), example());
        let other = "root:secret:19000:0:99999:7:::\n";
        for (text, found) in [(twice.as_str(), 2), ("", 0), (other, 0)] {
            match Device::from_toml(text) {
                Err(DeviceFileError::NotOneDevice { found: n }) => assert_eq!(n, found),
                other => panic!("{other:?}"),
            }
        }
    }
}
