//! Devices with their sources: text and `xmem.devices/1`.

pub(crate) mod json;
pub(crate) mod text;
