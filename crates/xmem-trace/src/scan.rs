//! Finds where events end in the text of an event list, whatever the white space, without parsing
//! them: 64 bytes at a time, as bit masks of quotes, backslashes and brackets.
//!
//! A writer that does not escape quotes leaves the scanner on the wrong side of every later quote.
//! No JSON string holds a raw newline, so one that seems to is looked at: where a record begins
//! right behind it (`{ "ph":`), the string never was one, and scanning starts afresh there.

use crate::event::EventKey;

/// Deepest nesting of brackets that is read.
pub(crate) const MAX_DEPTH: u32 = 1024;

/// Bytes behind a newline within which the beginning of a record is looked for.
const RESUME_WINDOW: usize = 256;

/// Keys that stand beside `traceEvents`: what may follow the list of a file with lost quotes.
const HEADER_KEYS: [&str; 12] = [
    "traceName",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "deviceProperties",
    "schemaVersion",
    "distributedInfo",
    "record_shapes",
    "profile_memory",
    "with_stack",
    "trace_id",
    "host_name",
    "ERROR",
];

/// The reason why a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Everything up to this index is scanned; continue there with more text.
    More(usize),
    /// The bracket that closes the list is at this index.
    ListEnd(usize),
    /// An event ended before this index (only in a scan that stops at each).
    EventEnd(usize),
    /// Brackets nest too deep at this index.
    TooDeep(usize),
}

/// State of the scan of one event list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scanner {
    /// Open brackets; none between events.
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Index after the last event that ended, in the text scanned last.
    pub(crate) last_end: Option<usize>,
}

/// One bit per byte of a block, lowest first.
struct Masks {
    quote: u64,
    backslash: u64,
    newline: u64,
    open: u64,
    close: u64,
}

