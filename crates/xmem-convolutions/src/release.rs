//! Releases of cuDNN, as far as they decide what can be asked.

use std::fmt;

/// A release of cuDNN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudnnRelease {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl CudnnRelease {
    /// The first release that answers without a GPU (`CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR`, NVIDIA's release
    /// notes of cuDNN 9.8.0).
    pub const FIRST_ASKED: Self = Self { major: 9, minor: 8 };

    /// The release that a text names (`9.19.0`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| part.parse().ok());
        Some(Self { major: numbers.next()??, minor: numbers.next()?? })
    }

    /// Returns whether the release answers without a GPU.
    #[must_use]
    pub fn can_be_asked(self) -> bool {
        self >= Self::FIRST_ASKED
    }
}

impl fmt::Display for CudnnRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_its_first_two_numbers() {
        for (text, release, can_be_asked) in [
            ("9.19.0", Some((9, 19)), true),
            ("9.8.0", Some((9, 8)), true),
            ("9.5.1", Some((9, 5)), false),
            ("8.9.2.26", Some((8, 9)), false),
            ("10.0", Some((10, 0)), true),
            ("9", None, false),
            ("nine.one", None, false),
            ("", None, false),
        ] {
            let parsed = CudnnRelease::parse(text);
            assert_eq!(parsed.map(|r| (r.major, r.minor)), release, "{text}");
            assert_eq!(parsed.is_some_and(CudnnRelease::can_be_asked), can_be_asked, "{text}");
        }
    }
}
