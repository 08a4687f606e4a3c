//! What a checkpointed part of a model leaves in the nodes of its first run.

use super::Tensor;
use crate::eager::Eager;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A part that is computed again.
pub(crate) struct Checkpoint {
    /// Runs the part with the inputs that it was given.
    pub(in crate::eager) again: RefCell<Option<Again>>,
    /// What it saved when it ran again, in order.
    pub(in crate::eager) saved: RefCell<Vec<Option<Tensor>>>,
    pub(in crate::eager) places: Cell<usize>,
}

/// Runs a part again, until the second argument says that it is enough.
pub(crate) type Again = Box<dyn Fn(&Eager, &dyn Fn() -> bool)>;

impl Checkpoint {
    /// A part that has not run.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { again: RefCell::new(None), saved: RefCell::default(), places: Cell::new(0) })
    }
}
