//! Files of a zip archive in memory. The library behind it links nothing that a browser lacks.

use crate::error::GraphError;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};
use std::fmt::Display;
use std::io::Read;

/// An archive with the list of its files.
pub(super) struct Zip<'a> {
    archive: ZipSliceArchive<&'a [u8]>,
    files: Vec<File>,
}

struct File {
    name: String,
    place: ZipArchiveEntryWayfinder,
    compression: CompressionMethod,
}

impl<'a> Zip<'a> {
    /// Reads the list of files. Those whose names are not text are left out.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, GraphError> {
        let damaged = |error: rawzip::Error| GraphError::Archive(error.to_string());
        let archive = ZipArchive::from_slice(bytes).map_err(damaged)?;
        let mut files = Vec::new();
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(damaged)? {
            if let Ok(name) = std::str::from_utf8(entry.file_path().as_ref()) {
                files.push(File {
                    name: name.to_owned(),
                    place: entry.wayfinder(),
                    compression: entry.compression_method(),
                });
            }
        }
        Ok(Self { archive, files })
    }

    /// The name of the first file for which this holds.
    pub(super) fn find(&self, is_it: impl Fn(&str) -> bool) -> Option<&str> {
        self.files.iter().map(|file| file.name.as_str()).find(|name| is_it(name))
    }

    /// The text of a file, of at most so many bytes.
    pub(super) fn text(&self, name: &str, limit: u64) -> Result<String, GraphError> {
        let damaged = |e: &dyn Display| GraphError::Archive(format!("`{name}`: {e}"));
        let file = self.files.iter().find(|file| file.name == name);
        let file = file.ok_or_else(|| damaged(&"it is missing"))?;
        let entry = self.archive.get_entry(file.place).map_err(|e| damaged(&e))?;
        let data: Box<dyn Read + '_> = match file.compression {
            CompressionMethod::STORE => Box::new(entry.data()),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(entry.data())),
            other => return Err(damaged(&format!("compression {other:?} is not read"))),
        };
        let mut text = String::new();
        let checked = entry.verifying_reader(data);
        checked.take(limit + 1).read_to_string(&mut text).map_err(|e| damaged(&e))?;
        if text.len() as u64 > limit {
            return Err(GraphError::TooLarge { name: name.to_owned(), limit });
        }
        Ok(text)
    }
}
