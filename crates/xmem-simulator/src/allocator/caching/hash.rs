//! The order in which `ska::flat_hash_map` goes through its entries.

/// Entries come in the order of their slots, which are the top bits of the hash times a constant
/// (`fibonacci_hash_policy` in `c10/util/flat_hash_map.h`). Two entries that want the same slot are
/// taken in the same order here; PyTorch's may differ then.
pub(super) fn slot_order(hash: u64) -> u64 {
    const GOLDEN_RATIO: u64 = 11_400_714_819_323_198_485;
    hash.wrapping_mul(GOLDEN_RATIO)
}
