//! The lengths of recorded iterations, from the shapes that their operators show.

use super::Dimension;
use std::collections::BTreeMap;
use xmem_analyzer::{DType, Phase, Profile};
use xmem_types::{IterationId, Nanos, OpId};

/// The shape of an iteration's batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchShape {
    dims: Vec<u64>,
    source: Source,
}

/// The argument that shows a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Integers that an embedding looks up.
    Tokens,
    /// Numbers of places, `[length]` or `[1, length]`, that an embedding looks up.
    Positions,
    /// The first tensor of the forward pass.
    FirstInput,
}

impl BatchShape {
    /// The extent along a dimension, if the shape has it. Tokens are `[batch, length]`, or `[length]`;
    /// other inputs of three dimensions are `[batch, length, features]`.
    pub(super) fn extent(&self, dimension: Dimension) -> Option<u64> {
        match (dimension, self.source, self.dims.as_slice()) {
            (Dimension::Sequence, Source::Tokens | Source::Positions, [.., length]) => {
                Some(*length)
            }
            (Dimension::Sequence, Source::FirstInput, [_, length, _]) => Some(*length),
            (Dimension::Batch, Source::Tokens, [batch, .., _]) => Some(*batch),
            (Dimension::Batch, Source::FirstInput, [batch, ..]) => Some(*batch),
            _ => None,
        }
    }

    /// Returns whether the batch is text: a batch of sequences of tokens.
    pub(super) fn is_text(&self) -> bool {
        self.source == Source::Tokens
    }
}

/// Per iteration, the shape of its batch: that of the tokens of its first embedding, and where there is
/// none, of the first tensor that an operator of the forward pass takes.
pub(super) fn batches(profile: &Profile) -> Vec<Option<BatchShape>> {
    let embedding = profile.symbol("aten::embedding");
    let mut first: BTreeMap<usize, ((Rank, Nanos), BatchShape)> = BTreeMap::new();
    for op in (0..profile.op_count()).map(OpId::new) {
        let is_embedding = Some(profile.op_symbol(op)) == embedding;
        let start = profile.op_start(op);
        let Some(iteration) = iteration_at(profile, start) else { continue };
        let known = first.get(&iteration).map(|(order, _)| *order);
        if !is_embedding && known.is_some_and(|(rank, at)| rank < Rank::Other || at <= start) {
            continue;
        }
        let found = if is_embedding { tokens(profile, op) } else { input(profile, op, start) };
        if let Some((rank, shape)) = found
            && known.is_none_or(|known| (rank, start) < known)
        {
            first.insert(iteration, ((rank, start), shape));
        }
    }
    let count = profile.iterations.len();
    (0..count).map(|iteration| first.remove(&iteration).map(|(_, shape)| shape)).collect()
}

/// Evidence, best first. Positions are looked up as well, with one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Tokens,
    Positions,
    Other,
}

fn iteration_at(profile: &Profile, time: Nanos) -> Option<usize> {
    let after = profile.iterations.partition_point(|iteration| iteration.start <= time);
    let at = after.checked_sub(1)?;
    (time < profile.iterations[at].end).then(|| IterationId::new(at).index())
}

/// `aten::embedding(weight, indices, …)` in `aten/src/ATen/native/native_functions.yaml`.
fn tokens(profile: &Profile, op: OpId) -> Option<(Rank, BatchShape)> {
    let indices = profile.arguments(op).tensor(1)?;
    let rows = profile.arguments(op).tensor(0).and_then(|table| table.dims.first().copied());
    let is_integer = matches!(indices.dtype, DType::I64 | DType::I32);
    let rank = if are_positions(&indices.dims, rows) { Rank::Positions } else { Rank::Tokens };
    let source = if rank == Rank::Tokens { Source::Tokens } else { Source::Positions };
    let shape = BatchShape { dims: indices.dims.clone(), source };
    (is_integer && !indices.dims.is_empty()).then_some((rank, shape))
}

/// Returns whether indices with these dimensions number the places of a sequence: `[length]`, or `[1, length]` with
/// as many rows in the table (`position_ids` of `CLIPVisionEmbeddings` in
/// `transformers/models/clip/modeling_clip.py`).
fn are_positions(dims: &[u64], rows: Option<u64>) -> bool {
    match dims {
        [1, length] => rows == Some(*length),
        _ => dims.len() < 2,
    }
}

fn input(profile: &Profile, op: OpId, start: Nanos) -> Option<(Rank, BatchShape)> {
    let dims = &profile.arguments(op).tensor(0)?.dims;
    let is_input = dims.len() >= 2
        && !profile.is_annotation(op)
        && profile.phase_at(start).is_some_and(|span| span.phase == Phase::Forward);
    let shape = || BatchShape { dims: dims.clone(), source: Source::FirstInput };
    is_input.then(|| (Rank::Other, shape()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_those_of_tokens_and_of_features() {
        let (seq, batch) = (Dimension::Sequence, Dimension::Batch);
        for (source, dims, extents) in [
            (Source::Tokens, &[8, 128][..], (Some(128), Some(8))),
            (Source::Positions, &[128], (Some(128), None)),
            (Source::Positions, &[1, 50], (Some(50), None)),
            (Source::FirstInput, &[8, 50, 768], (Some(50), Some(8))),
            (Source::FirstInput, &[8, 3, 224, 224], (None, Some(8))),
            (Source::FirstInput, &[8, 10], (None, Some(8))),
        ] {
            let shape = BatchShape { dims: dims.to_vec(), source };
            assert_eq!((shape.extent(seq), shape.extent(batch)), extents, "{source:?} {dims:?}");
        }
    }

    #[test]
    fn places_of_patches_are_no_tokens() {
        for (dims, rows, expected) in [
            (&[128][..], Some(1024), true),
            (&[1, 50], Some(50), true),
            (&[1, 50], Some(1024), false),
            (&[1, 50], None, false),
            (&[8, 256], Some(65), false),
            (&[8, 256], Some(256), false),
        ] {
            assert_eq!(are_positions(dims, rows), expected, "{dims:?} {rows:?}");
        }
    }
}
