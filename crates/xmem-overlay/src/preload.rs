//! The library that is preloaded where namespaces are not allowed.

/// The file, if this system is supported.
pub(crate) const LIBRARY: Option<&[u8]> = None;
