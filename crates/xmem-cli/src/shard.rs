//! One part of the work of several machines: `--shard 3/64`.

use std::str::FromStr;

/// One part of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) of: u64,
}

impl Shard {
    /// Returns whether a job of a fixed list, by its place, is in this part: parts of one size.
    pub(crate) fn has(self, place: usize) -> bool {
        place as u64 % self.of == self.number - 1
    }

    /// Returns whether a file, by its name, is in this part: the same one on every machine, whatever comes to its folder
    /// while the parts run. They are of about one size.
    pub(crate) fn has_name(self, name: &str) -> bool {
        let hash = blake3::hash(name.as_bytes());
        let (first, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
        u64::from_le_bytes(*first) % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a part and the number of parts, for example 3/64".to_owned();
        let (number, of) = text.split_once('/').ok_or_else(expected)?;
        let (number, of) = number.parse().ok().zip(of.parse().ok()).ok_or_else(expected)?;
        if number == 0 || number > of {
            return Err(format!("parts are counted from 1 to {of}"));
        }
        Ok(Self { number, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(of: u64) -> Vec<Shard> {
        (1..=of).map(|number| format!("{number}/{of}").parse().expect("a shard")).collect()
    }

    #[test]
    fn shards_have_each_job_once() {
        for place in 0..10 {
            assert_eq!(shards(3).iter().filter(|shard| shard.has(place)).count(), 1, "{place}");
        }
        for text in ["3", "0/3", "4/3", "a/3", "1/"] {
            text.parse::<Shard>().expect_err(text);
        }
    }

    #[test]
    fn shards_have_each_name_once_and_about_as_many() {
        let names: Vec<String> = (0..6400).map(|i| format!("runs/{i}/trace.json.zst")).collect();
        let of = shards(64);
        for name in &names {
            assert_eq!(of.iter().filter(|shard| shard.has_name(name)).count(), 1, "{name}");
        }
        let sizes = of.iter().map(|shard| names.iter().filter(|name| shard.has_name(name)).count());
        // Six standard deviations of 100 names in a part.
        assert!(
            sizes.clone().all(|size| size.abs_diff(100) < 60),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_name_is_in_the_same_shard_in_every_release() {
        let of_64 =
            |name: &str| 1 + shards(64).iter().position(|shard| shard.has_name(name)).expect("one");
        assert_eq!(["a.json", "runs/b.json.zst"].map(of_64), [29, 17]);
    }
}