impl Scanner {
    /// Scans `text[from..]`; `input` says whether more text may follow.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "a function compiled for features that are tested for here")
    )]
    pub(crate) fn scan(&mut self, text: &[u8], from: usize, input: Input) -> Stop {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
        {
            // SAFETY: the processor has these features.
            return unsafe { self.scan_avx2(text, from, input) };
        }
        self.scan_blocks(text, from, input, masks_portable, prefix_xor)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1,pclmulqdq")]
    fn scan_avx2(&mut self, text: &[u8], from: usize, input: Input) -> Stop {
        self.scan_blocks(
            text,
            from,
            input,
            |block| masks_avx2(block),
            |bits| prefix_xor_clmul(bits),
        )
    }

    #[inline(always)]
    fn scan_blocks(
        &mut self,
        text: &[u8],
        from: usize,
        input: Input,
        masks: impl Fn(&[u8; 64]) -> Masks,
        prefix_xor: impl Fn(u64) -> u64,
    ) -> Stop {
        let mut at = from;
        while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
            let m = masks(block);
            let mut carry = self.escaped;
            let escaped = escaped_bytes(m.backslash, &mut carry);
            let outside_at_start = if self.in_string { u64::MAX } else { 0 };
            let inside = prefix_xor(m.quote & !escaped) ^ outside_at_start;
            if m.newline & inside != 0 {
                match self.scan_bytes(text, at, at + 64, input) {
                    Stop::More(end) if end == at + 64 => at = end,
                    stop => return stop,
                }
                continue;
            }
            let open = m.open & !(inside | escaped);
            let close = m.close & !(inside | escaped);
            if close.count_ones() >= self.depth || self.depth + 64 > MAX_DEPTH {
                if let Err(stop) = self.brackets(open, close, at) {
                    return stop;
                }
            } else {
                self.depth = self.depth + open.count_ones() - close.count_ones();
            }
            self.escaped = carry;
            self.in_string = inside >> 63 != 0;
            at += 64;
        }
        self.scan_bytes(text, at, text.len(), input)
    }

    /// Follows the brackets of one block one by one.
    #[inline(always)]
    fn brackets(&mut self, open: u64, close: u64, at: usize) -> Result<(), Stop> {
        let mut left = open | close;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            if open >> bit & 1 != 0 {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Stop::TooDeep(at + bit));
                }
            } else if self.depth == 0 {
                return Err(Stop::ListEnd(at + bit));
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    self.last_end = Some(at + bit + 1);
                }
            }
            left &= left - 1;
        }
        Ok(())
    }

    /// Byte by byte, up to `end`.
    fn scan_bytes(&mut self, text: &[u8], from: usize, end: usize, input: Input) -> Stop {
        let mut at = from;
        while at < end {
            match self.step(text, at, input) {
                Stop::More(next) if next == at => return Stop::More(at),
                Stop::More(next) => at = next,
                Stop::EventEnd(next) => {
                    self.last_end = Some(next);
                    at = next;
                }
                stop => return stop,
            }
        }
        Stop::More(at)
    }

    /// The end of the next event in `text[from..]`, all of which is known.
    pub(crate) fn next_event(&mut self, text: &[u8], from: usize) -> Stop {
        let mut at = from;
        while at < text.len() {
            match self.step(text, at, Input::Complete) {
                Stop::More(next) => at = next,
                stop => return stop,
            }
        }
        Stop::More(at)
    }

    /// The end of the next element of the list in `text[from..]`, object or not.
    pub(crate) fn next_element(&mut self, text: &[u8], from: usize) -> Stop {
        let mut at = from;
        while at < text.len() {
            if text[at] == b',' && self.depth == 0 && !self.in_string && !self.escaped {
                return Stop::EventEnd(at + 1);
            }
            match self.step(text, at, Input::Complete) {
                Stop::More(next) => at = next,
                stop => return stop,
            }
        }
        Stop::More(at)
    }

    /// One byte; `More` with the same index if more text is needed to decide.
    #[inline]
    fn step(&mut self, text: &[u8], at: usize, input: Input) -> Stop {
        let byte = text[at];
        if byte == b'\n' && self.in_string {
            match resume_point(&text[at + 1..]) {
                Resume::Record => {
                    *self = Self { last_end: self.last_end, ..Self::default() };
                    return Stop::EventEnd(at + 1);
                }
                Resume::ListEnd(bracket) => {
                    *self = Self { last_end: self.last_end, ..Self::default() };
                    return Stop::ListEnd(at + 1 + bracket);
                }
                Resume::Unknown if input == Input::Partial => return Stop::More(at),
                Resume::Unknown | Resume::No => {}
            }
        }
        if self.escaped {
            self.escaped = false;
            return Stop::More(at + 1);
        }
        match byte {
            b'\\' => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Stop::TooDeep(at);
                }
            }
            b'}' | b']' if !self.in_string => {
                if self.depth == 0 {
                    return Stop::ListEnd(at);
                }
                self.depth -= 1;
                if self.depth == 0 {
                    return Stop::EventEnd(at + 1);
                }
            }
            _ => {}
        }
        Stop::More(at + 1)
    }
}

/// The part of the text that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// No more text will follow.
    Complete,
    Partial,
}

enum Resume {
    Record,
    ListEnd(usize),
    No,
    Unknown,
}

/// Looks at the text behind a newline inside a seeming string.
fn resume_point(rest: &[u8]) -> Resume {
    let rest = &rest[..rest.len().min(RESUME_WINDOW)];
    let undecided = if rest.len() == RESUME_WINDOW { Resume::No } else { Resume::Unknown };
    let Some(start) = skip_space(rest, 0) else { return undecided };
    match rest[start] {
        b'{' => match key_after(rest, start + 1) {
            Key::Found(key) if EventKey::of(key).is_some() => Resume::Record,
            Key::Unknown => undecided,
            _ => Resume::No,
        },
        b']' => match skip_space(rest, start + 1).map(|next| (next, rest[next])) {
            Some((_, b'}')) => Resume::ListEnd(start),
            Some((next, b',')) => match key_after(rest, next + 1) {
                Key::Found(key) if HEADER_KEYS.contains(&key) => Resume::ListEnd(start),
                Key::Unknown => undecided,
                _ => Resume::No,
            },
            Some(_) => Resume::No,
            None => undecided,
        },
        _ => Resume::No,
    }
}

