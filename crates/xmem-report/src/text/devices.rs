//! The table of devices.

use super::look::Look;
use super::tabular::{Align, Tabular};
use xmem::Device;

/// A row per device, and how to use the names.
#[must_use]
pub fn devices(devices: &[Device], look: &Look) -> String {
    let mut table = Tabular::new(&[
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
            device.context.to_string(),
            device.available().to_string(),
            device.compute_capability.to_string(),
            device.sms.to_string(),
            device.title.clone(),
        ]);
    }
    let mut page = table.render(look);
    page += "\n  memory is what torch.cuda.mem_get_info() calls total; the sources of all numbers are \
             in\n  --format json. Another GPU: --device-file, or --capacity 24GiB.\n";
    page
}
