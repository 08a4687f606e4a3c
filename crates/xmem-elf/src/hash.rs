//! Hashes of symbol names, and the table by which the dynamic linker finds a symbol (`DT_GNU_HASH`).

/// The hash of `DT_GNU_HASH`: Bernstein's, starting from 5381.
pub(crate) fn gnu(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

/// The hash of the System V ABI, which version names have.
pub(crate) fn system_v(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let top = hash & 0xf000_0000;
        (hash ^ (top >> 24)) & !top
    })
}

/// The second hash of the Bloom filter is the first one shifted by this.
const SHIFT: u32 = 6;

/// The number of buckets for this many symbols: three symbols in a bucket on average.
pub(crate) const fn buckets(symbols: usize) -> u32 {
    let buckets = symbols / 3;
    if buckets == 0 { 1 } else { buckets as u32 }
}

/// The table for symbols with these hashes, which are in the order of their buckets. The first one is the
/// symbol number `first`; those before it are not found by name.
pub(crate) fn gnu_table(first: u32, hashes: &[u32]) -> Vec<u8> {
    let buckets = buckets(hashes.len());
    let words = (hashes.len() / 6).next_power_of_two();
    let mut filter = vec![0u64; words];
    let mut starts = vec![0u32; buckets as usize];
    let mut chain = Vec::with_capacity(hashes.len());
    for (index, &hash) in hashes.iter().enumerate() {
        filter[(hash / 64) as usize % words] |= 1 << (hash % 64) | 1 << ((hash >> SHIFT) % 64);
        let bucket = hash % buckets;
        let start = &mut starts[bucket as usize];
        if *start == 0 {
            *start = first + index as u32;
        }
        let is_last = hashes.get(index + 1).is_none_or(|next| next % buckets != bucket);
        chain.push(hash & !1 | u32::from(is_last));
    }
    let mut table: Vec<u8> = [buckets, first, words as u32, SHIFT].map(u32::to_le_bytes).concat();
    table.extend(filter.iter().flat_map(|word| word.to_le_bytes()));
    table.extend(starts.iter().chain(&chain).flat_map(|word| word.to_le_bytes()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known values of both functions; the linker itself is asked by `tests/stand_in.rs`.
    #[test]
    fn names_have_the_hashes_of_the_linker() {
        for (name, expected) in [("", 5381), ("printf", 0x156b_2bb8), ("exit", 0x7c96_7e3f)] {
            assert_eq!(gnu(name), expected, "{name}");
        }
        for (name, expected) in [("", 0), ("printf", 0x0779_05a6), ("exit", 0x0006_cf04)] {
            assert_eq!(system_v(name), expected, "{name}");
        }
    }
}
