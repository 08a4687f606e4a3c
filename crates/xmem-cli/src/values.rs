//! Values of options.

use std::str::FromStr;
use std::time::Duration;

/// Parses a number from 1 up.
pub(crate) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| match is_number {
        true if text.bytes().any(|byte| byte != b'0') => "the number is too large".to_owned(),
        _ => "expected a whole number from 1 up".to_owned(),
    })
}

/// Parses a fraction from 0 to 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction.ok_or_else(|| "expected a number from 0 to 1, for example 0.8".into())
}

pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("the time must be longer than zero".to_owned()),
        Err(_) => Err("expected a number and a unit, for example 90s, 30m or 2h".to_owned()),
    }
}
