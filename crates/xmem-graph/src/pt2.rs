//! Archives of torch.export: a zip file whose `models/*.json` has every operator with its arguments, and every
//! value with its sizes (torch/export/pt2_archive, torch/_export/serde/schema.py). Weights are not read.

mod read;

use crate::error::GraphError;
use crate::graph::Graph;
use std::io::{Cursor, Read as _};

/// Larger graphs are refused: those of models with hundreds of layers have some tens of MB.
const MOST_BYTES: u64 = 1 << 27;

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
    let mut zip =
        zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| GraphError::Archive(e.to_string()))?;
    let names: Vec<String> =
        zip.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let is_model = |name: &&String| {
        let mut parts = name.rsplit('/');
        parts.next().is_some_and(|file| file.ends_with(".json")) && parts.next() == Some("models")
    };
    // Archives of 2.6 and earlier have one file for all.
    let model = names
        .iter()
        .find(is_model)
        .or_else(|| names.iter().find(|n| n.ends_with("serialized_exported_program.json")));
    let model = model.ok_or(GraphError::NoModel)?.clone();
    let text = unpacked(&mut zip, &model)?;
    let job = names.iter().find(|n| n.ends_with("extra/xmem.job.json")).cloned();
    let job = job.map(|name| unpacked(&mut zip, &name)).transpose()?;
    let weights =
        names.iter().find(|n| n.ends_with("data/weights/model_weights_config.json")).cloned();
    let weights = weights.map(|name| unpacked(&mut zip, &name)).transpose()?;
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

fn unpacked(zip: &mut zip::ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<String, GraphError> {
    let damaged = |e: &dyn std::fmt::Display| GraphError::Archive(format!("`{name}`: {e}"));
    let file = zip.by_name(name).map_err(|e| damaged(&e))?;
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|e| damaged(&e))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(GraphError::TooLarge { name: name.to_owned(), limit: MOST_BYTES });
    }
    Ok(text)
}
