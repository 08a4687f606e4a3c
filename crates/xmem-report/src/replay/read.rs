//! Reading an answer that `xmem replay --format json` wrote.

use super::json::REPLAY;
use serde::Deserialize;
use std::collections::BTreeMap;
use xmem::types::{IterationId, printable};
use xmem::{Bytes, Verdict};
use xmem_studies::difference::{ComparisonRun, RunPeaks, RunSetting};

/// Text that is not one answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It is no JSON, or lacks something.
    #[error("the document is not complete: {0}")]
    Content(#[from] serde_json::Error),
    /// It is another document.
    #[error("its schema is `{0}`, expected `{REPLAY}`")]
    OtherSchema(String),
    /// It is a list.
    #[error("it holds {0} answers; a comparison is between two: replay one trace on one device")]
    Several(usize),
    /// Its verdict is unknown.
    #[error("its verdict `{0}` is not known")]
    UnknownVerdict(String),
}

#[derive(Deserialize)]
struct AnswerDto {
    verdict: String,
    device: DeviceDto,
    target: TargetDto,
    iterations: IterationsDto,
    peak: PeakDto,
    by_role: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct SchemaDto {
    schema: String,
}

#[derive(Deserialize)]
struct DeviceDto {
    name: String,
    memory_bytes: u64,
}

#[derive(Deserialize)]
struct TargetDto {
    torch: String,
    optimizer_impl: String,
    zero_grad: Option<String>,
    set_to_none: bool,
    world_size: Option<u32>,
    collectives: Option<CollectivesDto>,
    disabled_rules: Vec<String>,
    convolutions: String,
    allocator: AllocatorDto,
}

#[derive(Deserialize)]
struct CollectivesDto {
    complete: String,
}

#[derive(Deserialize)]
struct AllocatorDto {
    name: String,
    conf: String,
    memory_fraction: Option<f64>,
    address_order: String,
}

#[derive(Deserialize)]
struct IterationsDto {
    from: u32,
    to: u32,
}

#[derive(Deserialize)]
struct PeakDto {
    allocated_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
    at: Option<PlaceDto>,
}

#[derive(Deserialize)]
struct PlaceDto {
    iteration: Option<u32>,
    phase: String,
    part: Option<String>,
}

/// Reads an answer.
///
/// # Errors
/// If it is something else, of another version, or several.
pub fn read_answer(text: &[u8]) -> Result<ComparisonRun, AnswerError> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return read_document(text);
    }
    let documents: Vec<Box<serde_json::value::RawValue>> = serde_json::from_slice(text)?;
    match &documents[..] {
        [document] => read_document(document.get().as_bytes()),
        all => Err(AnswerError::Several(all.len())),
    }
}

fn read_document(text: &[u8]) -> Result<ComparisonRun, AnswerError> {
    let SchemaDto { schema } = serde_json::from_slice(text)?;
    if schema != REPLAY {
        return Err(AnswerError::OtherSchema(printable(&schema).into_owned()));
    }
    let answer: AnswerDto = serde_json::from_slice(text)?;
    let known = Verdict::ALL.into_iter().find(|known| known.name() == answer.verdict);
    let verdict = known
        .ok_or_else(|| AnswerError::UnknownVerdict(printable(&answer.verdict).into_owned()))?;
    let at = answer.peak.at.as_ref();
    Ok(ComparisonRun {
        peaks: RunPeaks {
            allocated: Bytes(answer.peak.allocated_bytes),
            reserved: Bytes(answer.peak.reserved_bytes),
            device: Bytes(answer.peak.device_bytes),
        },
        verdict,
        peak_at: at.map(|at| {
            (at.iteration.map(IterationId), safe(at.part.as_deref().unwrap_or(&at.phase)))
        }),
        settings: settings(&answer),
        by_role: answer.by_role.iter().map(|(name, bytes)| (safe(name), Bytes(*bytes))).collect(),
        timeline: None,
    })
}

fn safe(text: &str) -> String {
    printable(text).into_owned()
}

/// The same settings, in the same words, as those of an answer that is not read from a document.
fn settings(answer: &AnswerDto) -> Vec<(RunSetting, String)> {
    use RunSetting as S;
    let (target, allocator) = (&answer.target, &answer.target.allocator);
    let number = |number: Option<u32>| number.map(|n| n.to_string()).unwrap_or_default();
    let mut settings = vec![
        (S::Device, safe(&answer.device.name)),
        (S::DeviceMemory, Bytes(answer.device.memory_bytes).to_string()),
        (S::Torch, safe(&target.torch)),
        (S::Allocator, safe(&allocator.name)),
        (S::AllocatorOptions, safe(&allocator.conf)),
        (S::MemoryFraction, allocator.memory_fraction.map(|f| f.to_string()).unwrap_or_default()),
        (S::AddressOrder, safe(&allocator.address_order)),
        (S::Convolutions, safe(&target.convolutions)),
        (S::OptimizerImpl, safe(&target.optimizer_impl)),
        (S::ZeroGrad, target.zero_grad.as_deref().map(safe).unwrap_or_default()),
        (S::SetToNone, target.set_to_none.to_string()),
        (S::WorldSize, number(target.world_size)),
        (S::DisabledRules, safe(&target.disabled_rules.join(", "))),
        (S::Iterations, format!("{}..{}", answer.iterations.from, answer.iterations.to)),
    ];
    settings.extend(target.collectives.as_ref().map(|c| (S::Collectives, safe(&c.complete))));
    settings
}