/// Returns whether a record of an event list begins here: `{`, then one of an event's keys.
pub(crate) fn is_record_start(text: &[u8]) -> bool {
    text.first() == Some(&b'{')
        && matches!(key_after(text, 1), Key::Found(key) if EventKey::of(key).is_some())
}

enum Key<'a> {
    Found(&'a str),
    No,
    Unknown,
}

/// The key that begins at or after `from`, with its colon.
fn key_after(text: &[u8], from: usize) -> Key<'_> {
    let Some(quote) = skip_space(text, from) else { return Key::Unknown };
    if text[quote] != b'"' {
        return Key::No;
    }
    let rest = &text[quote + 1..];
    let Some(length) = rest.iter().take(32).position(|&b| b == b'"') else {
        return if rest.len() < 32 { Key::Unknown } else { Key::No };
    };
    match skip_space(rest, length + 1) {
        Some(colon) if rest[colon] == b':' => {
            std::str::from_utf8(&rest[..length]).map_or(Key::No, Key::Found)
        }
        Some(_) => Key::No,
        None => Key::Unknown,
    }
}

/// The index of the first byte from `from` on that is not white space.
fn skip_space(text: &[u8], from: usize) -> Option<usize> {
    text.get(from..)?
        .iter()
        .position(|b| !matches!(b, b' ' | b'\n' | b'\r' | b'\t'))
        .map(|skipped| from + skipped)
}

/// The bytes that a backslash escapes; `carry` says whether the first one is, and then whether
/// the next block's first one is.
#[inline(always)]
fn escaped_bytes(backslash: u64, carry: &mut bool) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = u64::from(*carry);
    if backslash == 0 {
        *carry = false;
        return first;
    }
    let backslash = backslash & !first;
    let follows = backslash << 1 | first;
    let odd_starts = backslash & !EVEN & !follows;
    let (runs, overflow) = odd_starts.overflowing_add(backslash);
    *carry = overflow;
    (EVEN ^ (runs << 1)) & follows
}

/// Bit `i` is the parity of bits `0..=i`.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ bits << 32
}

/// [`prefix_xor`] as a product without carries with all ones.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq")]
#[inline]
fn prefix_xor_clmul(bits: u64) -> u64 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    };
    let product =
        _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits.cast_signed()), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product).cast_unsigned()
}

#[inline(always)]
fn masks_portable(block: &[u8; 64]) -> Masks {
    let mask = |test: fn(u8) -> bool| {
        block.iter().enumerate().fold(0, |mask, (i, &b)| mask | u64::from(test(b)) << i)
    };
    Masks {
        quote: mask(|b| b == b'"'),
        backslash: mask(|b| b == b'\\'),
        newline: mask(|b| b == b'\n'),
        open: mask(|b| b | 0x20 == b'{'),
        close: mask(|b| b | 0x20 == b'}'),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "vectors are loaded through a pointer")]
#[inline]
fn masks_avx2(block: &[u8; 64]) -> Masks {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };
    let half = |at: usize| -> __m256i {
        let bytes: &[u8; 32] = block[at..at + 32].try_into().expect("32 bytes");
        // SAFETY: 32 readable bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    };
    let (low, high) = (half(0), half(32));
    let fold = _mm256_set1_epi8(0x20);
    let (low_folded, high_folded) = (_mm256_or_si256(low, fold), _mm256_or_si256(high, fold));
    let equal = |low: __m256i, high: __m256i, byte: u8| {
        let wanted = _mm256_set1_epi8(byte.cast_signed());
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)).cast_unsigned();
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)).cast_unsigned();
        u64::from(low) | u64::from(high) << 32
    };
    Masks {
        quote: equal(low, high, b'"'),
        backslash: equal(low, high, b'\\'),
        newline: equal(low, high, b'\n'),
        open: equal(low_folded, high_folded, b'{'),
        close: equal(low_folded, high_folded, b'}'),
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
