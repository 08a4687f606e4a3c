//! Tables of a shared library that grow as they are written: texts, symbols, versions.

use crate::hash;
use std::collections::BTreeMap;

/// The bytes of a symbol (`Elf64_Sym`).
pub(crate) const SYMBOL: u64 = 24;
/// The bytes of a relocation (`Elf64_Rela`).
pub(crate) const RELOCATION: u64 = 24;

/// A table of texts that end with a zero byte, each of them once.
#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) bytes: Vec<u8>,
    known: BTreeMap<String, u32>,
}

impl Strings {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0], known: BTreeMap::new() }
    }

    /// The place of a text.
    pub(crate) fn add(&mut self, text: &str) -> u32 {
        if let Some(&at) = self.known.get(text) {
            return at;
        }
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.known.insert(text.to_owned(), at);
        at
    }
}

/// A symbol's kind and place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// `STT_NOTYPE`, `STT_OBJECT` or `STT_FUNC`.
    pub(crate) kind: u8,
    /// The section's number, or a special one.
    pub(crate) section: u16,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// `STB_GLOBAL`, in its place beside the kind.
const GLOBAL: u8 = 1 << 4;

/// One symbol.
pub(crate) fn symbol(name: u32, place: Place) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SYMBOL as usize);
    bytes.extend(name.to_le_bytes());
    bytes.extend([GLOBAL | place.kind, 0]);
    bytes.extend(place.section.to_le_bytes());
    bytes.extend(place.address.to_le_bytes());
    bytes.extend(place.size.to_le_bytes());
    bytes
}

/// The relocation that writes the address of symbol number `symbol` to `at` (`R_X86_64_GLOB_DAT`).
pub(crate) fn relocation(at: u64, symbol: u32) -> Vec<u8> {
    [at, u64::from(symbol) << 32 | 6, 0].map(u64::to_le_bytes).concat()
}

/// The number of the first version that has a name; 1 is the library itself.
pub(crate) const FIRST_VERSION: u16 = 2;

/// The version definitions (`Elf64_Verdef` with one `Elf64_Verdaux` each): the library's own first.
pub(crate) fn versions<'a>(
    library: &'a str,
    names: impl ExactSizeIterator<Item = &'a str>,
    strings: &mut Strings,
) -> Vec<u8> {
    const BASE: u16 = 1;
    const ENTRY: u32 = 20;
    const BOTH: u32 = 28;
    let count = names.len() + 1;
    let mut bytes = Vec::new();
    for (index, name) in std::iter::once(library).chain(names).enumerate() {
        let flags = if index == 0 { BASE } else { 0 };
        bytes.extend([1, flags, index as u16 + 1, 1].map(u16::to_le_bytes).concat());
        let next = if index + 1 < count { BOTH } else { 0 };
        bytes.extend([hash::system_v(name), ENTRY, next].map(u32::to_le_bytes).concat());
        bytes.extend([strings.add(name), 0].map(u32::to_le_bytes).concat());
    }
    bytes
}
