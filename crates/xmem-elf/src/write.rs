//! A shared library as bytes: tables, code, and a folder of sections for tools.

use crate::tables::{self, FIRST_VERSION, Place, RELOCATION, SYMBOL, Strings};
use crate::{code, hash};
use std::collections::BTreeSet;

/// The processor that a library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// AArch64, for libraries without code of their own.
    Aarch64,
}

/// A shared library to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The processor.
    pub machine: Machine,
    /// The name by which other libraries need this one (`DT_SONAME`).
    pub name: String,
    /// The names of the libraries that this one needs (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// The folders in which the needed libraries are searched (`DT_RUNPATH`).
    pub search: Option<String>,
    /// The exported symbols.
    pub symbols: Vec<Symbol>,
}

/// An exported symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its version, if the library has versions.
    pub version: Option<SymbolVersion>,
    /// The thing that the name stands for.
    pub definition: Definition,
}

/// The version of a symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolVersion {
    /// The name of the version node.
    pub name: String,
    /// False if only programs that were linked with this version find the symbol.
    pub is_default: bool,
}

/// The thing that a symbol stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A function at this address of the process: the library is for one process.
    Absolute(u64),
    /// A function that returns a number and does nothing.
    Returns(i32),
    /// A function that jumps to a function of another library, with its arguments as they are.
    Forwards {
        /// The name of the other function.
        to: String,
    },
    /// A function that calls `to(name, status)` with its own name, and returns the answer.
    Reports {
        /// The name of the other function: `int to(const char *name, int status)`.
        to: String,
        /// The status.
        status: i32,
    },
    /// Zeros.
    Data {
        /// Bytes.
        size: u64,
    },
}

/// The reason why a library cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A text with a zero byte, or none.
    #[error("`{0:?}` cannot be a name in a shared library")]
    Name(String),
    /// Functions for another processor.
    #[error("`{symbol}` needs code, which is written for x86-64 only")]
    Code {
        /// The first of them.
        symbol: String,
    },
    /// The same symbol twice.
    #[error("the symbol `{0}` is given twice")]
    Twice(String),
    /// More than fits.
    #[error("the library would be larger than {MAX_SIZE} bytes")]
    Size,
}

/// The largest library, with the data that is not in the file.
const MAX_SIZE: u64 = 1 << 30;

/// The most bytes of one data object.
const MAX_DATA: u64 = 1 << 24;

const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const PAGE: u64 = 0x1000;
const POINTER: u64 = 8;

const ABSOLUTE: u16 = 0xfff1;
const HIDDEN_VERSION: u16 = 0x8000;

impl StandIn {
    /// The file.
    ///
    /// # Errors
    /// If a name is empty or has a zero byte, a symbol is given twice, the library gets too large, or a
    /// function needs code for a processor other than x86-64.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        self.check()?;
        Ok(Layout::new(self).ok_or(WriteError::Size)?.file())
    }

    fn check(&self) -> Result<(), WriteError> {
        let names = self.symbols.iter().flat_map(|symbol| {
            let version = symbol.version.as_ref().map(|version| version.name.as_str());
            [Some(symbol.name.as_str()), version, target(&symbol.definition)].into_iter().flatten()
        });
        let own = [self.name.as_str()].into_iter().chain(self.needed.iter().map(String::as_str));
        for name in own.chain(self.search.as_deref()).chain(names) {
            if name.is_empty() || name.contains('\0') {
                return Err(WriteError::Name(name.to_owned()));
            }
        }
        let mut known = BTreeSet::new();
        for symbol in &self.symbols {
            if !known.insert((&symbol.name, &symbol.version)) {
                return Err(WriteError::Twice(symbol.name.clone()));
            }
            if self.machine != Machine::X86_64 && has_code(&symbol.definition) {
                return Err(WriteError::Code { symbol: symbol.name.clone() });
            }
        }
        let data = self.symbols.iter().any(
            |s| matches!(s.definition, Definition::Data { size } if size == 0 || size > MAX_DATA),
        );
        if data || self.symbols.len() > 1 << 20 { Err(WriteError::Size) } else { Ok(()) }
    }
}

const fn has_code(definition: &Definition) -> bool {
    matches!(
        definition,
        Definition::Returns(_) | Definition::Forwards { .. } | Definition::Reports { .. }
    )
}

/// The function of another library that a symbol leads to.
fn target(definition: &Definition) -> Option<&str> {
    match definition {
        Definition::Forwards { to } | Definition::Reports { to, .. } => Some(to),
        _ => None,
    }
}

