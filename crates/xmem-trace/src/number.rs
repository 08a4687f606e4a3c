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

/// A number of JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number<'a> {
    /// An integer of at most 18 digits.
    Int(i64),
    /// With decimals; in thousandths, if it has no sign, at most 15 digits before the point and at
    /// most three behind it.
    Decimal(Option<i64>, &'a [u8]),
}

impl<'a> Number<'a> {
    /// As times are kept.
    #[inline]
    pub(crate) fn time(self) -> Scalar<'a> {
        match self {
            Self::Int(value) => Scalar::Int(value),
            Self::Decimal(Some(value), _) => Scalar::Thousandths(value),
            Self::Decimal(None, text) => Scalar::Number(ascii(text)),
        }
    }

    /// As all else is kept.
    #[inline]
    pub(crate) fn scalar(self) -> Scalar<'a> {
        match self {
            Self::Int(value) => Scalar::Int(value),
            Self::Decimal(_, text) => Scalar::Number(ascii(text)),
        }
    }
}

/// Digits, a sign and a point.
fn ascii(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

/// The number at the beginning of `text`, and its length; `None` if it is missing or has an
/// exponent or very many digits.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<(Number<'_>, usize)> {
    let negative = text.first() == Some(&b'-');
    let first = usize::from(negative);
    let (whole, mut at) = digits(text, first, 0)?;
    if at - first > 18 || (text[first] == b'0' && at > first + 1) {
        return None;
    }
    let number = if text.get(at) == Some(&b'.') {
        let point = at;
        let (value, end) = digits(text, point + 1, whole)?;
        at = end;
        let value = if negative { None } else { in_thousandths(value, point, end - point - 1) };
        Number::Decimal(value, &text[..end])
    } else {
        let value = i64::try_from(whole).ok()?;
        Number::Int(if negative { -value } else { value })
    };
    // Whatever else stands here is for the caller to judge.
    (!matches!(text.get(at), Some(b'e' | b'E'))).then_some((number, at))
}

/// The digits from `from` on, at least one, appended to `value`, and where they end. The value is
/// right if there are no more than 18 altogether.
#[inline]
fn digits(text: &[u8], from: usize, mut value: u64) -> Option<(u64, usize)> {
    const SCALE: [u64; 9] =
        [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let mut at = from;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let bytes = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        // The highest bit of each byte that is not a digit; those behind the first may be wrong.
        let others = (bytes | bytes.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
        let count = others.trailing_zeros() as usize / 8;
        if count > 0 {
            // Digits move to the end, with zeros before them.
            let digits = of_eight(bytes << (8 * (8 - count)));
            value = value.wrapping_mul(SCALE[count]).wrapping_add(digits);
            at += count;
        }
        if count < 8 {
            return (at > from).then_some((value, at));
        }
    }
    while let Some(digit @ 0..=9) = text.get(at).map(|b| b.wrapping_sub(b'0')) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (at > from).then_some((value, at))
}

/// Behind the number at `from`, if it has nothing but digits, and so few that it is sure to be one.
#[inline]
pub(crate) fn plain_end(text: &[u8], from: usize) -> Option<usize> {
    if !matches!(text.get(from), Some(b'1'..=b'9')) {
        return None;
    }
    let mut at = from + 1;
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    let next = text.get(at)?;
    (at - from <= 18 && !matches!(next, b'.' | b'e' | b'E')).then_some(at)
}

/// Reads the thousandths of a number like `4377048574025.71` at the beginning of `text`: up to 15
/// digits, a point and up to three decimals, and nothing behind them that belongs to a number.
#[inline]
pub(crate) fn thousandths(text: &[u8]) -> Option<i64> {
    let (whole, point) = digits(text, 0, 0)?;
    if text.get(point) != Some(&b'.') {
        return None;
    }
    let (value, end) = digits(text, point + 1, whole).unwrap_or((whole, point + 1));
    if let Some(b'e' | b'E') = text.get(end) {
        return None;
    }
    in_thousandths(value, point, end - point - 1)
}

/// A number without its point, if there are no more than 15 digits before it and 3 behind it.
#[inline]
fn in_thousandths(value: u64, whole: usize, decimals: usize) -> Option<i64> {
    let scale = [1000, 100, 10, 1].get(decimals).filter(|_| whole <= 15)?;
    i64::try_from(value * scale).ok()
}

/// The number that eight digits make, the first one in the lowest byte.
#[inline]
fn of_eight(digits: u64) -> u64 {
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
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

/// `text * 10^decimals`, rounded half away from zero; `None` if `text` is not a decimal number or the
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
    fn plain_numbers_are_read_where_they_stand() {
        let decimal =
            |value: Option<i64>, text: &'static str| Number::Decimal(value, text.as_bytes());
        for (text, expected) in [
            ("0", Some(Number::Int(0))),
            ("-0,", Some(Number::Int(0))),
            ("-12]", Some(Number::Int(-12))),
            ("12345678", Some(Number::Int(12_345_678))),
            ("123456789 ", Some(Number::Int(123_456_789))),
            ("999999999999999999}", Some(Number::Int(999_999_999_999_999_999))),
            ("4377048574025.710,", Some(decimal(Some(4_377_048_574_025_710), "4377048574025.710"))),
            (
                "999999999999999.999",
                Some(decimal(Some(999_999_999_999_999_999), "999999999999999.999")),
            ),
            ("1.2345", Some(decimal(None, "1.2345"))),
            ("-1.5", Some(decimal(None, "-1.5"))),
            ("1234567890123456.5", Some(decimal(None, "1234567890123456.5"))),
            ("1000000000000000000", None),
            ("01", None),
            ("00.5", None),
            ("1.", None),
            (".5", None),
            ("-", None),
            ("", None),
            ("1e3", None),
            ("1.5E3", None),
            ("NaN", None),
        ] {
            let found = number(text.as_bytes());
            assert_eq!(found.map(|(number, _)| number), expected, "{text}");
            let end =
                text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
            assert_eq!(found.map(|(_, length)| length), expected.map(|_| end), "{text}");
        }
        for (text, end) in
            [("12,", Some(2)), ("0,", None), ("12", None), ("1.5,", None), ("-1,", None)]
        {
            assert_eq!(plain_end(text.as_bytes(), 0), end, "{text}");
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
