//! From arguments to the allocator's settings.

mod args;
mod error;

pub(crate) use args::{AllocatorArgs, AllocatorName, AllocatorRest, AllocatorsArgs, Order};
pub(crate) use error::AllocatorFailure;

use crate::error::CliError;
use crate::global::Verbosity;
use crate::terminal::say;
use xmem::predict::{AllocatorKind, AllocatorSettings};
use xmem::simulator::AddressOrder;
use xmem::types::printable;

/// Converts the arguments to the allocator's settings.
pub(crate) fn settings(args: &AllocatorArgs) -> Result<AllocatorSettings, CliError> {
    let address_order = match args.rest.address_order {
        None => None,
        Some(Order::Driver) => Some(AddressOrder::Driver),
        Some(Order::Asc) => Some(AddressOrder::Ascending),
        Some(Order::Desc) => Some(AddressOrder::Descending),
        Some(Order::Recorded) => return Err(AllocatorFailure::NothingRecorded.into()),
    };
    Ok(AllocatorSettings {
        kind: args.allocator.map(|name| match name {
            AllocatorName::Native => AllocatorKind::Native,
            AllocatorName::Uncached => AllocatorKind::Uncached,
            AllocatorName::CudaMallocAsync => AllocatorKind::MallocAsync,
            AllocatorName::TfBfc => AllocatorKind::Bfc,
            AllocatorName::TfBfcGrowth => AllocatorKind::BfcGrowth,
        }),
        release: args.torch,
        conf: args.alloc_conf.clone(),
        memory_fraction: args.rest.memory_fraction,
        address_order,
    })
}

/// Prints a hint that allocator options in the environment of this process were not used, as the
/// job may have another environment. For runs in which no options were given otherwise.
pub(crate) fn hint_at_environment(verbosity: Verbosity) {
    if verbosity == Verbosity::Quiet {
        return;
    }
    let set = xmem::simulator::alloc_conf_variables(xmem::simulator::newest_release())
        .iter()
        .find_map(|name| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            Some((name, value))
        });
    if let Some((name, value)) = set {
        say(&printable(&format!(
            "hint: {name} is set in this environment and was ignored, as the job may run elsewhere; to \
             apply it, add --alloc-conf '{value}'"
        )));
    }
}
