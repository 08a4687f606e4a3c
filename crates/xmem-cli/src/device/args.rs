//! Arguments that choose a device.

use super::offered;
use crate::values::Offered;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use xmem::Bytes;

#[derive(Debug, Args)]
#[command(next_help_heading = "Device (at least one)")]
pub(crate) struct DeviceArgs {
    /// A known GPU, for example a100-40g or rtx3060-12g; `xmem devices` lists them
    #[arg(short, long, value_name = "NAME", value_parser = Offered::new(offered), hide_possible_values = true)]
    pub(crate) device: Option<String>,
    /// A file that describes a GPU
    #[arg(long, value_name = "FILE", conflicts_with = "device", value_hint = ValueHint::FilePath)]
    pub(crate) device_file: Option<PathBuf>,
    /// Total device memory, for example 24GiB; replaces the capacity of --device or --device-file
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, visible_alias = "budget")]
    pub(crate) capacity: Option<Bytes>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct PlanDeviceArgs {
    /// GPU for which a trace of the CPU is lowered (default: a100-40g); it never runs out of memory
    /// here
    #[arg(short, long, value_name = "NAME", value_parser = Offered::new(offered), hide_possible_values = true)]
    pub(crate) device: Option<String>,
    /// A file that describes the GPU
    #[arg(long, value_name = "FILE", conflicts_with = "device", value_hint = ValueHint::FilePath)]
    pub(crate) device_file: Option<PathBuf>,
}

impl From<&PlanDeviceArgs> for DeviceArgs {
    fn from(args: &PlanDeviceArgs) -> Self {
        let PlanDeviceArgs { device, device_file } = args.clone();
        Self { device, device_file, capacity: None }
    }
}
