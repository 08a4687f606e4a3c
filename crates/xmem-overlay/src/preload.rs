//! The library that is preloaded where namespaces are not allowed: `native/overlay.h` says how it works.

/// The file, if this system is supported.
#[cfg(preload)]
pub(crate) const LIBRARY: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("OUT_DIR"), "/libxmem-overlay.so")));
#[cfg(not(preload))]
pub(crate) const LIBRARY: Option<&[u8]> = None;
