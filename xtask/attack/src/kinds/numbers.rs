//! Damage to the numbers of a text, whatever they mean: at 1, 10, 100 or 1,000 places.

use super::Kind;
use crate::dice::Dice;
use std::ops::Range;

/// Numbers that a reader does not expect.
const EXTREMES: [&str; 12] = [
    "0",
    "-1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "0.5",
    "NaN",
    "",
];

/// Where the numbers are.
fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => found.push(at..at + 1),
        }
    }
    found
}

/// Replaces numbers, the last one first.
fn replace(bytes: &mut Vec<u8>, dice: &mut Dice, new: impl Fn(&[u8], &mut Dice) -> Vec<u8>) {
    let numbers = numbers(bytes);
    for place in dice.places(numbers.len()).into_iter().rev() {
        let range = numbers[place].clone();
        let new = new(&bytes[range.clone()], dice);
        bytes.splice(range, new);
    }
}

pub(super) static KINDS: &[Kind] = &[
    Kind::bytes("numbers-extreme", "numbers replaced by extreme ones", |bytes, d| {
        replace(bytes, d, |_, d| EXTREMES[d.below(EXTREMES.len())].as_bytes().to_vec());
    }),
    Kind::bytes("numbers-near", "numbers replaced by the next one", |bytes, d| {
        replace(bytes, d, |old, _| {
            let number: Option<u64> = std::str::from_utf8(old).ok().and_then(|n| n.parse().ok());
            number.unwrap_or(0).wrapping_add(1).to_string().into_bytes()
        });
    }),
    Kind::bytes("numbers-exchanged", "numbers replaced by others of the text", |bytes, d| {
        let texts: Vec<Vec<u8>> =
            numbers(bytes).into_iter().map(|range| bytes[range].to_vec()).collect();
        replace(bytes, d, |_, d| texts[d.below(texts.len())].clone());
    }),
];
