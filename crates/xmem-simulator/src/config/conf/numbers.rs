//! Numbers as the C++ standard library reads them: what follows the number is ignored.

use crate::config::Feature;
use xmem_types::TorchVersion;

/// The syntax of whole numbers in a release.
#[derive(Clone, Copy, Debug)]
pub(super) enum Integers {
    /// `std::stoi`, whose result becomes a `size_t`.
    Int,
    /// `std::stoull` (`ConfigTokenizer::toSizeT`).
    UnsignedLongLong,
}

impl Integers {
    pub(super) fn of(release: TorchVersion) -> Self {
        if Feature::AcceleratorConfig.is_in(release) { Self::UnsignedLongLong } else { Self::Int }
    }

    /// The number that the text begins with; a negative one wraps around. `None` if there is none,
    /// or it is out of range.
    pub(super) fn integer(self, text: &str) -> Option<u64> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let digits = &digits[..digits.bytes().take_while(u8::is_ascii_digit).count()];
        let magnitude: u64 = digits.parse().ok()?;
        let most = match self {
            Self::Int => (1 << 31) - u64::from(!negative),
            Self::UnsignedLongLong => u64::MAX,
        };
        let value = if negative { magnitude.wrapping_neg() } else { magnitude };
        (magnitude <= most).then_some(value)
    }
}

/// `std::stod`: the longest beginning of the text that is a number.
pub(super) fn number(text: &str) -> Option<f64> {
    let ends = (1..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    ends.map(|end| &text[..end]).find_map(|beginning| beginning.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_number_is_ignored() {
        for (text, int, long) in [
            ("32x", Some(32), Some(32)),
            ("20.5", Some(20), Some(20)),
            ("-1", Some(u64::MAX), Some(u64::MAX)),
            ("+7", Some(7), Some(7)),
            ("2147483647", Some(2_147_483_647), Some(2_147_483_647)),
            ("2147483648", None, Some(2_147_483_648)),
            ("99999999999999999999", None, None),
            ("x32", None, None),
            ("", None, None),
            ("-", None, None),
        ] {
            assert_eq!(Integers::Int.integer(text), int, "{text}");
            assert_eq!(Integers::UnsignedLongLong.integer(text), long, "{text}");
        }
        for (text, value) in [("0.5abc", Some(0.5)), (".5", Some(0.5)), ("5e-1,", Some(0.5))] {
            assert_eq!(number(text), value, "{text}");
        }
        assert_eq!(number("abc"), None);
    }
}
