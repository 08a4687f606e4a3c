//! Arguments that change the job.

use clap::{ArgAction, Args, ValueEnum};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What if")]
pub(crate) struct WhatIfArgs {
    /// Clear gradients at another place: pos0 just before backward, pos1 at the start of the
    /// iteration
    #[arg(long, value_name = "PLACE", value_enum)]
    pub(crate) zero_grad: Option<ZeroGrad>,
    /// Let zero_grad free gradients (true) or keep them as zeroed tensors (false)
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) set_to_none: Option<bool>,
    /// Implementation of the optimizer on the GPU (PyTorch's default: foreach)
    #[arg(long, value_name = "IMPL", value_enum)]
    pub(crate) optimizer_impl: Option<OptimizerKind>,
    /// CUBLAS_WORKSPACE_CONFIG of the job, for example :4096:8 (default: the value in the input,
    /// else PyTorch's default for the device)
    #[arg(long, value_name = "CONFIG", value_parser = cublas_workspace)]
    pub(crate) cublas_workspace_config: Option<xmem::Bytes>,
    /// Another number of ranks of a distributed job: world-size=16. Shards of FSDP, and what is made of them, have
    /// the sizes that they have with so many
    #[arg(long, value_name = "KEY=VALUE", value_parser = other_job)]
    pub(crate) what_if: Option<OtherJob>,
    /// When collectives, and other work on the streams of a virtual GPU, are complete. at-once is what was recorded; the
    /// range of the answer goes up to run-ahead
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Collectives::AtOnce)]
    pub(crate) collectives: Collectives,
    /// Parameters of --collectives bandwidth: nvlink, pcie and network in GB/s and one direction, host as the share
    /// of the recorded time that it takes without the recorder (network=50,host=0.3)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = rate)]
    pub(crate) rates: Vec<(Rate, f64)>,
    /// Disable a rule of the CPU-to-GPU lowering (`xmem replay --explain` lists them); repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
}

/// A property of the job that is other than recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OtherJob {
    /// The number of ranks.
    WorldSize(u32),
}

/// Reads `--what-if`.
fn other_job(text: &str) -> Result<OtherJob, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("expected KEY=VALUE, for example world-size=16".into());
    };
    match (key, value.parse()) {
        ("world-size", Ok(ranks)) if ranks > 0 => Ok(OtherJob::WorldSize(ranks)),
        ("world-size", _) => Err(format!("`{value}` is not a number of ranks")),
        _ => Err(format!("`{key}` is not known; what can be other is world-size")),
    }
}

/// When work on streams is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collectives {
    /// At once, as recorded
    #[default]
    AtOnce,
    /// After durations that follow from the rates of the device and its links
    Bandwidth,
    /// When the host waits for it
    RunAhead,
}

/// A parameter of `--rates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Nvlink,
    Pcie,
    Network,
    Host,
}

/// Reads one of `--rates`.
fn rate(text: &str) -> Result<(Rate, f64), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, for example network=50")?;
    let rate = match key {
        "nvlink" => Rate::Nvlink,
        "pcie" => Rate::Pcie,
        "network" => Rate::Network,
        "host" => Rate::Host,
        _ => return Err(format!("`{key}` is not known; there are nvlink, pcie, network and host")),
    };
    match value.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok((rate, number)),
        _ => Err(format!("`{value}` is not a number above 0 and up to 1000000")),
    }
}

/// The places of `zero_grad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZeroGrad {
    /// Just before backward
    Pos0,
    /// At the start of the iteration
    Pos1,
}

/// Names of the optimizer implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptimizerKind {
    /// Whole parameter lists at once
    Foreach,
    /// One kernel
    Fused,
    /// Parameter by parameter
    ForLoop,
}

/// The workspace size that a value of `CUBLAS_WORKSPACE_CONFIG` requests. PyTorch ignores a value
/// that it cannot parse; here it is an error.
fn cublas_workspace(value: &str) -> Result<xmem::Bytes, String> {
    xmem::orchestrator::parse_cublas_workspace_config(value)
        .ok_or_else(|| "expected `:KiB:count`, for example :4096:8 or :0:0".to_owned())
}
