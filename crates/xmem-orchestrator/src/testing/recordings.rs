//! The smaller recordings of `traces/`.

use std::path::Path;
use xmem_analyzer::Profile;

/// Folders under `traces/`.
pub(crate) const NAMES: [&str; 5] =
    ["mlp_adam", "vgg11_sgd_pos0", "gpt2_tok4k_sgd", "resnet18_sgdm", "gpt2_ampbf16_adamw"];

/// Reads and analyzes one.
pub(crate) fn profile(name: &str) -> Profile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name);
    let options = xmem_trace::ReadOptions::default();
    let (trace, _) = xmem_trace::read_path(&folder.join("trace.json.zst"), &options)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    xmem_analyzer::analyze(trace).0
}
