//! The table of devices.

use crate::style::Style;
use crate::table::{Align, Table};
use xmem::{Bytes, Device};

/// The context with its bounds, in MiB.
fn context(device: &Device) -> String {
    let (low, high) = device.context_bounds();
    let mib = |size: Bytes| size.get() >> 20;
    match low == high {
        true => format!("{} MiB", mib(low)),
        false => format!("{} MiB ({}–{})", mib(device.context), mib(low), mib(high)),
    }
}

/// A row for each device, and the meaning of the columns.
#[must_use]
pub fn devices<'a>(devices: impl IntoIterator<Item = &'a Device>, style: &Style) -> String {
    let mut page = table(devices).render(style);
    page += MEANING;
    page += "  Shared memory is the host's too: the context counts what the host takes of it.\n";
    page += "  `xmem devices --mig` lists MIG slices. For another GPU use --device-file or --capacity 24GiB.\n";
    page
}

/// The same of MIG slices.
#[must_use]
pub fn slices<'a>(slices: impl IntoIterator<Item = &'a Device>, style: &Style) -> String {
    let mut page = table(slices).render(style);
    page += MEANING;
    page += "  A slice is a GPU instance of MIG with its one compute instance.\n";
    page
}

const MEANING: &str = "\n  memory: total of torch.cuda.mem_get_info(); context: what a process takes outside PyTorch,\n  \
    with its range; for PyTorch: memory minus context. --format json gives the source of each number.\n";

fn table<'a>(devices: impl IntoIterator<Item = &'a Device>) -> Table {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("memory", Align::Right),
        ("context", Align::Right),
        ("for PyTorch", Align::Right),
        ("sm", Align::Right),
        ("SMs", Align::Right),
        ("device", Align::Rest),
    ]);
    for device in devices {
        table.row([
            device.name.clone(),
            device.memory.to_string(),
            context(device),
            device.available().to_string(),
            device.compute_capability.to_string(),
            device.sms.to_string(),
            title(device),
        ]);
    }
    table
}

/// The name that torch prints, and what is different about the device.
fn title(device: &Device) -> String {
    let mark = if device.shares_host_memory { " (shared memory)" } else { "" };
    format!("{}{mark}", device.title)
}
