//! The settings that recordings are shown under: those of the options, and each other device and other options of the
//! allocator beside them.

use super::args::ReportArgs;
use crate::allocator::AllocatorArgs;
use crate::error::CliError;
use crate::{allocator, cudnn, device, what_if};
use std::sync::Arc;
use xmem::convolutions::ConvolutionSource;
use xmem::{Device, Estimate, EstimateBuilder};

/// A setting.
pub(super) struct Setting {
    pub(super) estimate: Estimate,
    /// The device and the options of the allocator, as on the command line.
    pub(super) options: String,
    /// The same as a name beside other settings; empty if there is no other.
    pub(super) differs_by: String,
}

/// All of them, those of the options first.
pub(super) fn all(args: &ReportArgs) -> Result<Vec<Setting>, CliError> {
    let convolutions = cudnn::source(&args.estimate.cudnn)?;
    let picture = &args.picture;
    let usual = chosen(args)?;
    let mut all = vec![setting(args, &usual, &args.estimate.allocator, &convolutions)?];
    for other in args.device.others() {
        all.push(setting(args, &device::choose(&other)?, &args.estimate.allocator, &convolutions)?);
    }
    for name in &picture.against_device {
        let other = xmem::find(name.trim())?;
        all.push(setting(args, other, &args.estimate.allocator, &convolutions)?);
    }
    for options in &picture.against_alloc_conf {
        let other =
            AllocatorArgs { alloc_conf: Some(options.clone()), ..args.estimate.allocator.clone() };
        all.push(setting(args, &usual, &other, &convolutions)?);
    }
    if let [only] = &mut all[..] {
        only.differs_by.clear();
    }
    Ok(all)
}

/// The estimate of the options, on a device with an allocator.
pub(super) fn builder(
    args: &ReportArgs,
    device: &Device,
    choice: &AllocatorArgs,
    convolutions: &Arc<dyn ConvolutionSource>,
) -> Result<EstimateBuilder, CliError> {
    let builder = Estimate::builder(device.clone())
        .allocator(allocator::settings(choice)?)
        .convolutions(Arc::clone(convolutions));
    let mut builder = what_if::apply(builder, &args.estimate.what_if)?;
    if let Some(iterations) = args.picture.iterations {
        builder = builder.iterations(iterations);
    }
    Ok(builder)
}

fn setting(
    args: &ReportArgs,
    device: &Device,
    choice: &AllocatorArgs,
    convolutions: &Arc<dyn ConvolutionSource>,
) -> Result<Setting, CliError> {
    let estimate = builder(args, device, choice, convolutions)?.build();
    estimate.check()?;
    let mut options = format!("--device {}", device.name);
    let mut differs_by = device.name.to_string();
    if let Some(conf) = &choice.alloc_conf {
        options += &format!(" --alloc-conf {conf}");
        differs_by += &format!(", {conf}");
    }
    Ok(Setting { estimate, options, differs_by })
}

/// The device that is named first.
pub(super) fn chosen(args: &ReportArgs) -> Result<Device, CliError> {
    device::choose_or_default(&args.device.first())
}