/// Numbers of the sections, for the symbols that are in them.
mod section {
    pub(super) const STRINGS: u32 = 3;
    pub(super) const SYMBOLS: u32 = 2;
    pub(super) const TEXT: u16 = 7;
    pub(super) const DATA: u16 = 10;
    pub(super) const NAMES: u16 = 11;
}

/// A part of the file, which is at the same address in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    at: u64,
    len: u64,
}

/// The content of the file, and the place of each part.
struct Layout<'a> {
    library: &'a StandIn,
    strings: Strings,
    hash: (Part, Vec<u8>),
    symbols: (Part, Vec<u8>),
    strings_part: Part,
    symbol_versions: (Part, Vec<u8>),
    versions: (Part, Vec<u8>),
    version_count: u64,
    relocations: (Part, Vec<u8>),
    /// All of the above, with the headers.
    read_only: Part,
    text: (Part, Vec<u8>),
    dynamic: Part,
    /// Pointers to functions of other libraries, which the linker sets.
    pointers: Part,
    /// Zeros, after the file's content.
    data: Part,
    writable: Part,
}

impl<'a> Layout<'a> {
    /// `None` if the library is too large.
    fn new(library: &'a StandIn) -> Option<Self> {
        // Symbols in the order of their buckets: the linker walks along a bucket.
        let buckets = hash::buckets(library.symbols.len());
        let mut exports: Vec<(u32, &Symbol)> =
            library.symbols.iter().map(|s| (hash::gnu(&s.name), s)).collect();
        exports.sort_by_key(|&(hash, symbol)| (hash % buckets, &symbol.name, &symbol.version));
        let targets: BTreeSet<&str> =
            exports.iter().filter_map(|(_, s)| target(&s.definition)).collect();
        let targets: Vec<&str> = targets.into_iter().collect();
        let names: BTreeSet<&str> =
            exports.iter().filter_map(|(_, s)| Some(s.version.as_ref()?.name.as_str())).collect();
        let names: Vec<&str> = names.into_iter().collect();

        let mut strings = Strings::new();
        let version_count = if names.is_empty() { 0 } else { names.len() as u64 + 1 };
        let versions = match version_count {
            0 => Vec::new(),
            _ => tables::versions(&library.name, names.iter().copied(), &mut strings),
        };
        for text in [&library.name].into_iter().chain(&library.needed).chain(&library.search) {
            strings.add(text);
        }
        for (_, symbol) in &exports {
            strings.add(&symbol.name);
        }
        for target in &targets {
            strings.add(target);
        }
        let first = 1 + targets.len() as u32;
        let hashes: Vec<u32> = exports.iter().map(|&(hash, _)| hash).collect();
        let hash = hash::gnu_table(first, &hashes);

        // Places: the order below is that of the file.
        let symbol_count = u64::from(first) + exports.len() as u64;
        let mut end = HEADER + SEGMENT * SEGMENTS;
        let mut place = |len: u64, align: u64| {
            let at = end.next_multiple_of(align);
            end = at + len;
            Part { at, len }
        };
        let hash_part = place(hash.len() as u64, 8);
        let symbols_part = place(symbol_count * SYMBOL, 8);
        let strings_part = place(strings.bytes.len() as u64, 1);
        let versioned = if version_count == 0 { 0 } else { 2 * symbol_count };
        let symbol_versions_part = place(versioned, 2);
        let versions_part = place(versions.len() as u64, 8);
        let relocations_part = place(targets.len() as u64 * RELOCATION, 8);
        let read_only = Part { at: 0, len: relocations_part.at + relocations_part.len };
        let functions = exports.iter().filter(|(_, s)| has_code(&s.definition)).count() as u64;
        let text_part = place(functions * code::SIZE, PAGE);
        let entries = 13 + library.needed.len() as u64;
        let dynamic = place(entries * 16, PAGE);
        let pointers = place(targets.len() as u64 * POINTER, POINTER);
        let size: u64 = exports.iter().map(|(_, s)| data_size(&s.definition)).sum();
        let data = place(size, 64);
        let writable = Part { at: dynamic.at, len: data.at + data.len - dynamic.at };
        if end > MAX_SIZE {
            return None;
        }

        // Content that depends on places.
        let pointer = |to: &str| {
            let index = targets.partition_point(|&target| target < to) as u64;
            pointers.at + index * POINTER
        };
        let mut symbols = vec![0; SYMBOL as usize];
        let mut symbol_versions: Vec<u16> = vec![0];
        let mut relocations = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let undefined = Place { kind: 0, section: 0, address: 0, size: 0 };
            symbols.extend(tables::symbol(strings.add(target), undefined));
            symbol_versions.push(1);
            relocations.extend(tables::relocation(pointer(target), index as u32 + 1));
        }
        let (mut text, mut data_used) = (Vec::new(), 0);
        for (_, symbol) in &exports {
            let name = strings.add(&symbol.name);
            let place = match &symbol.definition {
                Definition::Absolute(address) => {
                    Place { kind: 2, section: ABSOLUTE, address: *address, size: 1 }
                }
                Definition::Data { size } => {
                    let address = data.at + data_used;
                    data_used += data_size(&symbol.definition);
                    Place { kind: 1, section: section::DATA, address, size: *size }
                }
                function => {
                    let address = text_part.at + text.len() as u64;
                    let to = target(function).map_or(0, pointer);
                    let name = strings_part.at + u64::from(name);
                    text.extend(code::function(function, address, to, name));
                    Place { kind: 2, section: section::TEXT, address, size: code::SIZE }
                }
            };
            symbols.extend(tables::symbol(name, place));
            symbol_versions.push(symbol.version.as_ref().map_or(1, |version| {
                let index = names.partition_point(|&name| name < version.name.as_str()) as u16;
                let hidden = if version.is_default { 0 } else { HIDDEN_VERSION };
                (index + FIRST_VERSION) | hidden
            }));
        }
        if version_count == 0 {
            symbol_versions.clear();
        }
        let symbol_versions = symbol_versions.into_iter().flat_map(u16::to_le_bytes).collect();
        Some(Self {
            library,
            strings,
            hash: (hash_part, hash),
            symbols: (symbols_part, symbols),
            strings_part,
            symbol_versions: (symbol_versions_part, symbol_versions),
            versions: (versions_part, versions),
            version_count,
            relocations: (relocations_part, relocations),
            read_only,
            text: (text_part, text),
            dynamic,
            pointers,
            data,
            writable,
        })
    }

    fn file(mut self) -> Vec<u8> {
        let dynamic = self.dynamic_entries();
        let section_names = section_names();
        let names_at = self.data.at;
        let sections_at = (names_at + section_names.bytes.len() as u64).next_multiple_of(8);
        let mut file = self.header(sections_at);
        let put = |file: &mut Vec<u8>, part: Part, content: &[u8]| {
            debug_assert!(file.len() as u64 <= part.at, "parts are in the order of the file");
            file.resize(part.at as usize, 0);
            file.extend_from_slice(content);
        };
        for (part, content) in [&self.hash, &self.symbols] {
            put(&mut file, *part, content);
        }
        put(&mut file, self.strings_part, &self.strings.bytes);
        for (part, content) in
            [&self.symbol_versions, &self.versions, &self.relocations, &self.text]
        {
            put(&mut file, *part, content);
        }
        put(&mut file, self.dynamic, &dynamic);
        put(&mut file, self.pointers, &vec![0; self.pointers.len as usize]);
        put(&mut file, Part { at: names_at, len: 0 }, &section_names.bytes);
        file.resize(sections_at as usize, 0);
        file.extend(self.sections(section_names, names_at));
        file
    }

    /// The file's header and its segments.
    fn header(&self, sections_at: u64) -> Vec<u8> {
        let machine: u16 = match self.library.machine {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        };
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(3u16.to_le_bytes()); // ET_DYN
        file.extend(machine.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend([0, HEADER, sections_at].map(u64::to_le_bytes).concat());
        file.extend(0u32.to_le_bytes()); // flags
        let sizes = [
            HEADER as u16,
            SEGMENT as u16,
            SEGMENTS as u16,
            64,
            section::NAMES + 1,
            section::NAMES,
        ];
        file.extend(sizes.map(u16::to_le_bytes).concat());
        let in_file = Part { at: self.dynamic.at, len: self.data.at - self.dynamic.at };
        let text = self.text.0;
        for (kind, flags, part, memory, align) in [
            (LOAD, READ, self.read_only, self.read_only.len, PAGE),
            (LOAD, READ | EXECUTE, text, text.len, PAGE),
            (LOAD, READ | WRITE, in_file, self.writable.len, PAGE),
            (2, READ | WRITE, self.dynamic, self.dynamic.len, 8), // PT_DYNAMIC
            (0x6474_e551, READ | WRITE, Part::default(), 0, 16),  // PT_GNU_STACK, not executable
        ] {
            // A segment of no bytes must not be mapped.
            let kind = if kind == LOAD && memory == 0 { 0 } else { kind };
            file.extend([kind, flags].map(u32::to_le_bytes).concat());
            let numbers = [part.at, part.at, part.at, part.len, memory, align];
            file.extend(numbers.map(u64::to_le_bytes).concat());
        }
        file
    }

    /// The dynamic section. Unused entries are at its end, where the first one ends it.
    fn dynamic_entries(&mut self) -> Vec<u8> {
        let mut entries: Vec<(u64, u64)> = Vec::new();
        for needed in &self.library.needed {
            entries.push((1, self.strings.add(needed).into())); // DT_NEEDED
        }
        entries.push((14, self.strings.add(&self.library.name).into())); // DT_SONAME
        if let Some(search) = &self.library.search {
            entries.push((29, self.strings.add(search).into())); // DT_RUNPATH
        }
        entries.extend([
            (0x6fff_fef5, self.hash.0.at), // DT_GNU_HASH
            (5, self.strings_part.at),     // DT_STRTAB
            (6, self.symbols.0.at),        // DT_SYMTAB
            (10, self.strings_part.len),   // DT_STRSZ
            (11, SYMBOL),                  // DT_SYMENT
        ]);
        if self.version_count > 0 {
            entries.extend([
                (0x6fff_fff0, self.symbol_versions.0.at), // DT_VERSYM
                (0x6fff_fffc, self.versions.0.at),        // DT_VERDEF
                (0x6fff_fffd, self.version_count),        // DT_VERDEFNUM
            ]);
        }
        let relocations = self.relocations.0;
        if relocations.len > 0 {
            // DT_RELA, DT_RELASZ, DT_RELAENT
            entries.extend([(7, relocations.at), (8, relocations.len), (9, RELOCATION)]);
        }
        let mut bytes: Vec<u8> = entries
            .iter()
            .flat_map(|&(tag, value)| [tag, value])
            .flat_map(u64::to_le_bytes)
            .collect();
        bytes.resize(self.dynamic.len as usize, 0);
        bytes
    }

    /// The headers of the sections: linkers, debuggers and `nm` read them, the dynamic linker does not.
    fn sections(&self, mut names: Strings, names_at: u64) -> Vec<u8> {
        const ALLOC: u64 = 2;
        let names_part = Part { at: names_at, len: names.bytes.len() as u64 };
        let defined = 1; // The first symbol that is not local.
        // Type, flags, part, section that it refers to, info, alignment, bytes of an entry.
        let sections: [(u32, u64, Part, u32, u32, u64, u64); 12] = [
            (0, 0, Part::default(), 0, 0, 0, 0),
            (0x6fff_fff6, ALLOC, self.hash.0, section::SYMBOLS, 0, 8, 0),
            (11, ALLOC, self.symbols.0, section::STRINGS, defined, 8, SYMBOL),
            (3, ALLOC, self.strings_part, 0, 0, 1, 0),
            (0x6fff_ffff, ALLOC, self.symbol_versions.0, section::SYMBOLS, 0, 2, 2),
            (
                0x6fff_fffd,
                ALLOC,
                self.versions.0,
                section::STRINGS,
                self.version_count as u32,
                8,
                0,
            ),
            (4, ALLOC, self.relocations.0, section::SYMBOLS, 0, 8, RELOCATION),
            (1, ALLOC | 4, self.text.0, 0, 0, 16, 0),
            (6, ALLOC | 1, self.dynamic, section::STRINGS, 0, 8, 16),
            (1, ALLOC | 1, self.pointers, 0, 0, 8, POINTER),
            (8, ALLOC | 1, self.data, 0, 0, 64, 0),
            (3, 0, names_part, 0, 0, 1, 0),
        ];
        let mut bytes = Vec::new();
        for (name, (kind, flags, part, link, info, align, entry)) in
            SECTION_NAMES.iter().zip(sections)
        {
            // A table of versions that is empty would be damaged.
            let kind = if part.len == 0 && kind >= 0x6fff_fffd { 0 } else { kind };
            bytes.extend([names.add(name), kind].map(u32::to_le_bytes).concat());
            let address = if flags & ALLOC == 0 { 0 } else { part.at };
            bytes.extend([flags, address, part.at, part.len].map(u64::to_le_bytes).concat());
            bytes.extend([link, info].map(u32::to_le_bytes).concat());
            bytes.extend([align, entry].map(u64::to_le_bytes).concat());
        }
        bytes
    }
}

const SEGMENTS: u64 = 5;
const LOAD: u32 = 1;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;

const SECTION_NAMES: [&str; 12] = [
    "",
    ".gnu.hash",
    ".dynsym",
    ".dynstr",
    ".gnu.version",
    ".gnu.version_d",
    ".rela.dyn",
    ".text",
    ".dynamic",
    ".got",
    ".bss",
    ".shstrtab",
];

fn section_names() -> Strings {
    let mut names = Strings::new();
    for name in &SECTION_NAMES[1..] {
        names.add(name);
    }
    names
}

/// The bytes of a data object, with what follows up to the next one.
fn data_size(definition: &Definition) -> u64 {
    match definition {
        Definition::Data { size } => size.next_multiple_of(64),
        _ => 0,
    }
}
