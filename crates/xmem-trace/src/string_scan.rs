//! The ends of strings, found sixteen bytes at a time.
#![expect(unsafe_code, reason = "vector instructions; ASCII text is not checked a second time")]

/// The content of a string.
pub(crate) enum Text<'a> {
    /// ASCII without escapes.
    Plain(&'a str),
    /// Without escapes, but not all of it is ASCII; it may be no UTF-8.
    Unicode,
    /// It has escapes or characters that JSON forbids, or no end.
    Odd,
}

/// The end of the string whose content begins at `start`: the index of its closing quote.
#[inline]
pub(crate) fn text_end(text: &[u8], start: usize) -> (usize, Text<'_>) {
    let mut at = start;
    let mut high = false;
    while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        let (special, not_ascii) = masks(block);
        if special != 0 {
            let skipped = special.trailing_zeros();
            high |= not_ascii & ((1 << skipped) - 1) != 0;
            // SAFETY: `high` says whether a byte since `start` is above 0x7f.
            return unsafe { stop(text, start, at + skipped as usize, high) };
        }
        high |= not_ascii != 0;
        at += 16;
    }
    while let Some(&byte) = text.get(at) {
        if is_special(byte) {
            // SAFETY: as above.
            return unsafe { stop(text, start, at, high) };
        }
        high |= byte >= 0x80;
        at += 1;
    }
    (at, Text::Odd)
}

/// The content of a string whose scan from `start` on stopped at `at`.
///
/// # Safety
/// If `high` is false, `text[start..at]` must be ASCII.
#[inline]
unsafe fn stop(text: &[u8], start: usize, at: usize, high: bool) -> (usize, Text<'_>) {
    if text[at] != b'"' {
        return (at, Text::Odd);
    }
    if high {
        return (at, Text::Unicode);
    }
    // SAFETY: the caller promises ASCII, which is UTF-8.
    (at, Text::Plain(unsafe { std::str::from_utf8_unchecked(&text[start..at]) }))
}

#[inline]
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// One bit per byte, lowest first: quotes, backslashes and control characters, and what is not ASCII.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn masks(block: &[u8; 16]) -> (u32, u32) {
    let mask = |test: fn(u8) -> bool| {
        block.iter().enumerate().fold(0, |mask, (i, &b)| mask | u32::from(test(b)) << i)
    };
    (mask(is_special), mask(|b| b >= 0x80))
}

/// One bit per byte, lowest first: quotes, backslashes and control characters, and what is not ASCII.
#[inline]
#[cfg(target_arch = "x86_64")]
fn masks(block: &[u8; 16]) -> (u32, u32) {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    // SAFETY: every x86-64 processor has SSE2; the load is of 16 readable bytes and needs no
    // alignment.
    unsafe {
        let bytes = _mm_loadu_si128(block.as_ptr().cast());
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
        let special = _mm_or_si128(_mm_or_si128(equal(b'"'), equal(b'\\')), control);
        let mask = |vector| _mm_movemask_epi8(vector).cast_unsigned();
        (mask(special), mask(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slowly(text: &[u8]) -> Option<(usize, bool)> {
        let end = text.iter().position(|&b| is_special(b))?;
        (text[end] == b'"').then(|| (end, text[..end].is_ascii()))
    }

    proptest! {
        #[test]
        fn strings_end_at_their_first_quote(
            text in proptest::collection::vec(
                prop_oneof![20 => b'a'..=b'z', 1 => Just(b'"'), 1 => any::<u8>()],
                0..70,
            )
        ) {
            let found = match text_end(&text, 0) {
                (end, Text::Plain(content)) => {
                    assert_eq!(content.as_bytes(), &text[..end]);
                    Some((end, true))
                }
                (end, Text::Unicode) => Some((end, false)),
                (_, Text::Odd) => None,
            };
            assert_eq!(found, slowly(&text));
        }
    }
}
