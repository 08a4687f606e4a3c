//! PyTorch releases.

use std::fmt;
use std::str::FromStr;

/// A PyTorch release, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TorchVersion {
    /// 2 in 2.11.
    pub major: u16,
    /// 11 in 2.11.
    pub minor: u16,
}

impl TorchVersion {
    /// The release `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl Default for TorchVersion {
    /// The release that the recorded traces come from.
    fn default() -> Self {
        Self { major: 2, minor: 11 }
    }
}

impl fmt::Display for TorchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for TorchVersion {
    type Err = String;

    /// Reads `2.6`, `2.6.0`, `2.11.0+cu130`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || format!("`{text}` is not a PyTorch version: write it like 2.6 or 2.11.0");
        let mut parts = text.trim().trim_start_matches('v').split('.');
        let mut number = || parts.next().and_then(|p| p.parse().ok()).ok_or_else(error);
        Ok(Self::new(number()?, number()?))
    }
}
