//! Two bounds of a size, as part of other documents.

use serde::Serialize;
use xmem::Bytes;
use xmem::predict::Bounds;

/// The least and the most.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BoundsDto {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl From<(Bytes, Bytes)> for BoundsDto {
    fn from((low, high): (Bytes, Bytes)) -> Self {
        Self { low: low.get(), high: high.get() }
    }
}

impl From<&Bounds> for BoundsDto {
    fn from(bounds: &Bounds) -> Self {
        Self { low: bounds.low.get(), high: bounds.high.get() }
    }
}
