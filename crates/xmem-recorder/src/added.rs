//! Metadata that is added to a trace after it was recorded.

use crate::encoder::Encoder;
use crate::recorded::Recorded;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Error, ErrorKind, Read, Write};
use std::path::Path;
use xmem_tempfiles::TemporaryFile;
use xmem_types::{Bytes, SealingWriter};

/// Adds a top-level key with a value, which is JSON, to a recording: before all others, where a reader finds it
/// before the events. The file is replaced as a whole.
///
/// # Errors
/// If the file cannot be read or written, or does not begin as a trace does. It is then as before.
pub fn add_metadata(recorded: &mut Recorded, key: &str, value: &str) -> io::Result<()> {
    let path = std::fs::canonicalize(recorded.destination.path())?;
    let metadata = std::fs::metadata(&path)?;
    let mut from = open(&path)?;
    let to = TemporaryFile::beside(&path, Some(metadata.permissions()))?;
    let mut to = SealingWriter::new(Encoder::by_name(&path, BufWriter::new(to))?);
    skip_to_object(&mut from)?;
    let added = format!("{{\"{key}\":{value},\n");
    to.write_all(added.as_bytes())?;
    io::copy(&mut from, &mut to)?;
    let file = to.finish_copy()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    let size = file.as_file().metadata()?.len();
    file.persist(&path)?;
    recorded.size = Bytes(size);
    recorded.text += Bytes(added.len() as u64);
    Ok(())
}

/// The text of a trace whose name says how it is compressed.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::new(File::open(path)?);
    let text: Box<dyn Read> = match Encoder::by_name(path, io::sink())? {
        Encoder::Plain(_) => Box::new(file),
        Encoder::Gzip(_) => Box::new(flate2::bufread::GzDecoder::new(file)),
        Encoder::Zstd(_) => Box::new(zstd::Decoder::with_buffer(file)?),
    };
    Ok(Box::new(BufReader::new(text)))
}

fn skip_to_object(from: &mut impl BufRead) -> io::Result<()> {
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte)?;
        match byte[0] {
            b'{' => return Ok(()),
            white if white.is_ascii_whitespace() => {}
            _ => return Err(Error::new(ErrorKind::InvalidData, "not a trace")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Destination;
    use crate::request::Engine;
    use std::time::Duration;

    #[test]
    fn the_key_comes_first_whatever_the_compression() {
        let folder = tempfile::tempdir().expect("folder");
        for name in ["a.json", "a.json.gz", "a.json.zst"] {
            let path = folder.path().join(name);
            let mut to = Encoder::by_name(&path, File::create(&path).expect("made")).expect("made");
            to.write_all(b" {\"schemaVersion\": 1,\n\"traceEvents\": []}\n").expect("written");
            to.finish().expect("written");
            let mut recorded = Recorded {
                destination: Destination::Output(path.clone()),
                iterations: 1,
                rest: None,
                took: Duration::ZERO,
                size: Bytes::ZERO,
                text: Bytes(100),
                torch: None,
                python: None,
                engine: Engine::Cpu,
                redirected: Vec::new(),
                has_convolutions: true,
                cudnn: None,
                peaks: None,
                unbounded: Vec::new(),
                measures: Vec::new(),
                cut_short: None,
                peak: Bytes::ZERO,
            };
            add_metadata(&mut recorded, "xmem_key", "[7]").expect("added");
            let mut text = String::new();
            open(&path).expect("opened").read_to_string(&mut text).expect("text");
            let expected = "{\"xmem_key\":[7],\n\"schemaVersion\": 1,\n\"traceEvents\": []}\n";
            assert_eq!(text, expected, "{name}");
            assert_eq!(recorded.text, Bytes(100 + 17), "{name}");
            assert_eq!(recorded.size.get(), path.metadata().expect("there").len(), "{name}");
        }
    }
}
