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
        NotAList { input: String, source: OperationsError } => Unreadable XM0231 {
            title: "invalid list of operations",
            cause: "The input is not JSON in the format of a list of allocations and frees.",
            example: "xmem simulate trace.json",
            fix: "Compare the file with the example that `xmem simulate --help` shows.",
        },
        #[error("{input} has allocator options that cannot be simulated")]
        Allocator { input: String, source: AllocatorError } => Unreadable XM0232 {
            title: "invalid allocator options in a list",
            cause: "The list of operations has allocator options that this release of PyTorch rejects.",
            example: "xmem simulate ops.json",
            fix: "Correct the options in the list, or set others: `xmem simulate ops.json --alloc-conf OPTIONS`.",
        },
        #[error("operation {index} of {input}, {operation}, is invalid")]
        Step { index: usize, operation: String, input: String, source: Misuse } => Unreadable XM0233 {
            title: "invalid operation in a list",
            cause:
                "The operation cannot follow those before it, for example because it frees a block that is not \
                 allocated.",
            example: "xmem simulate double-free.json",
            fix: "Correct the operation that the message names, then run `xmem simulate FILE` again.",
        },
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
