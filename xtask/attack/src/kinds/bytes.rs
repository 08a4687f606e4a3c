//! Damage to the bytes of the file, whatever they mean. Unless the line says something else, at 1, 10, 100 or
//! 1,000 places.

use super::Kind;
use crate::dice::Dice;

/// Bytes that a block of a damaged disk or network has here.
const BLOCK: usize = 512;

/// The places of bytes of which this is true, as many as the strength says.
fn chosen(bytes: &[u8], dice: &mut Dice, wanted: impl Fn(u8) -> bool) -> Vec<usize> {
    let starts = dice.places(bytes.len());
    let mut found: Vec<usize> = starts
        .into_iter()
        .filter_map(|start| {
            bytes[start..].iter().position(|&byte| wanted(byte)).map(|after| start + after)
        })
        .collect();
    found.dedup();
    found
}

/// Removes the bytes at these places, which ascend.
fn remove(bytes: &mut Vec<u8>, places: &[usize]) {
    let mut places = places.iter().copied().peekable();
    let mut at = 0;
    bytes.retain(|_| {
        let removed = places.next_if_eq(&at).is_some();
        at += 1;
        !removed
    });
}

fn remove_chosen(bytes: &mut Vec<u8>, dice: &mut Dice, wanted: impl Fn(u8) -> bool) {
    let places = chosen(bytes, dice, wanted);
    remove(bytes, &places);
}

/// Where lines begin.
fn lines(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

/// Flips one bit in each of as many of the texts that follow the needle as the strength says.
fn flip_behind(bytes: &mut [u8], dice: &mut Dice, needle: &[u8], length: usize) {
    let found: Vec<usize> = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, w)| *w == needle)
        .map(|(at, _)| at)
        .collect();
    for _ in 0..dice.strength.places() {
        let Some(&start) = found.get(dice.below(found.len())) else { return };
        let at = (start + needle.len() + dice.below(length)).min(bytes.len() - 1);
        bytes[at] ^= 1 << dice.below(8);
    }
}

