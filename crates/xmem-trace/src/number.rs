//! Exact numbers: decimal text to integers without a float in between.

use xmem_types::Nanos;

/// A scalar as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar<'a> {
    /// A JSON integer that fits.
    Int(i64),
    /// A JSON number with at most three decimals, in thousandths: a time, as it nearly always is.
    Thousandths(i64),
    /// Any other JSON number, as written.
    Number(&'a str),
    /// The content of a string.
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// From the text of a JSON number.
    pub(crate) fn from_number(text: &'a str) -> Self {
        match plain_integer(text.as_bytes()) {
            Some(value) => Self::Int(value),
            None => Self::Number(text),
        }
    }

    /// The value rounded to an integer; strings may hold decimal or `0x` hexadecimal numbers.
    pub(crate) fn integer(self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(value)),
            Self::Thousandths(value) => {
                let half = 500 * i128::from(value.signum());
                Some((i128::from(value) + half) / 1000)
            }
            Self::Number(text) => scaled(text.as_bytes(), 0),
            Self::Text(text) => match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
                None => scaled(text.as_bytes(), 0),
            },
        }
    }

    /// The value rounded to an integer, where it fits.
    pub(crate) fn i64(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            _ => self.integer().and_then(|v| i64::try_from(v).ok()),
        }
    }

    /// The value as an unsigned integer; negative ones wrap as a C cast does.
    pub(crate) fn u64(self) -> Option<u64> {
        let value = self.integer()?;
        u64::try_from(value).ok().or_else(|| i64::try_from(value).ok().map(|v| v as u64))
    }

    /// A number of microseconds as exact nanoseconds (rounded half away from zero beyond three
    /// decimals).
    pub(crate) fn micros(self) -> Option<Nanos> {
        match self {
            Self::Int(value) => value.checked_mul(1000).map(Nanos),
            Self::Thousandths(value) => Some(Nanos(value)),
            Self::Number(text) | Self::Text(text) => {
                scaled(text.as_bytes(), 3).and_then(|v| i64::try_from(v).ok()).map(Nanos)
            }
        }
    }
}

/// Reads the thousandths of a number like `4377048574025.71` at the beginning of `text`: up to 15
/// digits, a point and up to three decimals, and nothing behind them that belongs to a number.
#[inline]
pub(crate) fn thousandths(text: &[u8]) -> Option<i64> {
    let mut value = 0u64;
    let mut at = 0;
    if let Some(eight) = text.first_chunk::<8>().and_then(eight_digits) {
        value = eight;
        at = 8;
    }
    while let Some(digit @ 0..=9) = text.get(at).map(|b| b.wrapping_sub(b'0')) {
        value = value * 10 + u64::from(digit);
        at += 1;
        if at > 15 {
            return None;
        }
    }
    if at == 0 || text.get(at) != Some(&b'.') {
        return None;
    }
    at += 1;
    let mut decimals = 0;
    while let Some(digit @ 0..=9) = text.get(at).map(|b| b.wrapping_sub(b'0')) {
        value = value * 10 + u64::from(digit);
        at += 1;
        decimals += 1;
        if decimals > 3 {
            return None;
        }
    }
    if let Some(b'e' | b'E') = text.get(at) {
        return None;
    }
    let scale = [1000, 100, 10, 1][decimals];
    i64::try_from(value * scale).ok()
}

