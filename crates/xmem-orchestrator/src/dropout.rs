//! Dropout: a bool mask instead of noise.

use crate::draft::Draft;
use crate::rules::name;
use xmem_types::{Bytes, OpId};

/// `aten::dropout` in training: on the CPU noise in the input's type (saved for backward), then
/// the product; on CUDA `native_dropout` with a bool mask.
pub(crate) fn dropout(draft: &mut Draft<'_>, op: OpId) {
    let Some(input) = draft.profile.arguments(op).tensor(0) else { return };
    let (bytes, numel) = (input.bytes(), input.numel());
    let escaping: Vec<usize> = draft
        .blocks_in(op)
        .into_iter()
        .filter(|&i| draft.escapes(i, op) && draft.profile.blocks[i].size.get() == bytes)
        .collect();
    // One block alone is the output of an inference-time or in-place variant.
    if let [noise, _, ..] = escaping[..] {
        draft.resize(noise, Bytes(numel), name::DROPOUT);
    }
}
