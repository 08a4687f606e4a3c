//! From the bytes of a graph, of torch.export or of ONNX, to the verdict.

#![no_main]

#[path = "../graph.rs"]
mod graph;

libfuzzer_sys::fuzz_target!(|data: &[u8]| graph::graph(data));
