//! An estimate against a recording: text and `xmem.validate/1`.

pub(crate) mod json;
pub(crate) mod text;

/// The inputs of a comparison as the user named them, and how far off it may be.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The trace.
    pub trace: &'a str,
    /// The snapshot.
    pub snapshot: &'a str,
    /// The device of the estimate.
    pub device: &'a str,
    /// The relative error of peak reserved up to which the estimate counts as close.
    pub tolerance: f64,
}
