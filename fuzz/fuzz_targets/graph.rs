//! From the bytes of a graph, of torch.export or of ONNX, to the verdict.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmem_fuzz::check("graph", data));
