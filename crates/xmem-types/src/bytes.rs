//! Sizes in bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes.
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;

/// A size in bytes.
///
/// Arithmetic saturates at zero and at 2^64 - 1. Sizes come from files that may say anything (a shape
/// of 2^32 x 2^32 x 2^32), and a size at the upper end is as good an answer as the right one: no device
/// has that much memory.
///
/// `Display` prints binary units with two decimals (`1.50 GiB`), as PyTorch's messages do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n * GIB)
    }

    /// The plain number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next multiple of `unit` that is not below `self`, or 2^64 - 1 where that is not a number of 64
    /// bits; `unit` must not be zero.
    #[must_use]
    pub const fn round_up(self, unit: Self) -> Self {
        Self(self.0.div_ceil(unit.0).saturating_mul(unit.0))
    }

    /// `self - other`, or zero where `other` is larger: the result of `-`, as a `const fn`, and
    /// explicit where it is expected.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The size in MiB as a float, for figures and ratios only.
    #[must_use]
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / MIB as f64
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        self.saturating_sub(rhs)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::add)
    }
}

/// The product of a tensor's extents, its number of elements; 2^64 - 1 where the product is larger.
/// Without extents (a 0-dimensional tensor) it is 1.
#[must_use]
pub fn saturating_product<'a>(extents: impl IntoIterator<Item = &'a u64>) -> u64 {
    extents.into_iter().fold(1, |product, &extent| product.saturating_mul(extent))
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let text = if n >= GIB {
            format!("{:.2} GiB", n as f64 / GIB as f64)
        } else if n >= MIB {
            format!("{:.2} MiB", n as f64 / MIB as f64)
        } else if n >= KIB {
            format!("{:.2} KiB", n as f64 / KIB as f64)
        } else {
            format!("{n} B")
        };
        f.pad(&text)
    }
}

/// The error of a size given as text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseBytesError {
    text: String,
    problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    NotASize,
    Negative,
    TooLarge,
    NoUnit,
}

impl fmt::Display for ParseBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.problem {
            Problem::NotASize => {
                write!(
                    f,
                    "`{text}` is not a size: write a number and a unit, like 24GiB, 512MiB or 1.5G"
                )
            }
            Problem::Negative => write!(f, "`{text}` is negative: a size is zero or more"),
            Problem::NoUnit => {
                let digits = text.trim();
                let is_gib = digits.parse::<f64>().is_ok_and(|number| number < 1024.0);
                let unit = if is_gib { "GiB" } else { "MiB" };
                write!(
                    f,
                    "`{text}` has no unit, and no device has that few bytes: write {digits}{unit}"
                )
            }
            Problem::TooLarge => write!(f, "`{text}` is too large: sizes are below 8388608TiB"),
        }
    }
}

impl std::error::Error for ParseBytesError {}

/// A device has no less; a smaller number without a unit was not meant as bytes.
const LEAST_DEVICE: Bytes = Bytes::mib(64);

impl Bytes {
    /// Reads the size of a device, or of a part of it, as [`str::parse`] does; `24` is refused, as 24 bytes are hardly
    /// meant.
    ///
    /// # Errors
    /// If the text is no size, or a number without a unit that is below 64 MiB and not 0.
    pub fn of_device(text: &str) -> Result<Self, ParseBytesError> {
        let size: Self = text.parse()?;
        let has_unit = text.trim().ends_with(|c: char| c.is_ascii_alphabetic());
        if has_unit || size == Self::ZERO || size >= LEAST_DEVICE {
            return Ok(size);
        }
        Err(ParseBytesError { text: text.to_owned(), problem: Problem::NoUnit })
    }
}

/// Sizes are given below 2^63 bytes, so that differences have a sign.
const MAX_SIZE: f64 = (1_u64 << 63) as f64;

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads `24GiB`, `24G`, `512 MiB`, `1.5g`, `100` (bytes) and the decimal units `GB`, `MB`,
    /// `kB`. A bare letter means the binary unit, as in nvidia-smi and PyTorch.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let because = |problem| ParseBytesError { text: text.to_owned(), problem };
        let error = || because(Problem::NotASize);
        let trimmed = text.trim();
        let last = trimmed.rfind(|c: char| c.is_ascii_digit() || c == '.').ok_or_else(error)?;
        let split = last + 1;
        let (number, unit) = trimmed.split_at(split);
        let number: f64 = number.trim().parse().map_err(|_| error())?;
        let scale = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => KIB as f64,
            "m" | "mib" => MIB as f64,
            "g" | "gib" => GIB as f64,
            "t" | "tib" => (GIB * 1024) as f64,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            _ => return Err(error()),
        };
        let bytes = number * scale;
        match bytes {
            _ if number.is_nan() => Err(error()),
            _ if bytes < 0.0 => Err(because(Problem::Negative)),
            _ if bytes >= MAX_SIZE => Err(because(Problem::TooLarge)),
            _ => Ok(Self(bytes.round() as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_device_needs_a_unit() {
        for (text, advice) in
            [("24", "24GiB"), (" 1.5 ", "1.5GiB"), ("24576", "24576MiB"), ("67108863", "MiB")]
        {
            let message = Bytes::of_device(text).expect_err(text).to_string();
            assert!(message.contains("has no unit") && message.contains(advice), "{message}");
        }
        for (text, bytes) in
            [("0", 0), ("24B", 24), ("67108864", 64 * MIB), ("24GiB", 24 * GIB), ("1k", 1024)]
        {
            assert_eq!(Bytes::of_device(text), Ok(Bytes(bytes)), "{text}");
        }
        assert!(Bytes::of_device("lots").expect_err("no size").to_string().contains("not a size"));
    }

    #[test]
    fn sizes_are_read_with_every_usual_unit() {
        for (text, bytes) in [
            ("100", 100),
            ("24GiB", 24 * GIB),
            ("24G", 24 * GIB),
            (" 512 MiB ", 512 * MIB),
            ("1.5g", GIB + GIB / 2),
            ("40GB", 40_000_000_000),
            ("2k", 2048),
            ("1e3k", 1_024_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1G", "1X", "nan", "1e40T"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for (text, problem) in [
            ("1X", "not a size"),
            ("nan", "not a size"),
            ("-1G", "is negative"),
            ("1e40T", "is too large"),
            ("9e9GiB", "is too large"),
            ("99999999TiB", "is too large: sizes are below 8388608TiB"),
        ] {
            let message = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(message.contains(problem), "{message}");
        }
    }

    #[test]
    fn sizes_beyond_64_bits_saturate_instead_of_wrapping() {
        let (most, half) = (Bytes(u64::MAX), Bytes(1 << 63));
        assert_eq!((half + half, [half; 3].into_iter().sum(), half * 2), (most, most, most));
        assert_eq!((most.round_up(Bytes(512)), half - most), (most, Bytes::ZERO));
        let mut size = half;
        size += half;
        assert_eq!(size, most);
        size -= most;
        size -= half;
        assert_eq!(size, Bytes::ZERO);
    }

    #[test]
    fn a_product_of_extents_saturates_unless_one_is_zero() {
        for (extents, elements) in [
            (&[][..], 1),
            (&[2, 3, 4], 24),
            (&[1 << 32, 1 << 32, 1 << 32], u64::MAX),
            (&[1 << 32, 1 << 32, 0], 0),
        ] {
            assert_eq!(saturating_product(extents), elements, "{extents:?}");
        }
    }

    #[test]
    fn display_uses_binary_units() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes::mib(20).to_string(), "20.00 MiB");
        assert_eq!(Bytes(GIB + GIB / 4).to_string(), "1.25 GiB");
    }
}
