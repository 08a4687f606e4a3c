//! Limits on how much is read from one input, so that a small file does not fill the memory.

use crate::Bytes;
use std::fmt;

/// Limits on the text of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// The most text, inflated if it is compressed.
    pub size: Bytes,
    /// The most text for each byte of compressed input, beyond the first [`Self::FREE`]; none for any
    /// amount. Of 240 recorded traces and snapshots, the one that inflates most has 39.
    pub ratio: Option<u64>,
}

/// The limit that an input exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// There is more text than this.
    Size(Bytes),
    /// There is more than this many bytes of text for each byte of compressed input.
    Ratio(u64),
}

impl InputLimits {
    /// The usual limit on text for each byte of compressed input.
    pub const RATIO: u64 = 250;
    /// Text to which the ratio does not apply: short files may repeat themselves.
    pub const FREE: Bytes = Bytes::mib(64);

    /// The most text that `compressed` bytes of input may inflate to.
    #[must_use]
    pub fn inflated(&self, compressed: Bytes) -> Bytes {
        let by_ratio = self.ratio.map(|ratio| Self::FREE + compressed * ratio);
        by_ratio.map_or(self.size, |most| most.min(self.size))
    }

    /// The limit that `text` exceeds, which `compressed` bytes of input have inflated to; for plain input,
    /// both are the same.
    #[must_use]
    pub fn exceeded(&self, compressed: Bytes, text: Bytes) -> Option<ExceededLimit> {
        match self.ratio {
            _ if text > self.size => Some(ExceededLimit::Size(self.size)),
            Some(ratio) if text > self.inflated(compressed) => Some(ExceededLimit::Ratio(ratio)),
            _ => None,
        }
    }
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "has more than {size} of text"),
            Self::Ratio(ratio) => write!(
                f,
                "inflates to more than {ratio} times its size, as files do that are made to fill the memory"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_limited_by_size_and_by_ratio() {
        let limits = InputLimits { size: Bytes::gib(1), ratio: Some(250) };
        let most = Bytes::mib(64) + Bytes::mib(2) * 250;
        assert_eq!(limits.inflated(Bytes::mib(2)), most);
        assert_eq!(limits.exceeded(Bytes::mib(2), most), None);
        let ratio = limits.exceeded(Bytes::mib(2), most + Bytes(1));
        assert_eq!(ratio, Some(ExceededLimit::Ratio(250)));
        let size = limits.exceeded(Bytes::gib(4), Bytes::gib(1) + Bytes(1));
        assert_eq!(size, Some(ExceededLimit::Size(Bytes::gib(1))));
        assert_eq!(InputLimits { ratio: None, ..limits }.exceeded(Bytes(9), Bytes::gib(1)), None);
    }
}
