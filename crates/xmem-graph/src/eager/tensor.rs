//! Tensors without values: sizes, strides, a type, a share of a storage, and their place in the graph of
//! gradients.

mod checkpoint;
mod node;

use super::arguments::{Args, Argument};
use super::journal::Journal;
use crate::dtype::DType;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

pub(crate) use checkpoint::{Again, Checkpoint};
pub(crate) use node::{Edge, Node, NodeKind, Saved};

/// A tensor. Clones are the same tensor, as `at::Tensor` is a counted pointer to one.
#[derive(Clone)]
pub(crate) struct Tensor(Rc<Body>);

struct Body {
    dims: Vec<i64>,
    strides: Vec<i64>,
    dtype: DType,
    storage: Rc<Storage>,
    /// The share of the tensor that this one is a view of, which lives as long (torch/csrc/autograd/variable.h,
    /// `ViewInfo::base_`).
    base: Option<Rc<Storage>>,
    requires_grad: Cell<bool>,
    /// Where the tensor comes from, if gradients flow through it.
    history: RefCell<Option<Edge>>,
    /// The gradient of a leaf.
    grad: RefCell<Option<Tensor>>,
    accumulator: OnceCell<RefCell<Weak<Node>>>,
    /// What follows the accumulation of a leaf's gradient.
    accumulated: RefCell<Option<Hook>>,
}

/// Something that is done when a gradient comes by.
pub(crate) type Hook = Rc<dyn Fn(&super::Eager)>;

/// Memory that tensors share. It is freed with the last of them, as in PyTorch.
pub(crate) struct Storage {
    journal: Rc<RefCell<Journal>>,
    /// 0 while it has no memory.
    address: Cell<u64>,
    bytes: u64,
}

impl Storage {
    /// A storage of this size that has no memory yet.
    pub(crate) fn without_memory(journal: &Rc<RefCell<Journal>>, bytes: u64) -> Rc<Self> {
        Rc::new(Self { journal: Rc::clone(journal), address: Cell::new(0), bytes })
    }

    /// Allocates; nothing for an empty one, as PyTorch.
    pub(in crate::eager) fn allocate(&self) {
        if self.bytes > 0 && self.address.get() == 0 {
            self.address.set(self.journal.borrow_mut().allocate(self.bytes));
        }
    }

    fn release(&self) {
        let address = self.address.replace(0);
        if address > 0 {
            self.journal.borrow_mut().free(address, self.bytes);
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.release();
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}{:?}", self.dtype(), self.dims())
    }
}

impl Tensor {
    /// A tensor on a storage.
    pub(crate) fn on(
        storage: Rc<Storage>,
        dims: Vec<i64>,
        strides: Vec<i64>,
        dtype: DType,
    ) -> Self {
        Self::made(storage, None, (dims, strides), dtype)
    }

    fn made(
        storage: Rc<Storage>,
        base: Option<Rc<Storage>>,
        (dims, strides): (Vec<i64>, Vec<i64>),
        dtype: DType,
    ) -> Self {
        Self(Rc::new(Body {
            dims,
            strides,
            dtype,
            storage,
            base,
            requires_grad: Cell::new(false),
            history: RefCell::new(None),
            grad: RefCell::new(None),
            accumulator: OnceCell::new(),
            accumulated: RefCell::new(None),
        }))
    }

    /// A view, without history. It keeps the tensor that it is a view of.
    pub(crate) fn view(&self, dims: Vec<i64>, strides: Vec<i64>) -> Self {
        let base = Some(Rc::clone(&self.0.storage));
        Self::made(Rc::clone(&self.0.storage), base, (dims, strides), self.0.dtype)
    }

    /// The same sizes on the same storage, without history: what autograd saves, and `detach`.
    pub(crate) fn detached(&self) -> Self {
        Self::on(
            Rc::clone(&self.0.storage),
            self.0.dims.clone(),
            self.0.strides.clone(),
            self.0.dtype,
        )
    }

    /// Address and bytes of the storage.
    pub(crate) fn memory(&self) -> (u64, u64) {
        (self.0.storage.address.get(), self.0.storage.bytes)
    }

    /// Gives the storage memory (`Storage.resize_` to its size).
    pub(crate) fn allocate(&self) {
        self.0.storage.allocate();
    }

    /// Frees the memory of the storage, which stays the tensor's (`Storage.resize_(0)`).
    pub(crate) fn release(&self) {
        self.0.storage.release();
    }

    pub(crate) fn dims(&self) -> &[i64] {
        &self.0.dims
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.0.strides
    }

    pub(crate) fn dtype(&self) -> DType {
        self.0.dtype
    }

    pub(crate) fn rank(&self) -> usize {
        self.0.dims.len()
    }

    /// Size of a dimension, counted from the end if negative. 1 if the tensor has no such dimension.
    pub(crate) fn dim(&self, at: i64) -> i64 {
        wrapped(at, self.rank()).and_then(|at| self.0.dims.get(at).copied()).unwrap_or(1)
    }

