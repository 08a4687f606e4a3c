//! The inputs of a comparison between an estimate and a recording.

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
