//! The simulated allocator, as part of other documents.

use serde::Serialize;
use xmem::predict::{AllocatorSetup, Origin};
use xmem::simulator::AddressOrder;

#[derive(Serialize)]
pub(crate) struct SetupDto<'a> {
    name: &'static str,
    approximate: bool,
    torch: String,
    torch_from: &'static str,
    conf: &'a str,
    conf_from: &'static str,
    memory_fraction: Option<f64>,
    address_order: &'static str,
}

impl<'a> From<&'a AllocatorSetup> for SetupDto<'a> {
    fn from(setup: &'a AllocatorSetup) -> Self {
        Self {
            name: setup.kind.name(),
            approximate: setup.kind.is_approximate(),
            torch: setup.release.to_string(),
            torch_from: origin(setup.release_from),
            conf: &setup.conf,
            conf_from: origin(setup.conf_from),
            memory_fraction: setup.memory_fraction,
            address_order: address_order(setup.address_order),
        }
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Given => "command_line",
        Origin::Input => "input",
        Origin::Default => "default",
    }
}

pub(crate) fn address_order(order: AddressOrder) -> &'static str {
    match order {
        AddressOrder::Driver => "driver",
        AddressOrder::Ascending => "ascending",
        AddressOrder::Descending => "descending",
        AddressOrder::Recorded => "recorded",
    }
}
