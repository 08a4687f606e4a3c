//! The weights of recurrent layers are parts of one buffer on CUDA: `nn.LSTM` and the like copy them into it when
//! the module is moved to the GPU (torch/nn/modules/rnn.py, `RNNBase._apply` and `flatten_parameters`), and free
//! what they had before.

use super::{Layers, RULE};
use crate::frame::context::Context;
use crate::frame::count::Count;
use crate::frame::draft::Edits;
use std::collections::BTreeMap;
use xmem_analyzer::{DType, Role};
use xmem_types::{BlockId, Bytes, Sym};

/// The stacks of recurrent layers that the job calls.
pub(crate) struct FlatWeights(Vec<Stack>);

/// The weights of one stack, as numbers of elements.
#[derive(PartialEq, Eq)]
struct Stack {
    parameters: Vec<u64>,
    flat: u64,
    /// True if weights of 16 bits are flattened: cuDNN takes float16, and no bfloat16
    /// (torch/backends/cudnn/__init__.py, `is_acceptable`).
    half: bool,
}

impl FlatWeights {
    /// Reads the calls of the job; none if the rule is switched off.
    pub(crate) fn of(cx: &Context<'_>) -> Self {
        let profile = cx.profile;
        let symbols: Vec<Sym> =
            RULE.rule.operators.iter().filter_map(|name| profile.symbol(name)).collect();
        let mut stacks = Vec::new();
        if symbols.is_empty() || !cx.enables(&RULE.rule) {
            return Self(stacks);
        }
        let calls = profile.tree.preorder().iter().copied();
        for op in calls.filter(|&op| symbols.contains(&profile.op_symbol(op))) {
            let Some(layers) = Layers::read(profile.op_name(op), profile.arguments(op)) else {
                continue;
            };
            let stack = Stack::of(&layers);
            if !stacks.contains(&stack) {
                stacks.push(stack);
            }
        }
        stacks.sort_by_key(|stack| std::cmp::Reverse(stack.parameters.len()));
        Self(stacks)
    }

    /// The stacks whose weights follow each other among the parameters in `order`.
    pub(crate) fn among(&self, edits: &Edits<'_, '_>, order: &[BlockId]) -> Flattening {
        let mut found = BTreeMap::new();
        let mut rest = order;
        while let Some((_, others)) = rest.split_first() {
            let sizes = || rest.iter().map(|&id| edits.recorded_size(id));
            let stack = self.0.iter().find_map(|s| Some((s.parameters.len(), s.flat(sizes())?)));
            rest = match stack {
                Some((length, flat)) => {
                    let (weights, others) = rest.split_at(length);
                    found.insert(weights[length - 1], (weights.to_vec(), flat));
                    others
                }
                None => others,
            };
        }
        Flattening(found)
    }
}

impl Stack {
    fn of(layers: &Layers) -> Self {
        let elements = |bytes: Bytes| bytes.get() / layers.dtype.size();
        Self {
            parameters: layers.parameters.iter().copied().map(elements).collect(),
            flat: elements(layers.flat()),
            half: layers.dtype != DType::BF16,
        }
    }

    /// The size of the buffer if blocks of these sizes are the weights.
    fn flat(&self, sizes: impl Iterator<Item = Bytes>) -> Option<Bytes> {
        let (mut sizes, first) = (sizes.peekable(), *self.parameters.first()?);
        let each = sizes.peek()?.get().checked_div(first)?;
        let fits = |&elements: &u64| sizes.next().is_some_and(|size| size.get() == elements * each);
        let accepted = each >= 4 || (each == 2 && self.half);
        (accepted && self.parameters.iter().all(fits)).then(|| (Count(self.flat) * each).into())
    }
}

/// The weights of each stack and the size of their buffer, by the last of the weights.
pub(crate) struct Flattening(BTreeMap<BlockId, (Vec<BlockId>, Bytes)>);

impl Flattening {
    /// Puts weights into one buffer if this parameter, which was just allocated, is the last of them.
    pub(crate) fn after(&self, edits: &mut Edits<'_, '_>, parameter: BlockId) {
        let Some((weights, flat)) = self.0.get(&parameter) else { return };
        let alloc = edits.after(parameter);
        let free = weights.iter().map(|&weight| edits.item(weight).free()).max();
        let mut edits = edits.credit(&RULE.rule);
        if let Some(free) = free {
            edits.add_unseen(*flat, Role::Parameter, alloc, free);
        }
        for &weight in weights {
            let free = edits.next(alloc);
            edits.move_free(weight, free);
        }
    }
}
