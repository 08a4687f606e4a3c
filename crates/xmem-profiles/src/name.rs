//! Comparing device names as people write them.

/// Words that name the vendor or the product line only, and do not tell cards apart.
const NOISE: [&str; 3] = ["nvidia", "geforce", "tesla"];

/// The form in which names are compared: lower case, letters and digits only, vendor words left
/// out. `NVIDIA GeForce RTX 3060` and `rtx-3060` are the same.
pub(crate) fn key(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !NOISE.contains(word)).collect()
}

/// The candidate whose key is nearest to `name`'s, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = key(name);
    let limit = wanted.len().div_ceil(3).max(2);
    candidates
        .map(|candidate| (distance(&wanted, &key(candidate)), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
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

    #[test]
    fn distance_counts_single_edits() {
        for (a, b, edits) in [("", "", 0), ("a100", "", 4), ("a100", "h100", 1), ("l4", "l40s", 2)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn vendor_words_and_punctuation_do_not_count() {
        assert_eq!(key("NVIDIA GeForce RTX 3060"), "rtx3060");
        assert_eq!(key("rtx_3060"), "rtx3060");
        assert_ne!(key("a100-40g"), key("a100-80g"));
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let names = ["a100-40g", "h100-80g", "t4-16g"];
        assert_eq!(nearest("a100-40gb", names.into_iter()), Some("a100-40g"));
        assert_eq!(nearest("radeon-pro-w7900", names.into_iter()), None);
    }
}
