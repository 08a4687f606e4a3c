//! From the bytes of a file to the verdict. Every other mutation replaces numbers, which random bytes
//! would hardly ever turn into large ones.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("verdict", data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let Some(changed) = xmem_fuzz::with_other_numbers(&data[..size], seed) else {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    };
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
});