/// The value of eight decimal digits, if all are.
#[inline]
fn eight_digits(text: &[u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(*text) ^ 0x3030_3030_3030_3030;
    if (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// Reads `-?[0-9]{1,18}` and nothing else.
fn plain_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// `text * 10^decimals`, rounded half away from zero; `None` if `text` is no decimal number or the
/// result is beyond 2^96 or so.
fn scaled(text: &[u8], decimals: i32) -> Option<i128> {
    let mut at = 0;
    let negative = match text.first()? {
        b'-' => {
            at = 1;
            true
        }
        b'+' => {
            at = 1;
            false
        }
        _ => false,
    };
    let mut mantissa = 0i128;
    let mut exponent = decimals;
    let mut digits = 0usize;
    let mut dropped_first = None;
    let mut in_fraction = false;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                let digit = i128::from(byte - b'0');
                if mantissa < 1i128 << 96 {
                    mantissa = mantissa * 10 + digit;
                    exponent -= i32::from(in_fraction);
                } else {
                    dropped_first.get_or_insert(digit);
                    exponent = exponent.checked_add(i32::from(!in_fraction))?;
                }
            }
            b'.' if !in_fraction => in_fraction = true,
            _ => break,
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let power = std::str::from_utf8(&text[at + 1..]).ok()?;
        let power: i64 = power.strip_prefix('+').unwrap_or(power).parse().ok()?;
        exponent =
            i32::try_from(i64::from(exponent).saturating_add(power).clamp(-1_000_000, 1_000_000))
                .ok()?;
        at = text.len();
    }
    if at != text.len() {
        return None;
    }
    let magnitude = if mantissa == 0 {
        0
    } else if exponent >= 0 {
        let factor = 10i128.checked_pow(u32::try_from(exponent).ok()?)?;
        mantissa.checked_mul(factor)?
    } else {
        match 10i128.checked_pow(exponent.unsigned_abs()) {
            Some(divisor) => {
                let (quotient, rest) = (mantissa / divisor, mantissa % divisor);
                quotient + i128::from(rest >= divisor - rest)
            }
            None => 0,
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_exact_nanoseconds() {
        for (text, nanos) in [
            ("4377048574025.710", Some(4_377_048_574_025_710)),
            ("1795232304855791", Some(1_795_232_304_855_791_000)),
            ("1795232304855791.123", Some(1_795_232_304_855_791_123)),
            ("0.0005", Some(1)),
            ("0.00049999999999999999999999999999999999999999999999999999", Some(0)),
            ("-1.5", Some(-1500)),
            ("1e3", Some(1_000_000)),
            ("1.5E-3", Some(2)),
            ("1e-400", Some(0)),
            ("0e999999999999", Some(0)),
            ("7.", Some(7000)),
            ("1e30", None),
            ("9223372036854775807", None),
            ("NaN", None),
            ("", None),
            ("-", None),
            ("1x", None),
        ] {
            assert_eq!(Scalar::from_number(text).micros(), nanos.map(Nanos), "{text}");
        }
    }

    #[test]
    fn usual_times_take_the_short_way_with_the_same_result() {
        for (text, value) in [
            ("4377048574025.710", Some(4_377_048_574_025_710)),
            ("4377048574025.7,", Some(4_377_048_574_025_700)),
            ("12345678.001 ", Some(12_345_678_001)),
            ("1.25", Some(1250)),
            ("0.", Some(0)),
            ("999999999999999.999", Some(999_999_999_999_999_999)),
            ("1234567890123456.5", None),
            ("1.2345", None),
            ("1.5e3", None),
            ("12", None),
            ("-1.5", None),
            (".5", None),
            ("12345/78.1", None),
        ] {
            assert_eq!(thousandths(text.as_bytes()), value, "{text}");
            let number = text.trim_end_matches([',', ' ']);
            if let Some(value) = value {
                assert_eq!(Scalar::Text(number).micros(), Some(Nanos(value)), "{text}");
                let (short, long) = (Scalar::Thousandths(value), Scalar::Text(number));
                assert_eq!(short.integer(), long.integer(), "{text}");
            }
        }
    }

    #[test]
    fn integers_come_from_numbers_and_strings() {
        assert_eq!(Scalar::from_number("140220551913536"), Scalar::Int(140_220_551_913_536));
        assert_eq!(Scalar::from_number("18446744073709551615").u64(), Some(u64::MAX));
        assert_eq!(Scalar::Text("0x7f").u64(), Some(127));
        assert_eq!(Scalar::Int(-1).u64(), Some(u64::MAX));
        assert_eq!(Scalar::Text("1e9").i64(), Some(1_000_000_000));
        assert_eq!(Scalar::Text("pool").u64(), None);
    }
}
