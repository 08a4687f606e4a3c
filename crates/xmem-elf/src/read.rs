//! The tables of a shared library by which others link to it.

use crate::write::SymbolVersion;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, SectionHeader as _, Sym as _};
use object::{LittleEndian, ReadCache};
use std::io::{Read, Seek};
use std::ops::Range;

/// The names by which a shared library is linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// The name by which other libraries need this one (`DT_SONAME`).
    pub name: Option<String>,
    /// The names of the libraries that it needs (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Folders in which the needed libraries are searched (`DT_RPATH`, `DT_RUNPATH`), as written:
    /// `$ORIGIN` is not replaced.
    pub search: Vec<String>,
    /// The exported symbols, in the order of the file.
    pub exports: Vec<Export>,
    /// The names that other libraries have to define.
    pub imports: Vec<String>,
}

/// An exported symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its version, if the library has versions.
    pub version: Option<SymbolVersion>,
    /// Function or data.
    pub kind: ExportKind,
}

/// The kind of an exported symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Code.
    Function,
    /// Data.
    Data {
        /// Bytes.
        size: u64,
    },
    /// Another one: thread-local data, or the name of a version.
    Other,
}

/// The reason why a library cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not a shared library, or a damaged one.
    #[error("not a shared library for x86-64 that can be read")]
    Format(#[source] object::read::Error),
    /// A library for another processor, or an executable.
    #[error("expected a shared library for x86-64, found type {kind} for machine {machine}")]
    Machine {
        /// `e_type`.
        kind: u16,
        /// `e_machine`.
        machine: u16,
    },
    /// More symbols than any library has.
    #[error("the library has {0} symbols, more than are read")]
    TooLarge(usize),
}

impl From<object::read::Error> for ReadError {
    fn from(error: object::read::Error) -> Self {
        Self::Format(error)
    }
}

/// The most symbols that are read. The largest library of PyTorch's has 60,000.
const MAX_SYMBOLS: usize = 4_000_000;

/// The longest name that is read.
const MAX_NAME: usize = 4096;

impl Library {
    /// Reads the tables of a library for x86-64. Symbols whose names are no text are left out.
    ///
    /// # Errors
    /// If the file is no such library, or is damaged.
    pub fn read(file: impl Read + Seek) -> Result<Self, ReadError> {
        let cache = ReadCache::new(file);
        let data = &cache;
        let header = FileHeader64::<LittleEndian>::parse(data)?;
        let endian = header.endian()?;
        let (kind, machine) = (header.e_type(endian), header.e_machine(endian));
        if kind != elf::ET_DYN || machine != elf::EM_X86_64 {
            return Err(ReadError::Machine { kind, machine });
        }
        let sections = header.sections(endian, data)?;
        let mut library = Self::default();
        if let Some((entries, strings)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, strings)?;
            for entry in entries {
                let value = || text(strings.get(entry.val32(endian)?).ok()?);
                match entry.tag(endian) {
                    elf::DT_NULL => break,
                    elf::DT_SONAME => library.name = value(),
                    elf::DT_NEEDED => library.needed.extend(value()),
                    elf::DT_RPATH | elf::DT_RUNPATH => {
                        let folders = value().unwrap_or_default();
                        let folders = folders.split(':').filter(|folder| !folder.is_empty());
                        library.search.extend(folders.map(str::to_owned));
                    }
                    _ => {}
                }
            }
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        if symbols.len() > MAX_SYMBOLS {
            return Err(ReadError::TooLarge(symbols.len()));
        }
        let versions = sections.versions(endian, data)?;
        for (index, symbol) in symbols.enumerate() {
            if symbol.st_bind() == elf::STB_LOCAL {
                continue;
            }
            let Some(name) = symbol.name(endian, symbols.strings()).ok().and_then(text) else {
                continue;
            };
            if symbol.is_undefined(endian) {
                library.imports.push(name);
                continue;
            }
            let visible = matches!(symbol.st_visibility(), elf::STV_DEFAULT | elf::STV_PROTECTED);
            if name.is_empty() || !visible {
                continue;
            }
            let version = versions.as_ref().and_then(|versions| {
                let index = versions.version_index(endian, index);
                let name = text(versions.version(index).ok()??.name())?;
                Some(SymbolVersion { name, is_default: !index.is_hidden() })
            });
            let kind = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => ExportKind::Function,
                elf::STT_OBJECT if symbol.st_shndx(endian) != elf::SHN_ABS => {
                    ExportKind::Data { size: symbol.st_size(endian) }
                }
                _ => ExportKind::Other,
            };
            library.exports.push(Export { name, version, kind });
        }
        Ok(library)
    }
}

/// The place of a section in a library for x86-64, in bytes from the beginning of the file; `None` if it has none of
/// this name.
///
/// # Errors
/// If the file is no such library, or is damaged.
pub fn section(file: impl Read + Seek, name: &str) -> Result<Option<Range<u64>>, ReadError> {
    let cache = ReadCache::new(file);
    let header = FileHeader64::<LittleEndian>::parse(&cache)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, &cache)?;
    let Some((_, found)) = sections.section_by_name(endian, name.as_bytes()) else {
        return Ok(None);
    };
    let place = found.file_range(endian);
    Ok(place.map(|(start, size)| start..start.saturating_add(size)))
}

fn text(bytes: &[u8]) -> Option<String> {
    let is_short = bytes.len() <= MAX_NAME;
    is_short.then(|| std::str::from_utf8(bytes).ok().map(str::to_owned)).flatten()
}
