//! From the bytes of a file to the verdict. Every other mutation replaces numbers, which random bytes
//! would hardly ever turn into large ones.

#![no_main]

#[path = "../verdict.rs"]
mod verdict;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verdict::verdict(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let places = verdict::numbers(&data[..size]);
    let chosen = seed >> 8;
    if seed.is_multiple_of(4) || places.is_empty() {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let number = verdict::NUMBERS[chosen as usize % verdict::NUMBERS.len()];
    let first = (chosen as usize / verdict::NUMBERS.len()) % places.len();
    // One number, or some that stand together, as those of a shape do.
    let count = 1 + (seed % 4) as usize;
    let last = (first + count).min(places.len());
    let changed = verdict::with_number(&data[..size], &places[first..last], number);
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
});