pub(super) static KINDS: &[Kind] = &[
    Kind::bytes("bits-flipped", "single bits flipped", |bytes, d| {
        for place in d.places(bytes.len()) {
            bytes[place] ^= 1 << d.below(8);
        }
    }),
    Kind::bytes(
        "bits-flipped-in-memory",
        "single bits flipped in the arguments of memory events",
        |bytes, d| {
            flip_behind(bytes, d, b"\"Total Reserved\": 0,", 120);
        },
    ),
    Kind::bytes("bits-flipped-in-shapes", "single bits flipped in shapes", |bytes, d| {
        flip_behind(bytes, d, b"\"Input Dims\": [", 24);
    }),
    Kind::bytes("bits-flipped-in-times", "single bits flipped in times", |bytes, d| {
        flip_behind(bytes, d, b"\"ts\": ", 17);
    }),
    Kind::bytes("bytes-random", "single bytes replaced by random ones", |bytes, d| {
        for place in d.places(bytes.len()) {
            bytes[place] = d.below(256) as u8;
        }
    }),
    Kind::bytes("bytes-removed", "single bytes removed", |bytes, d| {
        remove_chosen(bytes, d, |_| true);
    }),
    Kind::bytes("bytes-inserted", "random bytes inserted", |bytes, d| {
        for place in d.places(bytes.len()).into_iter().rev() {
            bytes.insert(place, d.below(256) as u8);
        }
    }),
    Kind::bytes("digits-changed", "single digits replaced by others", |bytes, d| {
        for place in chosen(bytes, d, |byte| byte.is_ascii_digit()) {
            bytes[place] = b'0' + (bytes[place] - b'0' + 1 + d.below(9) as u8) % 10;
        }
    }),
    Kind::bytes("digits-lost", "single digits removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte.is_ascii_digit());
    }),
    Kind::bytes("minus-signs-lost", "minus signs removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte == b'-');
    }),
    Kind::bytes("quotes-lost", "quotation marks removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte == b'"');
    }),
    Kind::bytes("commas-lost", "commas removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte == b',');
    }),
    Kind::bytes("braces-lost", "closing braces removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte == b'}');
    }),
    Kind::bytes("brackets-lost", "closing brackets removed", |bytes, d| {
        remove_chosen(bytes, d, |byte| byte == b']');
    }),
    Kind::bytes("utf8-damaged", "bytes in texts that no UTF-8 has", |bytes, d| {
        for place in chosen(bytes, d, |byte| byte.is_ascii_alphabetic()) {
            bytes[place] = 0xff;
        }
    }),
    Kind::bytes("control-characters", "control characters in texts", |bytes, d| {
        for place in chosen(bytes, d, |byte| byte.is_ascii_alphabetic()) {
            bytes[place] = [0x1b, 0x07, 0x08, b'\r'][d.below(4)];
        }
    }),
    Kind::bytes("blocks-zeroed", "blocks of 512 bytes zeroed", |bytes, d| {
        for place in d.places(bytes.len() / BLOCK) {
            bytes[place * BLOCK..][..BLOCK].fill(0);
        }
    }),
    Kind::bytes("blocks-lost", "blocks of 512 bytes removed", |bytes, d| {
        for place in d.places(bytes.len() / BLOCK).into_iter().rev() {
            bytes.drain(place * BLOCK..(place + 1) * BLOCK);
        }
    }),
    Kind::bytes("blocks-exchanged", "blocks of 512 bytes exchanged with the next", |bytes, d| {
        for place in d.places((bytes.len() / BLOCK).saturating_sub(1)) {
            let (left, right) = bytes[place * BLOCK..(place + 2) * BLOCK].split_at_mut(BLOCK);
            left.swap_with_slice(right);
        }
    }),
    Kind::bytes(
        "part-repeated",
        "1 %, 10 %, 33 % or 80 % of the file written twice",
        |bytes, d| {
            let length = (bytes.len() as f64 * d.strength.cut()) as usize;
            let from = (bytes.len() - length) / 2;
            let part = bytes[from..from + length].to_vec();
            bytes.splice(from..from, part);
        },
    ),
    Kind::bytes(
        "part-lost",
        "1 %, 10 %, 33 % or 80 % of the file removed from the middle",
        |bytes, d| {
            let length = (bytes.len() as f64 * d.strength.cut()) as usize;
            let from = (bytes.len() - length) / 2;
            bytes.drain(from..from + length);
        },
    ),
    Kind::bytes("truncated", "the last 1 %, 10 %, 33 % or 80 % of the file cut off", |bytes, d| {
        bytes.truncate((bytes.len() as f64 * (1.0 - d.strength.cut())) as usize);
    }),
    Kind::bytes("end-cut-off", "the last 10, 100, 10,000 or 100,000 bytes cut off", |bytes, d| {
        let cut = [10, 100, 10_000, 100_000][d.strength.level() - 1];
        bytes.truncate(bytes.len().saturating_sub(cut));
    }),
    Kind::bytes("lines-lost", "lines removed", |bytes, d| {
        let lines = lines(bytes);
        for place in d.places(lines.len().saturating_sub(1)).into_iter().rev() {
            bytes.drain(lines[place]..lines[place + 1]);
        }
    }),
    Kind::bytes("lines-exchanged", "lines exchanged with the next", |bytes, d| {
        let lines = lines(bytes);
        for place in d.places(lines.len().saturating_sub(2)) {
            let middle = lines[place + 1] - lines[place];
            bytes[lines[place]..lines[place + 2]].rotate_left(middle);
        }
    }),
    Kind::bytes("garbage-behind", "1, 10, 100 or 1,000 random bytes behind the end", |bytes, d| {
        for _ in 0..d.strength.places() {
            bytes.push(d.below(256) as u8);
        }
    }),
];
