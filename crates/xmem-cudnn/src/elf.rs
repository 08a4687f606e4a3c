//! A shared library in memory that consists of names only: its functions are elsewhere in the process.
//!
//! The file has a name table and no code. Each symbol is absolute, which the dynamic linker of glibc
//! takes as it is since 2.28 (`SYMBOL_ADDRESS` in `sysdeps/generic/ldsodefs.h`).

/// `e_machine` of this program.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: u16 = 183;

const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SYMBOL: u64 = 24;
const ABSOLUTE: u16 = 0xfff1;
const GLOBAL_FUNCTION: u8 = 0x12;

/// The file of a library called `name` (its `DT_SONAME`) with functions at these addresses. It is
/// for the process that the addresses are of.
pub(crate) fn library<'a>(name: &str, functions: impl Iterator<Item = (&'a str, u64)>) -> Vec<u8> {
    let mut strings = vec![0u8];
    let mut add = |text: &str| {
        let at = strings.len() as u32;
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        at
    };
    let own_name = add(name);
    let mut symbols = vec![0u8; SYMBOL as usize];
    for (function, address) in functions {
        symbols.extend(add(function).to_le_bytes());
        symbols.extend([GLOBAL_FUNCTION, 0]);
        symbols.extend(ABSOLUTE.to_le_bytes());
        symbols.extend(address.to_le_bytes());
        symbols.extend(1u64.to_le_bytes());
    }
    let count = (symbols.len() as u64 / SYMBOL) as u32;
    // A hash table of one bucket: each symbol's successor is the next, and 0 ends the chain.
    let mut hash: Vec<u8> = [1, count, u32::from(count > 1)].map(u32::to_le_bytes).concat();
    for symbol in 0..count {
        let next = if symbol > 0 && symbol + 1 < count { symbol + 1 } else { 0 };
        hash.extend(next.to_le_bytes());
    }
    let segments = 3u16;
    let symbols_at = HEADER + SEGMENT * u64::from(segments);
    let hash_at = symbols_at + symbols.len() as u64;
    let strings_at = hash_at + hash.len() as u64;
    let dynamic_at = (strings_at + strings.len() as u64).next_multiple_of(8);
    let entries: [(u64, u64); 7] = [
        (14, own_name.into()),      // DT_SONAME
        (4, hash_at),               // DT_HASH
        (5, strings_at),            // DT_STRTAB
        (6, symbols_at),            // DT_SYMTAB
        (10, strings.len() as u64), // DT_STRSZ
        (11, SYMBOL),               // DT_SYMENT
        (0, 0),                     // DT_NULL
    ];
    let dynamic: Vec<u8> =
        entries.iter().flat_map(|&(tag, value)| [tag, value]).flat_map(u64::to_le_bytes).collect();
    let len = dynamic_at + dynamic.len() as u64;

    let mut file = Vec::with_capacity(len as usize);
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend(3u16.to_le_bytes()); // ET_DYN
    file.extend(MACHINE.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend([0, HEADER, 0].map(u64::to_le_bytes).concat()); // entry, segments, sections
    file.extend(0u32.to_le_bytes()); // flags
    let sizes = [HEADER as u16, SEGMENT as u16, segments, 64, 0, 0];
    file.extend(sizes.map(u16::to_le_bytes).concat());
    // The linker writes into the dynamic section, so that all of the file is writable.
    let dynamic_len = dynamic.len() as u64;
    for (kind, at, len, align) in [
        (1u32, 0, len, 0x1000),          // PT_LOAD
        (2, dynamic_at, dynamic_len, 8), // PT_DYNAMIC
        (0x6474_e551, 0, 0, 16),         // PT_GNU_STACK, not executable
    ] {
        file.extend(kind.to_le_bytes());
        file.extend(6u32.to_le_bytes()); // readable, writable
        file.extend([at, at, at, len, len, align].map(u64::to_le_bytes).concat());
    }
    file.extend(symbols);
    file.extend(hash);
    file.extend(strings);
    file.resize(dynamic_at as usize, 0);
    file.extend(dynamic);
    file
}
