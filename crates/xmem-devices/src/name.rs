//! Comparing device names as people write them.

/// Words that name the vendor or the product line only, and do not tell cards apart.
const NOISE: [&str; 3] = ["nvidia", "geforce", "tesla"];

/// Units of a memory size, which are written with or without a space.
const UNITS: [&str; 3] = ["g", "gb", "gib"];

/// A name, taken apart: lower case, without punctuation and vendor words, sizes of memory as `40g`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    words: Vec<String>,
}

impl Name {
    pub(crate) fn new(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let mut words: Vec<String> = Vec::new();
        for word in lower.split(|c: char| !c.is_ascii_alphanumeric()) {
            match words.last_mut() {
                _ if word.is_empty() || NOISE.contains(&word) => {}
                Some(number) if UNITS.contains(&word) && is_number(number) => number.push('g'),
                _ => {
                    words.push(size(word).map_or_else(|| word.to_owned(), |gib| format!("{gib}g")));
                }
            }
        }
        Self { words }
    }

    /// The form in which names are compared. `NVIDIA GeForce RTX 3060` and `rtx-3060` are the same, and so are
    /// `A100 80GB` and `a100-80g`.
    pub(crate) fn key(&self) -> String {
        self.words.concat()
    }

    /// The keys that the name may have: a number at its end may be a size without its unit (`a100-40`).
    pub(crate) fn keys(&self) -> Vec<String> {
        let has_size =
            self.words.len() > 1 && self.words.last().is_some_and(|last| is_number(last));
        let with_unit = has_size.then(|| format!("{}g", self.key()));
        [Some(self.key()), with_unit].into_iter().flatten().collect()
    }

    /// The models that a short name belongs to, from the widest: `a100-pcie-80g` is an `a100` and an `a100pcie`,
    /// `rtx3080-12g` an `rtx3080` and a `3080`.
    pub(crate) fn models(&self) -> Vec<String> {
        let end = match self.words.split_last() {
            Some((last, rest)) if size(last).is_some() && !rest.is_empty() => rest.len(),
            _ => self.words.len(),
        };
        let wider = (1..=end).map(|count| self.words[..count].concat());
        wider
            .flat_map(|model| {
                let bare = model.strip_prefix("rtx").filter(|bare| !bare.is_empty());
                let bare = bare.map(str::to_owned);
                [Some(model), bare].into_iter().flatten()
            })
            .collect()
    }

    /// What the name may mean as a model, with the size of its memory in GiB: `a100 40gb` and `a100 40` are an
    /// `a100` with 40.
    pub(crate) fn meanings(&self) -> Vec<(String, Option<u64>)> {
        let mut meanings = vec![(self.key(), None)];
        for (index, word) in self.words.iter().enumerate().skip(1) {
            let is_last = index + 1 == self.words.len();
            let bare = || word.parse().ok().filter(|_| is_last);
            if let Some(gib) = size(word).or_else(bare) {
                let model = [&self.words[..index], &self.words[index + 1..]].concat().concat();
                meanings.push((model, Some(gib)));
            }
        }
        meanings
    }

    /// How many letters a slip of the pen needs to make this name of `known`; none if the two name different cards.
    ///
    /// A letter or a digit of a model is another card as a rule: `b100` is no slip for `a100`, nor `4080s` for
    /// `4080`. What is left are slips in the word before the number (`gtx4090`), and behind a model that is the same
    /// (`a100-40gx`).
    pub(crate) fn slip(&self, known: &Self) -> Option<usize> {
        let (mine, theirs) = (self.key(), known.key());
        let slips = distance(&mine, &theirs);
        let ((line, number), (known_line, known_number)) = (at_number(&mine), at_number(&theirs));
        let in_line = number == known_number
            && known_line.len() >= 3
            && line.chars().next_back() == known_line.chars().next_back();
        let behind_model = self.words.first() == known.words.first()
            && known.words.len() > 1
            && digits(&mine) == digits(&theirs);
        (slips <= 2 && (in_line || behind_model)).then_some(slips)
    }
}

/// The GiB of `40g`, `40gb` or `40gib`.
fn size(word: &str) -> Option<u64> {
    let at = word.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
    UNITS.contains(&&word[at..]).then(|| word[..at].parse().ok())?
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn digits(key: &str) -> String {
    key.chars().filter(char::is_ascii_digit).collect()
}

/// A key before its first digit, and from there.
fn at_number(key: &str) -> (&str, &str) {
    key.split_at(key.find(|c: char| c.is_ascii_digit()).unwrap_or(key.len()))
}

/// Levenshtein distance in bytes; both sides are ASCII.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> String {
        Name::new(name).key()
    }

    #[test]
    fn distance_counts_single_edits() {
        for (a, b, edits) in [("", "", 0), ("a100", "", 4), ("a100", "h100", 1), ("l4", "l40s", 2)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn vendor_words_punctuation_and_units_do_not_count() {
        assert_eq!(key("NVIDIA GeForce RTX 3060"), "rtx3060");
        assert_eq!(key("rtx_3060"), "rtx3060");
        assert_ne!(key("a100-40g"), key("a100-80g"));
        for name in ["A100 80GB", "a100 80 GB", "a100_80GiB", "NVIDIA-A100-80G"] {
            assert_eq!(key(name), key("a100-80g"), "{name}");
        }
        assert_eq!(key("MIG 1g.5gb"), "mig1g5g");
        assert_eq!(key("GB"), "gb");
    }

    #[test]
    fn a_name_belongs_to_its_models() {
        let models = |name: &str| Name::new(name).models();
        assert_eq!(models("a100-pcie-80g"), ["a100", "a100pcie"]);
        assert_eq!(models("rtx3080-12g"), ["rtx3080", "3080"]);
        assert_eq!(models("NVIDIA B300"), ["b300"]);
        assert_eq!(models("40g"), ["40g"]);
    }

    #[test]
    fn a_size_may_stand_anywhere_behind_the_model() {
        let meanings = |name: &str| Name::new(name).meanings();
        let of = |model: &str, size| (model.to_owned(), size);
        assert_eq!(meanings("A100 40GB"), [of("a10040g", None), of("a100", Some(40))]);
        assert_eq!(meanings("a100 80g pcie"), [of("a10080gpcie", None), of("a100pcie", Some(80))]);
        assert_eq!(meanings("RTX 4090"), [of("rtx4090", None), of("rtx", Some(4090))]);
        assert_eq!(meanings("3080 12"), [of("308012", None), of("3080", Some(12))]);
    }

    #[test]
    fn another_card_is_no_slip() {
        let slip = |name: &str, known: &str| Name::new(name).slip(&Name::new(known));
        for (name, known) in [
            ("4070", "4060"),
            ("4070", "rtx4060-8g"),
            ("b100", "a100"),
            ("t40", "l40"),
            ("l40x", "l40s"),
            ("3060ti", "3060"),
            ("4080s", "4080"),
            ("rtx5000", "rtxa5000"),
            ("a100-60g", "a100-40g"),
            ("radeon-pro-w7900", "rtx4090"),
        ] {
            assert_eq!(slip(name, known), None, "{name} {known}");
        }
        for (name, known, letters) in [
            ("gtx4090", "rtx4090", 1),
            ("rx 4090", "rtx4090", 1),
            ("a100-40gx", "a100-40g", 1),
            ("h100-pci-80g", "h100-pcie-80g", 1),
            ("oren", "orin", 1),
        ] {
            assert_eq!(slip(name, known), Some(letters), "{name} {known}");
        }
    }
}
