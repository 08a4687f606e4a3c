//! What a page offers to choose from.

use serde::Serialize;
use xmem::devices;
use xmem_estimate::LossChoice;
use xmem_graph::OptimizerClass;
use xmem_report::json::{self, DevicesDocument};

/// Everything that settings name.
#[derive(Serialize)]
struct Catalog {
    schema: &'static str,
    program: &'static str,
    /// As `xmem devices --format json` writes them.
    known: DevicesDocument<'static>,
    /// Parts of devices, by name.
    slices: Vec<&'static str>,
    optimizers: Vec<OptimizerEntry>,
    losses: Vec<&'static str>,
}

/// A class of torch.optim.
#[derive(Serialize)]
struct OptimizerEntry {
    name: &'static str,
    class: &'static str,
}

/// The devices, optimizers and losses that settings may name, as JSON.
#[must_use]
pub fn catalog() -> String {
    let classes = OptimizerClass::ALL.iter();
    let slices = devices::devices().iter().filter(|device| device.is_slice());
    json::line(&Catalog {
        schema: "xmem.page-catalog/1",
        program: concat!("xmem ", env!("CARGO_PKG_VERSION")),
        known: DevicesDocument::new(devices::devices()),
        slices: slices.map(|device| device.name.as_str()).collect(),
        optimizers: classes.map(|c| OptimizerEntry { name: c.name(), class: c.class() }).collect(),
        losses: LossChoice::ALL.iter().map(|loss| loss.name()).collect(),
    })
}
