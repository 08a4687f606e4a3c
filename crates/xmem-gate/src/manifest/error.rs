//! The error of a manifest.

/// The reason why a manifest cannot be read or annotated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Not YAML.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// The place at which an annotation belongs is not written in a way that can be changed.
    #[error("line {line}: {reason}")]
    Place {
        /// The line, from 1.
        line: usize,
        /// Why it cannot be changed.
        reason: &'static str,
    },
    /// The changed text does not say what it should.
    #[error("annotating would alter other parts of the manifest")]
    Unverified,
}
