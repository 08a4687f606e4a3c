//! Manifests of Kubernetes, with a site file before them, from arbitrary bytes.

#![no_main]

#[path = "../manifest.rs"]
mod manifest;

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest::manifest(data));
