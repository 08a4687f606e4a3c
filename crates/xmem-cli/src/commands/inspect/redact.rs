//! `xmem inspect --redact`: a copy of a trace for others to read.

use crate::error::CliError;
use crate::output::{self, WriteError};
use crate::overwrite::{self, Output};
use crate::terminal::{say, shown};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::path::Path;
use xmem::ReadOptions;
use xmem::analyzer::Redaction;
use xmem::trace::{RewriteError, RewriteSummary, rewrite_path};

/// Writes the copy, compressed as the ending of its name says.
pub(crate) fn write(from: &Path, to: &Path, options: &ReadOptions) -> Result<(), CliError> {
    overwrite::refuse(&[Output { option: "--redact", path: to }], [from])?;
    let mut summary = RewriteSummary::default();
    output::bytes(Some(to), |out| {
        summary = encoded(to, out, |out| {
            rewrite_path(from, options, &mut Redaction::default(), out).map_err(|error| match error
            {
                RewriteError::Read(error) => WriteError::from(CliError::from(error)),
                RewriteError::Write(error) => WriteError::Output(error),
            })
        })?;
        Ok(())
    })?;
    if summary.unreadable > 0 {
        say(&format!(
            "note: {} bytes of `{}` are no JSON, and are not in the copy",
            summary.unreadable,
            shown(from)
        ));
    }
    Ok(())
}

/// The result of `content`, which writes the text.
fn encoded<T>(
    name: &Path,
    out: &mut dyn Write,
    content: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let ending = name.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    match ending.as_deref() {
        Some("zst" | "zstd") => {
            let mut encoder = zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            let result = content(&mut encoder)?;
            finished(encoder.finish().map(drop), result)
        }
        Some("gz" | "gzip") => {
            let mut encoder = GzEncoder::new(out, Compression::default());
            let result = content(&mut encoder)?;
            finished(encoder.finish().map(drop), result)
        }
        _ => content(out),
    }
}

fn finished<T>(end: io::Result<()>, result: T) -> Result<T, WriteError> {
    end?;
    Ok(result)
}
