//! Manifests of Kubernetes, with a site file before them, from arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("manifest", data));
