//! A part of all recordings, so that several runs share them.

use std::num::NonZeroU64;
use std::str::FromStr;

/// One of the parts into which recordings are divided by their names, so that a new script moves no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: u64,
    of: NonZeroU64,
}

impl Part {
    /// The only part.
    pub const ALL: Self = Self { number: 0, of: NonZeroU64::MIN };

    /// Returns whether the recording with this name is in the part.
    pub fn contains(self, name: &str) -> bool {
        let sum: u64 = name.bytes().map(u64::from).sum();
        sum % self.of == self.number
    }
}

/// Parses `K/N`, the part K of N, of which the first is 0.
impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (number, of) = text.split_once('/')?;
            let part = Self { number: number.parse().ok()?, of: of.parse().ok()? };
            (part.number < part.of.get()).then_some(part)
        };
        parse().ok_or_else(|| format!("`{text}`: expected K/N with K below N, such as 0/3"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_is_in_one_part() {
        let parts = ["0/3", "1/3", "2/3"].map(|text| text.parse::<Part>().unwrap());
        let names: Vec<String> = (0..300).map(|at| format!("script_{at}")).collect();
        for name in &names {
            assert_eq!(parts.iter().filter(|part| part.contains(name)).count(), 1, "{name}");
            assert!(Part::ALL.contains(name));
        }
        for part in parts {
            let count = names.iter().filter(|name| part.contains(name)).count();
            assert!((70..130).contains(&count), "{count} of 300");
        }
    }

    #[test]
    fn a_part_is_below_the_number_of_parts() {
        for wrong in ["", "1", "3/3", "0/0", "-1/3", "a/b", "1/3/3"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }
}
