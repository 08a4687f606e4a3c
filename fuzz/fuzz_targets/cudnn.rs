//! Questions to the process that asks cuDNN, from arbitrary bytes: what is read is written the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("cudnn", data));
