//! Archives of torch.export: a zip file whose `models/*.json` has every operator with its arguments, and every
//! value with its sizes (torch/export/pt2_archive, torch/_export/serde/schema.py). Weights are not read.

mod contexts;
mod json;
mod read;
mod zip;

use crate::error::GraphError;
use crate::graph::Graph;
use zip::Zip;

/// Larger graphs are refused: those of models with hundreds of layers have some tens of MB.
const MAX_BYTES: u64 = 1 << 27;

/// A graph with what was stored beside it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Archive {
    /// The model.
    pub graph: Graph,
    /// `extra/xmem.job.json`, which `xmem export` writes.
    pub job: Option<String>,
}

/// Returns whether these are the first bytes of a zip file.
#[must_use]
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Reads an archive.
///
/// # Errors
/// If it is not one, is damaged, or has no graph.
pub fn read(bytes: &[u8]) -> Result<Archive, GraphError> {
    let zip = Zip::open(bytes)?;
    let is_model = |name: &str| {
        let mut parts = name.rsplit('/');
        parts.next().is_some_and(|file| file.ends_with(".json")) && parts.next() == Some("models")
    };
    // Archives of 2.6 and earlier have one file for all.
    let model = zip
        .find(is_model)
        .or_else(|| zip.find(|name| name.ends_with("serialized_exported_program.json")));
    let text = zip.text(model.ok_or(GraphError::NoModel)?, MAX_BYTES)?;
    let beside = |end: &str| {
        let name = zip.find(|name| name.ends_with(end));
        name.map(|name| zip.text(name, MAX_BYTES)).transpose()
    };
    let job = beside("extra/xmem.job.json")?;
    let weights = beside("data/weights/model_weights_config.json")?;
    let weights = weights.map(|text| read::weights(&text)).unwrap_or_default();
    Ok(Archive { graph: read::graph(&text, &weights)?, job })
}

/// Reads the JSON of an exported program, without an archive around it.
///
/// # Errors
/// If it is damaged.
pub fn read_model(text: &str) -> Result<Graph, GraphError> {
    read::graph(text, &std::collections::BTreeMap::new())
}
