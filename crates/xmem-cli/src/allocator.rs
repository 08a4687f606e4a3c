//! From arguments to the allocator's settings.

mod args;
mod error;

pub(crate) use args::{AllocatorArgs, AllocatorRest, AllocatorsArgs};
pub(crate) use error::AllocatorFailure;

use crate::global::Verbosity;
use crate::terminal::say;
use xmem::predict::AllocatorSettings;
use xmem::simulator::AddressOrder;
use xmem::types::printable;

/// Converts the arguments to the allocator's settings.
pub(crate) fn settings(args: &AllocatorArgs) -> Result<AllocatorSettings, AllocatorFailure> {
    if args.rest.address_order == Some(AddressOrder::Recorded) {
        return Err(AllocatorFailure::NothingRecorded);
    }
    Ok(AllocatorSettings {
        kind: args.allocator,
        release: args.torch,
        conf: args.alloc_conf.clone(),
        memory_fraction: args.rest.memory_fraction,
        address_order: args.rest.address_order,
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
