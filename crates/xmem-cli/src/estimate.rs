//! The options of an estimate that commands share, and estimates that fail.

use crate::allocator::{self, AllocatorArgs, AllocatorFailure};
use crate::cudnn::{self, CudnnArgs};
use crate::error::{CliError, failures};
use crate::what_if::{self, WhatIfArgs};
use clap::Args;
use miette::Diagnostic;
use thiserror::Error;
use xmem::predict::AllocatorError;
use xmem::trace::ReadError;
use xmem::{Device, Estimate, EstimateBuilder, EstimateError, InputError};

/// The options of an estimate with one allocator, beside its device.
#[derive(Debug, Args)]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    pub(crate) what_if: WhatIfArgs,
    #[command(flatten)]
    pub(crate) cudnn: CudnnArgs,
    #[command(flatten)]
    pub(crate) allocator: AllocatorArgs,
}

impl EstimateArgs {
    /// The estimate on a device.
    pub(crate) fn builder(&self, device: Device) -> Result<EstimateBuilder, CliError> {
        let builder = Estimate::builder(device)
            .allocator(allocator::settings(&self.allocator)?)
            .convolutions(cudnn::source(&self.cudnn)?);
        what_if::apply(builder, &self.what_if)
    }
}

failures! {
    /// An estimate that fails.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum EstimateFailure {
        #[error("cannot estimate `{trace}`")]
        Estimate { trace: String, source: EstimateError } => Usage XM0401 {
            title: "question that the recording cannot answer",
            cause: "The options ask for iterations, lengths or changes that this recording does not have.",
            example: "xmem replay trace.json.zst --device t4-16g --iterations 7",
            fix:
                "Run `xmem inspect TRACE` to see what was recorded, and choose among that, or record again with `xmem \
                 profile`.",
        },
    }
}

/// The code of the error of a failed estimate.
pub(crate) const fn code(error: &EstimateError) -> &'static str {
    match error {
        EstimateError::Read(InputError::Trace(ReadError::InflateLimit { .. })) => "XM0212",
        EstimateError::Read(InputError::Trace(_)) => "XM0211",
        EstimateError::Read(InputError::Snapshot { .. }) => "XM0213",
        EstimateError::Allocator(AllocatorError::Conf { .. }) => "XM0121",
        EstimateError::Allocator(_) => "XM0122",
        _ => "XM0401",
    }
}

/// The error of a failed estimate of `trace`.
pub(crate) fn failure(trace: &str, error: EstimateError) -> CliError {
    match error {
        EstimateError::Read(read) => read.into(),
        EstimateError::Allocator(error) => AllocatorFailure::with(trace, error).into(),
        source => EstimateFailure::Estimate { trace: trace.to_owned(), source }.into(),
    }
}
