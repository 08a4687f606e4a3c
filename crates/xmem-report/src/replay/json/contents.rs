//! What is in memory at the peak.

use crate::places::PlaceDto;
use serde::Serialize;
use xmem::predict::{Fragmentation, LiveBlock, RoleShare, UnmodeledShare};

/// Memory of operators without a model, with the sizes of the CPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct UnmodeledDto<'a> {
    bytes: u64,
    /// By operator, largest first.
    operators: Vec<OperatorDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OperatorDto<'a> {
    op: &'a str,
    bytes: u64,
    blocks: u64,
}

impl<'a> From<&'a [UnmodeledShare]> for UnmodeledDto<'a> {
    fn from(shares: &'a [UnmodeledShare]) -> Self {
        let operator = |share: &'a UnmodeledShare| OperatorDto {
            op: &share.op,
            bytes: share.bytes.get(),
            blocks: share.blocks,
        };
        Self {
            bytes: shares.iter().map(|share| share.bytes.get()).sum(),
            operators: shares.iter().map(operator).collect(),
        }
    }
}

/// Bytes by role; the keys are the role names, in the order of reports.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct RolesDto(serde_json::Map<String, serde_json::Value>);

impl From<&[RoleShare]> for RolesDto {
    fn from(shares: &[RoleShare]) -> Self {
        let entry = |share: &RoleShare| (share.role.name().to_owned(), share.bytes.get().into());
        Self(shares.iter().map(entry).collect())
    }
}

/// A block.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BlockDto<'a> {
    /// Size of the block in its segment.
    bytes: u64,
    /// Bytes requested by the program.
    requested_bytes: u64,
    /// Role.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::analyzer::Role>"))]
    role: &'static str,
    /// Evidence for the role.
    evidence: Option<&'a str>,
    /// The rule that added, resized or retimed it.
    rule: Option<&'a str>,
    origin: PlaceDto<'a>,
}

impl<'a> From<&'a LiveBlock> for BlockDto<'a> {
    fn from(block: &'a LiveBlock) -> Self {
        Self {
            bytes: block.bytes.get(),
            requested_bytes: block.requested.get(),
            role: block.role.name(),
            evidence: Some(block.evidence).filter(|e| !e.is_empty()),
            rule: block.rule,
            origin: PlaceDto::from(&block.origin),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct FragmentationDto {
    /// The moment: out_of_memory, after everything cached was released, or peak_allocated.
    #[cfg_attr(test, schemars(extend("enum" = ["peak_allocated", "out_of_memory"])))]
    at: &'static str,
    /// Reserved memory at that moment.
    reserved_bytes: u64,
    /// Reserved minus allocated.
    unused_bytes: u64,
    /// The part in segments without any tensor, which could be released.
    releasable_bytes: u64,
    /// Free pieces.
    pieces: u64,
    /// The largest of them.
    largest_piece_bytes: u64,
    /// Bytes added to requested sizes by rounding, at the peak of allocated memory.
    rounding_bytes: u64,
}

impl From<&Fragmentation> for FragmentationDto {
    fn from(fragmentation: &Fragmentation) -> Self {
        Self {
            at: fragmentation.at.name(),
            reserved_bytes: fragmentation.reserved.get(),
            unused_bytes: fragmentation.unused.get(),
            releasable_bytes: fragmentation.releasable.get(),
            pieces: fragmentation.pieces,
            largest_piece_bytes: fragmentation.largest_piece.get(),
            rounding_bytes: fragmentation.rounding.get(),
        }
    }
}
