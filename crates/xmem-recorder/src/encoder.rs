//! Compression of a trace, by the extension of its file.

use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::path::Path;

/// The default of zstd.
const ZSTD_LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

/// A writer that compresses into `W`.
pub(crate) enum Encoder<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    /// The encoder for a file of that name.
    pub(crate) fn by_name(name: &Path, to: W) -> io::Result<Self> {
        let extension = name.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        Ok(match extension.as_deref() {
            Some("zst" | "zstd") => Self::Zstd(zstd::Encoder::new(to, ZSTD_LEVEL)?),
            Some("gz" | "gzip") => Self::Gzip(GzEncoder::new(to, flate2::Compression::default())),
            _ => Self::Plain(to),
        })
    }

    /// Writes the rest and returns the inner writer.
    pub(crate) fn finish(self) -> io::Result<W> {
        let mut to = match self {
            Self::Plain(to) => to,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        to.flush()?;
        Ok(to)
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(to) => to.write(bytes),
            Self::Gzip(to) => to.write(bytes),
            Self::Zstd(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(to) => to.flush(),
            Self::Gzip(to) => to.flush(),
            Self::Zstd(to) => to.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_and_the_text_round_trips() {
        let text = br#"{"traceEvents":[]}"#;
        let rows: [(&str, &[u8]); 6] = [
            ("trace.json.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
            ("trace.ZST", &[0x28, 0xb5, 0x2f, 0xfd]),
            ("trace.json.gz", &[0x1f, 0x8b]),
            ("trace.json", b"{"),
            ("trace", b"{"),
            ("zst", b"{"),
        ];
        for (name, first) in rows {
            let mut encoder = Encoder::by_name(Path::new(name), Vec::new()).expect("made");
            encoder.write_all(text).expect("written");
            let bytes = encoder.finish().expect("ended");
            assert!(bytes.starts_with(first), "{name}: {bytes:?}");
            let back = match first[0] {
                0x28 => zstd::decode_all(&bytes[..]).expect("zstd"),
                0x1f => {
                    let mut back = Vec::new();
                    let mut from = flate2::read::GzDecoder::new(&bytes[..]);
                    io::copy(&mut from, &mut back).expect("gzip");
                    back
                }
                _ => bytes,
            };
            assert_eq!(back, text, "{name}");
        }
    }
}
