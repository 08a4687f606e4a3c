//! Quantities of resources: numbers as Kubernetes writes them (apimachinery,
//! `pkg/api/resource/quantity.go`, `Quantity` and `parseQuantityString`).

use serde_json::Value;

/// The longest text of a quantity; what is longer is none that anybody writes.
const MAX_LENGTH: usize = 256;

/// The whole units of a quantity, rounded up as Kubernetes' `Quantity.Value` does; what is larger than 64 bits
/// hold is the largest of them. None if it is no quantity, or negative, which no request is.
pub(super) fn whole_units(value: &Value) -> Option<u64> {
    match value {
        // Kubernetes trims text, and reads a number as its text.
        Value::String(text) => units(text.trim()),
        Value::Number(number) => units(&number.to_string()),
        _ => None,
    }
}

/// A sign, digits with at most one point, and a suffix.
fn units(text: &str) -> Option<u64> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let (is_negative, number) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (number, suffix) = number.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let scale = scale(suffix)?;
    let digits: Vec<u8> = [whole, fraction].concat().bytes().map(|digit| digit - b'0').collect();
    let units = match scale {
        Scale::Decimal(exponent) => {
            let point = i64::try_from(whole.len()).ok()?.saturating_add(exponent.into());
            decimal(&digits, point)
        }
        Scale::Binary(bits) => binary(&digits, whole.len(), bits),
    };
    if is_negative && units > 0 {
        return None;
    }
    Some(units)
}

/// The factor that a suffix stands for.
enum Scale {
    /// A power of ten.
    Decimal(i32),
    /// A power of two.
    Binary(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "" => Scale::Decimal(0),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => Scale::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// The digits with the point behind the first `point` of them, rounded up.
fn decimal(digits: &[u8], point: i64) -> u64 {
    let is_behind = |at: usize| i64::try_from(at).is_ok_and(|at| at >= point);
    let significant = digits.iter().position(|digit| *digit > 0);
    let Some(first) = significant else { return 0 };
    // Twenty digits are more than 64 bits hold.
    if point - i64::try_from(first).unwrap_or(i64::MAX) > 20 {
        return u64::MAX;
    }
    let mut units = 0_u64;
    for at in first..usize::try_from(point).unwrap_or(0) {
        let digit = digits.get(at).copied().unwrap_or(0);
        units = units.saturating_mul(10).saturating_add(digit.into());
    }
    let has_fraction = digits.iter().enumerate().any(|(at, digit)| is_behind(at) && *digit > 0);
    units.saturating_add(has_fraction.into())
}

/// The same number times a power of two, rounded up.
fn binary(digits: &[u8], point: usize, bits: u32) -> u64 {
    let (whole, fraction) = digits.split_at(point);
    let whole = decimal(whole, i64::try_from(point).unwrap_or(i64::MAX));
    // The digits of the fraction are doubled as on paper, and what is carried out of them is whole.
    let mut fraction = fraction.to_vec();
    let mut carried = 0_u64;
    for _ in 0..bits {
        let mut carry = 0;
        for digit in fraction.iter_mut().rev() {
            let doubled = *digit * 2 + carry;
            (*digit, carry) = (doubled % 10, doubled / 10);
        }
        carried = carried.saturating_mul(2).saturating_add(carry.into());
    }
    let is_left = fraction.iter().any(|digit| *digit > 0);
    whole.saturating_mul(1 << bits).saturating_add(carried).saturating_add(is_left.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_spelling_of_a_quantity_is_read() {
        for value in [
            json!(1),
            json!(1.0),
            json!("1"),
            json!("+1"),
            json!("1.0"),
            json!("1."),
            json!("01"),
            json!(" 1 "),
            json!("1e0"),
            json!("1E0"),
            json!("10e-1"),
            json!("1000m"),
            json!("1000000u"),
            json!("1000000000n"),
            json!("0.001k"),
            json!("1E-0"),
            json!("0.0009765625Ki"),
        ] {
            assert_eq!(whole_units(&value), Some(1), "{value}");
        }
        for (text, units) in [
            ("0", 0),
            ("-0", 0),
            ("0.0", 0),
            ("0e9", 0),
            ("0Ei", 0),
            ("2.0", 2),
            (".5", 1),
            ("1.5", 2),
            ("500m", 1),
            ("1500m", 2),
            ("1n", 1),
            ("3k", 3_000),
            ("1M", 1_000_000),
            ("1G", 1_000_000_000),
            ("1T", 1_000_000_000_000),
            ("1P", 1_000_000_000_000_000),
            ("1E", 1_000_000_000_000_000_000),
            ("1e3", 1_000),
            ("1E3", 1_000),
            ("1e+3", 1_000),
            ("1.25e1", 13),
            ("1Ki", 1 << 10),
            ("1.5Ki", 1536),
            ("0.1Ki", 103),
            ("1Mi", 1 << 20),
            ("1Gi", 1 << 30),
            ("1Ti", 1 << 40),
            ("1Pi", 1 << 50),
            ("1Ei", 1 << 60),
            ("18446744073709551615", u64::MAX),
            ("18446744073709551616", u64::MAX),
            ("99999999999G", u64::MAX),
            ("16Ei", u64::MAX),
            ("1e2000000000", u64::MAX),
            ("1e-2000000000", 1),
        ] {
            assert_eq!(whole_units(&json!(text)), Some(units), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_not_taken_for_zero() {
        for value in [
            json!(""),
            json!("+"),
            json!("."),
            json!("-1"),
            json!(-1),
            json!("-1m"),
            json!("one"),
            json!("1x"),
            json!("1 k"),
            json!("1ki"),
            json!("1K"),
            json!("1e"),
            json!("1e1.5"),
            json!("1e99999999999"),
            json!("1.2.3"),
            json!("0x1"),
            json!("1Gi1"),
            json!("１"),
            json!("1".repeat(257)),
            json!(null),
            json!(true),
            json!(["1"]),
            json!({"value": 1}),
        ] {
            assert_eq!(whole_units(&value), None, "{value}");
        }
    }
}
