//! The seal of a recording: the length and a checksum of its text, in the last line.
//!
//! It distinguishes a damaged file from an intact one whose events are unusual because the job is. It does not protect
//! against deliberate changes: anybody can write a seal.

use crc32fast::Hasher;
use std::io::{self, Write};

/// The top-level key of a trace that is sealed.
pub const SEAL_KEY: &str = "xmem_seal";

/// What the seal begins with, in the last line of a trace.
const BEGIN: &[u8] = b",\n\"xmem_seal\": ";

/// Bytes at the end of a text among which the seal is.
const TAIL: usize = 256;

/// What the seal says of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sealed {
    /// The text has no seal.
    #[default]
    No,
    /// The text is as it was sealed.
    Intact,
    /// The text, or the seal, was changed.
    Broken,
}

/// A text that streams by: its checksum but for its last bytes, which are kept.
#[derive(Clone, Debug, Default)]
pub struct Seal {
    hasher: Hasher,
    length: u64,
    tail: Vec<u8>,
}

impl Seal {
    /// Takes the next part of the text.
    pub fn push(&mut self, part: &[u8]) {
        self.pass(part, &mut io::sink()).expect("nothing is written");
    }

    /// Takes the next part of the text, and writes what is in front of the bytes that are kept.
    fn pass(&mut self, part: &[u8], to: &mut impl Write) -> io::Result<()> {
        let passed = (self.tail.len() + part.len()).saturating_sub(TAIL);
        let of_tail = passed.min(self.tail.len());
        let (before, kept) = part.split_at(passed - of_tail);
        let tail: Vec<u8> = self.tail.drain(..of_tail).collect();
        for text in [&tail, before] {
            self.add(text);
            to.write_all(text)?;
        }
        self.tail.extend_from_slice(kept);
        Ok(())
    }

    fn add(&mut self, text: &[u8]) {
        self.hasher.update(text);
        self.length += text.len() as u64;
    }

    /// What the seal at the end of the text says.
    #[must_use]
    pub fn check(mut self) -> Sealed {
        let tail = std::mem::take(&mut self.tail);
        let Some(at) = position(&tail) else { return Sealed::No };
        let (text, seal) = tail.split_at(at);
        self.add(text);
        if seal == self.text().as_bytes() { Sealed::Intact } else { Sealed::Broken }
    }

    /// The seal of the text so far, and the end of the outermost object.
    fn text(&self) -> String {
        let checksum = self.hasher.clone().finalize();
        let begin = String::from_utf8_lossy(BEGIN);
        format!("{begin}{{\"bytes\": {}, \"crc32\": \"{checksum:08x}\"}}}}\n", self.length)
    }
}

/// Where the seal begins.
fn position(tail: &[u8]) -> Option<usize> {
    tail.windows(BEGIN.len()).rposition(|window| window == BEGIN)
}

/// A writer of a text, which ends with a seal if the text ends as an object does.
#[derive(Debug)]
pub struct SealingWriter<W> {
    seal: Seal,
    to: W,
}

impl<W: Write> SealingWriter<W> {
    /// Begins a text.
    pub fn new(to: W) -> Self {
        Self { seal: Seal::default(), to }
    }

    /// Writes the rest, with a seal if the text is whole and ends as an object does.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self, is_whole: bool) -> io::Result<W> {
        let Self { mut seal, mut to } = self;
        let mut tail = std::mem::take(&mut seal.tail);
        let end = tail.trim_ascii_end().len();
        if is_whole && tail[..end].ends_with(b"}") {
            tail.truncate(end - 1);
            tail.truncate(tail.trim_ascii_end().len());
            seal.add(&tail);
            tail.extend(seal.text().into_bytes());
        }
        to.write_all(&tail)?;
        Ok(to)
    }

    /// Writes the rest of the copy of a text, with a seal if the text had one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_copy(mut self) -> io::Result<W> {
        let old = position(&self.seal.tail);
        if let Some(at) = old {
            self.seal.tail.truncate(at);
            self.seal.tail.push(b'}');
        }
        self.finish(old.is_some())
    }
}

impl<W: Write> Write for SealingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.seal.pass(bytes, &mut self.to)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(text: &str, part: usize) -> String {
        written(text, part, true)
    }

    fn written(text: &str, part: usize, is_whole: bool) -> String {
        let mut writer = SealingWriter::new(Vec::new());
        for part in text.as_bytes().chunks(part) {
            writer.write_all(part).expect("written");
        }
        String::from_utf8(writer.finish(is_whole).expect("written")).expect("text")
    }

    fn check(text: &[u8], part: usize) -> Sealed {
        let mut seal = Seal::default();
        text.chunks(part).for_each(|part| seal.push(part));
        seal.check()
    }

    fn text() -> String {
        format!(
            "{{\"schemaVersion\": 1,\n\"traceEvents\": [{}],\n\"end\": 1\n}}\n",
            "{}, ".repeat(300)
        )
    }

    #[test]
    fn a_sealed_text_is_intact_in_whatever_parts_it_comes() {
        let expected = sealed(&text(), 1 << 20);
        assert!(
            expected.ends_with(
                "\"end\": 1,\n\"xmem_seal\": {\"bytes\": 1248, \"crc32\": \"01b5a37c\"}}\n"
            ),
            "{expected}"
        );
        for part in [1, 7, 255, 256, 257, 1000] {
            assert_eq!(sealed(&text(), part), expected, "{part}");
            assert_eq!(check(expected.as_bytes(), part), Sealed::Intact, "{part}");
        }
    }

    #[test]
    fn every_changed_lost_or_added_byte_breaks_the_seal() {
        let text = sealed(&text(), 100);
        let end = text.find(",\n\"xmem_seal").expect("sealed");
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            assert_ne!(check(&changed, 64), Sealed::Intact, "byte {at} changed");
            let mut shorter = text.clone().into_bytes();
            shorter.remove(at);
            assert_ne!(check(&shorter, 64), Sealed::Intact, "byte {at} lost");
            if at < end {
                assert_eq!(check(&shorter, 64), Sealed::Broken, "byte {at} lost");
            }
        }
        assert_eq!(check(format!("{text}x").as_bytes(), 64), Sealed::Broken);
    }

    #[test]
    fn what_is_not_whole_has_no_seal() {
        for (text, is_whole) in [
            ("{\"traceEvents\": [{}", false),
            ("{\"traceEvents\": [", true),
            ("{\"traceEvents\": []}\n", false),
            ("", true),
        ] {
            assert_eq!(written(text, 3, is_whole), text);
            assert_eq!(check(text.as_bytes(), 3), Sealed::No);
        }
    }

    #[test]
    fn the_copy_of_a_sealed_text_is_sealed() {
        let copy = |text: &str| {
            let mut writer = SealingWriter::new(Vec::new());
            writer.write_all(text.as_bytes()).expect("written");
            String::from_utf8(writer.finish_copy().expect("written")).expect("text")
        };
        assert_eq!(copy(&text()), text());
        let once = sealed(&text(), 100);
        assert_eq!(copy(&once), once);
        let longer = once.replacen('{', "{\"more\": 1,\n", 1);
        assert_eq!(check(longer.as_bytes(), 100), Sealed::Broken);
        assert_eq!(check(copy(&longer).as_bytes(), 100), Sealed::Intact);
    }
}
