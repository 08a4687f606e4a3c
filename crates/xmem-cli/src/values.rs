//! Values of options: one parser for each kind, whatever the command. Sizes, ranges of iterations and lengths are types of
//! the libraries, which parse themselves.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;
use xmem::Bytes;

/// A parser of text for which shells offer values. Others are accepted as well: what they mean is decided later.
#[derive(Clone)]
pub(crate) struct Offered(fn() -> Vec<PossibleValue>);

impl Offered {
    pub(crate) const fn new(values: fn() -> Vec<PossibleValue>) -> Self {
        Self(values)
    }
}

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// Parses a number from 1 up.
pub(crate) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| match is_number {
        true if text.bytes().any(|byte| byte != b'0') => "the number is too large".to_owned(),
        _ => "expected a whole number from 1 up".to_owned(),
    })
}

/// Parses a number from 1 to `MAX`.
pub(crate) fn count_up_to<const MAX: u32>(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse().ok().filter(|number: &NonZeroU32| number.get() <= MAX);
    number.ok_or_else(|| format!("expected a number from 1 to {MAX}"))
}

/// Parses a share: `0.05` or `5%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = match text.trim().strip_suffix('%') {
        // Rounded once, as the same share without the sign is.
        Some(percent) => format!("{}e-2", percent.trim_end()).parse(),
        None => text.parse(),
    };
    let share = number.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, for example 0.8 or 80%".to_owned())
}

/// Parses a share above zero.
pub(crate) fn share_above_zero(text: &str) -> Result<f64, String> {
    let positive = share(text).ok().filter(|share| *share > 0.0);
    positive
        .ok_or_else(|| "expected a share above 0 and up to 1, for example 0.05 or 5%".to_owned())
}

/// Parses a share, `0.05` or `5%`, or a size.
pub(crate) fn share_or_size<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    let percentage = percentage_of(text);
    percentage.as_deref().unwrap_or(text).parse().map_err(|error: T::Err| error.to_string())
}

/// `5%` for `0.05`; none for what is not a number between 0 and 1 with decimals.
fn percentage_of(text: &str) -> Option<String> {
    let decimals = text.trim().trim_start_matches('0').strip_prefix('.')?.trim_end_matches('0');
    if decimals.is_empty() || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{decimals:0<2}");
    let (whole, rest) = padded.split_at(2);
    let whole = whole.strip_prefix('0').unwrap_or(whole);
    Some(if rest.is_empty() { format!("{whole}%") } else { format!("{whole}.{rest}%") })
}

/// Parses a duration longer than zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("the time must be longer than zero".to_owned()),
        Err(_) => Err("expected a number and a unit, for example 90s, 30m or 2h".to_owned()),
    }
}

/// Parses a bandwidth in 10^9 bytes per second.
pub(crate) fn bandwidth(text: &str) -> Result<Bytes, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| *number >= 0.001 && *number <= 1e6);
    number
        .map(|number| Bytes((number * 1e9) as u64))
        .ok_or_else(|| "expected a number from 0.001 up, for example 12".to_owned())
}

/// A value of an option that takes names, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection<T> {
    All,
    One(T),
}

impl<T: Copy + PartialEq> Selection<T> {
    /// Everything that is selected, each once; `all` is what `all` stands for.
    pub(crate) fn each(selected: &[Self], all: &[T]) -> Vec<T> {
        let mut each = Vec::new();
        for selection in selected {
            let values = match selection {
                Self::All => all,
                Self::One(value) => std::slice::from_ref(value),
            };
            for value in values {
                if !each.contains(value) {
                    each.push(*value);
                }
            }
        }
        each
    }
}