    pub(crate) fn elements(&self) -> i64 {
        count(&self.0.dims)
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.0.dims.iter().zip(&self.0.strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected = i64::saturating_mul(expected, dim);
            fits
        })
    }

    /// Returns whether the elements fill a stretch of memory, in some order of the dimensions
    /// (c10/core/TensorImpl.h, `is_non_overlapping_and_dense`).
    pub(crate) fn is_dense(&self) -> bool {
        let mut order: Vec<(i64, i64)> = self
            .0
            .dims
            .iter()
            .zip(&self.0.strides)
            .filter(|(d, _)| **d != 1)
            .map(|(&d, &s)| (s, d))
            .collect();
        order.sort_unstable();
        let mut expected = 1;
        order.iter().all(|&(stride, dim)| {
            let fits = stride == expected;
            expected = i64::saturating_mul(expected, dim);
            fits
        })
    }

    /// Returns whether the elements of both lie in memory in the same order; strides of dimensions of one
    /// element say nothing.
    pub(crate) fn lies_as(&self, other: &Self) -> bool {
        let strides = self.0.strides.iter().zip(&other.0.strides);
        self.0.dims == other.0.dims
            && strides.zip(&self.0.dims).all(|((a, b), &d)| d == 1 || a == b)
    }

    /// Returns whether this is the only reference to the tensor and to its storage.
    pub(crate) fn is_sole_owner(&self) -> bool {
        self.0.base.is_none()
            && Rc::strong_count(&self.0) == 1
            && Rc::strong_count(&self.0.storage) == 1
    }

    /// Owners of the tensor itself.
    pub(crate) fn owners(&self) -> usize {
        Rc::strong_count(&self.0)
    }

    /// What tells this tensor from others, while it lives.
    pub(crate) fn identity(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }

    pub(crate) fn set_requires_grad(&self) {
        self.0.requires_grad.set(true);
    }

    pub(crate) fn requires_grad(&self) -> bool {
        self.0.requires_grad.get() || self.0.history.borrow().is_some()
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.0.history.borrow().is_none()
    }

    pub(crate) fn set_history(&self, edge: Edge) {
        *self.0.history.borrow_mut() = Some(edge);
    }

    /// The edge to where the gradient of this tensor goes.
    pub(crate) fn edge(&self) -> Option<Edge> {
        if let Some(edge) = &*self.0.history.borrow() {
            return Some(edge.clone());
        }
        if !self.0.requires_grad.get() {
            return None;
        }
        let slot = self.0.accumulator.get_or_init(|| RefCell::new(Weak::new()));
        let known = slot.borrow().upgrade();
        let node = known.unwrap_or_else(|| {
            let node = Node::accumulator(self.clone());
            *slot.borrow_mut() = Rc::downgrade(&node);
            node
        });
        Some(Edge { node, input: 0 })
    }

    /// Does something each time that the gradient of this leaf was accumulated.
    pub(crate) fn when_accumulated(&self, hook: Hook) {
        *self.0.accumulated.borrow_mut() = Some(hook);
    }

    pub(in crate::eager) fn accumulated(&self) -> Option<Hook> {
        self.0.accumulated.borrow().clone()
    }

    /// Does something before the gradient of this tensor goes on (`Tensor.register_hook`).
    pub(crate) fn before_gradient(&self, hook: Hook) {
        if let Some(edge) = &*self.0.history.borrow() {
            edge.node.before.borrow_mut().push(hook);
        }
    }

    pub(crate) fn grad(&self) -> Option<Self> {
        self.0.grad.borrow().clone()
    }

    pub(crate) fn set_grad(&self, grad: Option<Self>) {
        // The former one is freed when the new one is in its place.
        let former = self.0.grad.replace(grad);
        drop(former);
    }
}

/// Strides of a contiguous tensor.
pub(crate) fn contiguous_strides(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    let mut next = 1_i64;
    for (at, &dim) in dims.iter().enumerate().rev() {
        strides[at] = next;
        next = next.saturating_mul(dim.max(1));
    }
    strides
}

/// Strides of a copy that keeps the layout: those of a dense tensor, else contiguous ones.
pub(crate) fn preserved_strides(x: &Tensor) -> Vec<i64> {
    if x.is_dense() { x.strides().to_vec() } else { contiguous_strides(x.dims()) }
}

/// The number of elements of these sizes; the largest number if there are more.
pub(crate) fn count(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |n, &d| i64::saturating_mul(n, d))
}

/// The index of a dimension that may be counted from the end.
pub(crate) fn wrapped(at: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let at = if at < 0 { at + rank } else { at };
    usize::try_from(at).ok()
}

/// Strides of a tensor that lies in memory as another one, without its gaps.
pub(crate) fn dense_strides(x: &Tensor) -> Vec<i64> {
    if x.is_dense() { x.strides().to_vec() } else { closed(x.dims(), x.strides()) }
}

/// Strides in the same order without gaps (aten/src/ATen/native/TensorFactories.cpp, `infer_dense_strides`).
fn closed(dims: &[i64], strides: &[i64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..dims.len()).collect();
    // Expanded dimensions come last, as those of a contiguous tensor.
    order.sort_by_key(|&at| {
        (if strides[at] == 0 { i64::MAX } else { strides[at] }, std::cmp::Reverse(at))
    });
    let mut result = vec![1; dims.len()];
    let mut next = 1_i64;
    for at in order {
        result[at] = next;
        next = next.saturating_mul(dims[at].max(1));
    }
    result
}

impl Argument for Tensor {
    fn write(&self, args: &mut Args) {
        args.push_tensor(self.dtype().profiler_name(), self.dims(), self.strides());
    }
}

impl Argument for [Tensor] {
    fn write(&self, args: &mut Args) {
        args.push_tensors(self.iter().map(|tensor| (tensor.dims(), tensor.strides())));
    }
}

impl Argument for Vec<Tensor> {
    fn write(&self, args: &mut Args) {
        self.as_slice().write(args);
    }
}
