//! The effects of the rules of the lowering.

use serde::Serialize;
use xmem::Bytes;
use xmem::orchestrator::RuleEffect;

/// The effect of a rule.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RuleDto<'a> {
    /// The name of the rule, as for --no-rule.
    rule: &'a str,
    /// The difference between CPU and GPU.
    summary: &'a str,
    /// The source of this knowledge.
    source: &'a str,
    dropped: CountDto,
    added: CountDto,
    /// Blocks whose size changed.
    resized: ResizedDto,
    retimed: CountDto,
}

/// Blocks and their bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountDto {
    /// Blocks.
    blocks: u64,
    /// Bytes.
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ResizedDto {
    /// Blocks.
    blocks: u64,
    /// Bytes on the CPU.
    bytes_before: u64,
    /// Bytes on the GPU.
    bytes_after: u64,
}

impl<'a> From<&'a RuleEffect> for RuleDto<'a> {
    fn from(effect: &'a RuleEffect) -> Self {
        let count = |(blocks, bytes): (u64, Bytes)| CountDto { blocks, bytes: bytes.get() };
        let (blocks, before, after) = effect.resized;
        Self {
            rule: effect.rule.name,
            summary: effect.rule.summary,
            source: effect.rule.source,
            dropped: count(effect.dropped),
            added: count(effect.added),
            resized: ResizedDto { blocks, bytes_before: before.get(), bytes_after: after.get() },
            retimed: count(effect.retimed),
        }
    }
}