/// Parses a name or `all`; `known` lists the names.
pub(crate) fn selection<T: FromStr<Err: Display>>(
    name: &str,
    known: impl FnOnce() -> String,
) -> Result<Selection<T>, String> {
    if name == "all" {
        return Ok(Selection::All);
    }
    let parsed = name.parse().map(Selection::One);
    parsed.map_err(|error: T::Err| format!("{error}; there are all, {}", known()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_gate::Margin;
    use xmem_studies::difference::GrowthLimit;

    #[test]
    fn shares_are_numbers_or_percentages() {
        for (text, expected) in [
            ("0", Some(0.0)),
            ("1", Some(1.0)),
            ("0.01", Some(0.01)),
            ("1%", Some(0.01)),
            ("0.8", Some(0.8)),
            ("80%", Some(0.8)),
            (" 2.5 %", Some(0.025)),
            ("0.1%", Some(0.001)),
            ("100%", Some(1.0)),
            ("5", None),
            ("101%", None),
            ("-1%", None),
            ("%", None),
            ("1e1%", None),
            ("NaN", None),
            ("much", None),
            ("", None),
        ] {
            assert_eq!(share(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn some_shares_are_above_zero() {
        for (text, expected) in [
            ("5%", Some(0.05)),
            ("0.05", Some(0.05)),
            ("1", Some(1.0)),
            ("0", None),
            ("5", None),
            ("five", None),
        ] {
            assert_eq!(share_above_zero(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn shares_stand_where_sizes_do() {
        let mib = Bytes::mib(100);
        for (text, margin, limit) in [
            ("5%", Some(Margin::PerMille(50)), Some(GrowthLimit::Share(5000))),
            ("0.05", Some(Margin::PerMille(50)), Some(GrowthLimit::Share(5000))),
            (".05", Some(Margin::PerMille(50)), Some(GrowthLimit::Share(5000))),
            ("0.015", Some(Margin::PerMille(15)), Some(GrowthLimit::Share(1500))),
            ("0.5", Some(Margin::PerMille(500)), Some(GrowthLimit::Share(50_000))),
            ("0.120", Some(Margin::PerMille(120)), Some(GrowthLimit::Share(12_000))),
            ("0.0005", None, Some(GrowthLimit::Share(50))),
            ("100MiB", Some(Margin::Size(mib)), Some(GrowthLimit::Size(mib))),
            ("0", Some(Margin::Size(Bytes::ZERO)), Some(GrowthLimit::Size(Bytes::ZERO))),
            ("0.0", Some(Margin::Size(Bytes::ZERO)), Some(GrowthLimit::Size(Bytes::ZERO))),
            (
                "0.5GiB",
                Some(Margin::Size(Bytes::mib(512))),
                Some(GrowthLimit::Size(Bytes::mib(512))),
            ),
            ("5", Some(Margin::Size(Bytes(5))), None),
            ("1.5", Some(Margin::Size(Bytes(2))), None),
            ("much", None, None),
        ] {
            assert_eq!(share_or_size(text).ok(), margin, "{text}");
            assert_eq!(share_or_size(text).ok(), limit, "{text}");
        }
    }

    #[test]
    fn numbers_begin_with_one() {
        for (text, expected) in [
            ("1", Ok(1)),
            ("64", Ok(64)),
            ("300", Err("the number is too large")),
            ("0", Err("expected a whole number from 1 up")),
            ("-1", Err("expected a whole number from 1 up")),
            ("", Err("expected a whole number from 1 up")),
        ] {
            let number = count::<std::num::NonZeroU8>(text).map(std::num::NonZeroU8::get);
            assert_eq!(number.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
        }
        for (text, is_number) in [("1", true), ("64", true), ("65", false), ("0", false)] {
            assert_eq!(count_up_to::<64>(text).is_ok(), is_number, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in
            [("90s", Some(90)), ("2m", Some(120)), ("1h 1s", Some(3601)), ("0s", None), ("5", None)]
        {
            assert_eq!(duration(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn each_selected_value_counts_once() {
        let known = || "1, 2".to_owned();
        let parse = |names: &[&str]| -> Result<Vec<Selection<u8>>, String> {
            names.iter().map(|name| selection(name, known)).collect()
        };
        for (names, expected) in [
            (&["2", "1", "2"][..], &[2, 1][..]),
            (&["all"], &[1, 2]),
            (&["3", "all"], &[3, 1, 2]),
            (&[], &[]),
        ] {
            let selected = parse(names).expect("names");
            assert_eq!(Selection::each(&selected, &[1, 2]), expected, "{names:?}");
        }
        let refused = parse(&["x"]).expect_err("no number");
        assert!(refused.ends_with("; there are all, 1, 2"), "{refused}");
    }
}
