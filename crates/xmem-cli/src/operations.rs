//! Lists of operations, and those that cannot be simulated.

use crate::error::{CliError, failures};
use miette::Diagnostic;
use thiserror::Error;
use xmem::predict::{AllocatorError, OperationList, Origin, StepError};
use xmem::simulator::Misuse;
use xmem_report::json::{OperationsError, read_operations};
use xmem_report::text;

failures! {
    /// A list that cannot be simulated.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum OperationsFailure {
        #[error("{input} is not a list of operations")]
        #[diagnostic(help("`xmem simulate --help` shows the format of a list"))]
        NotAList { input: String, source: OperationsError } => Unreadable,
        #[error("{input} has allocator options that cannot be simulated")]
        Allocator { input: String, source: AllocatorError } => Unreadable,
        #[error("operation {index} of {input}, {operation}, is invalid")]
        Step { index: usize, operation: String, input: String, source: Misuse } => Unreadable,
    }
}

/// Reads the text of a list, which `input` names.
pub(crate) fn parse(input: &str, text: &[u8]) -> Result<OperationList, OperationsFailure> {
    read_operations(text)
        .map_err(|source| OperationsFailure::NotAList { input: input.to_owned(), source })
}

impl OperationsFailure {
    /// The error of an invalid operation of `input`.
    pub(crate) fn step(input: &str, error: StepError) -> Self {
        let operation = text::operation(&error.operation);
        Self::Step { index: error.index, operation, input: input.to_owned(), source: error.misuse }
    }
}

/// The error of an allocator that cannot be simulated for `input`, with its origin: the command line or the input.
pub(crate) fn allocator_failure(input: &str, error: AllocatorError) -> CliError {
    match error {
        source @ AllocatorError::Conf { from: Origin::Input, .. } => {
            OperationsFailure::Allocator { input: input.to_owned(), source }.into()
        }
        other => other.into(),
    }
}
