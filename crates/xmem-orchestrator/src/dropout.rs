//! Dropout: a bool mask instead of noise.

use crate::draft::Draft;
use crate::rules::name;
use xmem_analyzer::DType;
use xmem_types::{Bytes, OpId};

/// `aten::dropout` in training: on the CPU noise in the input's type (saved for backward), then
/// the product; on CUDA `native_dropout` with a bool mask.
///
/// Where shapes were not recorded, two blocks of one size are noise and product, of 32-bit floats.
pub(crate) fn dropout(draft: &mut Draft<'_>, op: OpId) {
    let escaping: Vec<usize> =
        draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op)).collect();
    let size = |i: usize| draft.profile.blocks[i].size.get();
    let pair = escaping.iter().enumerate().find_map(|(n, &noise)| {
        let product = escaping[n + 1..].iter().find(|&&i| size(i) == size(noise))?;
        Some((noise, product))
    });
    let noise = match (pair, &escaping[..]) {
        (Some((noise, _)), _) => noise,
        // Without autograd nothing keeps the noise. One block alone is the output of another variant.
        (None, &[product]) => {
            let mut before = draft.blocks_in(op).into_iter().take_while(|&i| i != product);
            match before.find(|&i| size(i) == size(product)) {
                Some(noise) => noise,
                None => return,
            }
        }
        _ => return,
    };
    let element = match draft.profile.arguments(op).tensor(0) {
        Some(input) if input.bytes() == size(noise) => input.dtype.size(),
        Some(_) => return,
        None => DType::F32.size(),
    };
    draft.resize(noise, Bytes(size(noise) / element), name::DROPOUT);
}
