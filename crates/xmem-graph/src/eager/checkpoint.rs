//! Parts of a model whose saved tensors are computed again in backward (torch/utils/checkpoint.py,
//! `_checkpoint_without_reentrant_generator`): a tensor that would be saved leaves a place behind; the first node
//! that looks for one runs the part again, and all places are filled.

use super::Eager;
use super::tensor::{Again, Checkpoint, Tensor};
use std::rc::Rc;

/// What becomes of tensors that are saved.
#[derive(Clone)]
pub(crate) enum Packing {
    /// Only their places are counted.
    Counted(Rc<Checkpoint>),
    /// They are kept for the nodes of the first run.
    Kept(Rc<Checkpoint>),
}

impl Eager {
    /// Moves what a node saved into `saved`; the first call runs the part again.
    pub(super) fn unpack(
        &self,
        (checkpoint, first): (&Rc<Checkpoint>, usize),
        saved: &mut [Option<Tensor>],
    ) {
        let again = checkpoint.again.borrow_mut().take();
        if let Some(again) = again {
            let packing = self.packing.replace(Some(Packing::Kept(Rc::clone(checkpoint))));
            let mode = self.grad_mode.replace(true);
            again(self, &|| checkpoint.saved.borrow().len() >= checkpoint.places.get());
            self.grad_mode.set(mode);
            self.packing.replace(packing);
        }
        let mut kept = checkpoint.saved.borrow_mut();
        for (place, slot) in saved.iter_mut().enumerate() {
            if let Some(tensor) = kept.get_mut(first + place) {
                *slot = tensor.take();
            }
        }
    }

    /// Runs a part of the model whose saved tensors are computed again by `again`.
    pub(crate) fn checkpointed<R>(&self, again: Again, part: impl FnOnce() -> R) -> R {
        if !self.grad_mode.get() || self.packing.borrow().is_some() {
            return part();
        }
        let checkpoint = Checkpoint::new();
        *checkpoint.again.borrow_mut() = Some(again);
        let outer = self.packing.replace(Some(Packing::Counted(checkpoint)));
        let result = part();
        self.packing.replace(outer);
        result
    }

    /// What a node saves, by the packing that is on: nothing and the number of its first place, if the part is
    /// computed again.
    pub(super) fn packed(&self, saved: &mut [Option<Tensor>]) -> Option<(Rc<Checkpoint>, usize)> {
        match &*self.packing.borrow() {
            None => None,
            Some(Packing::Counted(checkpoint)) => {
                let first = checkpoint.places.get();
                checkpoint.places.set(first + saved.len());
                saved.iter_mut().for_each(|slot| *slot = None);
                Some((Rc::clone(checkpoint), first))
            }
            Some(Packing::Kept(checkpoint)) => {
                checkpoint.saved.borrow_mut().extend(saved.iter().cloned());
                None
            }
        }
    }
}
