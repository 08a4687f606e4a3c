//! PyTorch's eager mode without values: operators that allocate, views that share, gradients that keep what
//! they need, and memory that is freed with its last owner. What happens is noted as PyTorch's profiler notes
//! it on a CPU; what becomes of it on a GPU is for the rules that lower any recording.

pub(crate) mod arguments;
pub(crate) mod autocast;
pub(crate) mod autograd;
pub(crate) mod checkpoint;
pub(crate) mod journal;
pub(crate) mod tensor;

use crate::dtype::DType;
use crate::events::{CallKind, Sequence};
use arguments::{Args, args};
use autocast::Autocast;
use checkpoint::Packing;
use journal::Journal;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tensor::{Hook, Storage, Tensor, contiguous_strides, dense_strides};

/// Above this a size is an error of the graph, not a tensor.
const MAX_BYTES: u64 = 1 << 50;

/// What was before a context.
pub(crate) enum Former {
    /// Autocast around it.
    Autocast(Option<Autocast>),
    /// Whether gradients were on.
    Gradients(bool),
}

/// A process that runs PyTorch.
pub(crate) struct Eager {
    journal: Rc<RefCell<Journal>>,
    grad_mode: Cell<bool>,
    /// `at::sequence_number`.
    sequence: Cell<u64>,
    /// Operators within operators that autograd has passed (`AutoDispatchBelowAutograd`).
    below_autograd: Cell<bool>,
    autocast: RefCell<Option<Autocast>>,
    packing: RefCell<Option<Packing>>,
    /// What the engine does when the backward pass that runs is over (`Engine::queue_callback`).
    at_end_of_backward: RefCell<Vec<Hook>>,
    too_large: Cell<bool>,
}

impl Eager {
    pub(crate) fn new() -> Self {
        Self {
            journal: Rc::default(),
            grad_mode: Cell::new(true),
            sequence: Cell::new(0),
            below_autograd: Cell::new(false),
            autocast: RefCell::new(None),
            packing: RefCell::new(None),
            at_end_of_backward: RefCell::default(),
            too_large: Cell::new(false),
        }
    }

    /// Returns whether a tensor was asked for that no machine holds.
    pub(crate) fn is_too_large(&self) -> bool {
        self.too_large.get()
    }

    /// Ends the recording.
    pub(crate) fn close(&self) {
        self.journal.borrow_mut().close();
    }

    /// What was noted.
    pub(crate) fn into_journal(self) -> Journal {
        self.journal.take()
    }

    fn next_sequence(&self) -> u64 {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        sequence
    }

    /// A call of any kind.
    pub(crate) fn within<R>(
        &self,
        kind: CallKind,
        name: impl Into<Cow<'static, str>>,
        args: Args,
        sequence: Option<Sequence>,
        body: impl FnOnce() -> R,
    ) -> R {
        let call = self.journal.borrow_mut().begin(kind, name, args, sequence);
        let result = body();
        self.journal.borrow_mut().end(&call);
        result
    }

    /// An annotation.
    pub(crate) fn annotated<R>(
        &self,
        name: impl Into<Cow<'static, str>>,
        body: impl FnOnce() -> R,
    ) -> R {
        self.within(CallKind::Annotation, name, Args::default(), None, body)
    }

    /// Notes that a tensor is copied to the GPU here, or made there (the marks of `xmem profile`).
    pub(crate) fn mark(&self, kind: &'static str, tensor: &Tensor) {
        let (address, bytes) = tensor.memory();
        if bytes > 0 {
            self.annotated(format!("xmem::{kind} 0x{address:x} {bytes}"), || ());
        }
    }

    /// Runs with another stream selected: what is allocated is allocated on it.
    pub(crate) fn on_stream<R>(&self, stream: u32, body: impl FnOnce() -> R) -> R {
        self.annotated(format!("xmem::stream {stream}"), || ());
        let result = body();
        self.annotated("xmem::stream 0", || ());
        result
    }

    /// Does something when the backward pass that runs is over.
    pub(crate) fn after_backward(&self, hook: Hook) {
        self.at_end_of_backward.borrow_mut().push(hook);
    }

    /// An annotation that is open until [`left`](Self::left).
    pub(crate) fn opened(&self, name: impl Into<Cow<'static, str>>) -> journal::Begun {
        self.journal.borrow_mut().begin(CallKind::Annotation, name, Args::default(), None)
    }

    /// A call of Python's that is open until [`left`](Self::left).
    pub(crate) fn entered(&self, name: String) -> journal::Begun {
        self.journal.borrow_mut().begin(CallKind::Python, name, Args::default(), None)
    }

    /// The end of a call of Python's.
    pub(crate) fn left(&self, call: &journal::Begun) {
        self.journal.borrow_mut().end(call);
    }

    /// An operator of which autograd knows nothing: one that is made of others, or is within one.
    pub(crate) fn call<R>(&self, name: &'static str, args: Args, body: impl FnOnce() -> R) -> R {
        self.within(CallKind::Operator, name, args, self.visible_sequence(), body)
    }

    /// The same with a name that is made.
    pub(crate) fn call_named<R>(&self, name: String, args: Args, body: impl FnOnce() -> R) -> R {
        self.within(CallKind::Operator, name, args, self.visible_sequence(), body)
    }

    fn visible_sequence(&self) -> Option<Sequence> {
        let visible = self.grad_mode.get() && !self.below_autograd.get();
        visible.then(|| Sequence::Forward(self.sequence.get()))
    }

    /// An operator with a derivative of its own: what it calls is below autograd.
    pub(crate) fn primitive<R>(
        &self,
        name: impl Into<Cow<'static, str>>,
        args: Args,
        body: impl FnOnce() -> R,
    ) -> R {
        let sequence = self.visible_sequence();
        self.within(CallKind::Operator, name, args, sequence, || {
            let above = self.below_autograd.replace(true);
            let result = body();
            self.below_autograd.set(above);
            result
        })
    }

    /// Runs with gradients off, as `torch.no_grad()` does.
    pub(crate) fn without_gradients<R>(&self, body: impl FnOnce() -> R) -> R {
        let mode = self.grad_mode.replace(false);
        let result = body();
        self.grad_mode.set(mode);
        result
    }

    /// Begins `torch.set_grad_enabled`.
    pub(crate) fn enter_gradients(&self, are_on: bool) -> Former {
        Former::Gradients(self.grad_mode.replace(are_on))
    }

    /// Ends a context.
    pub(crate) fn leave(&self, former: Former) {
        match former {
            Former::Autocast(outer) => drop(self.autocast.replace(outer)),
            Former::Gradients(mode) => self.grad_mode.set(mode),
        }
    }

    fn storage(&self, dims: &[i64], dtype: DType) -> Rc<Storage> {
        let storage = self.storage_without_memory(dims, dtype);
        storage.allocate();
        storage
    }

    fn storage_without_memory(&self, dims: &[i64], dtype: DType) -> Rc<Storage> {
        let elements = dims.iter().try_fold(1_u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?));
        let bytes = elements.and_then(|n| n.checked_mul(dtype.size())).filter(|&b| b <= MAX_BYTES);
        let bytes = bytes.unwrap_or_else(|| {
            self.too_large.set(true);
            0
        });
        Storage::without_memory(&self.journal, bytes)
    }

    /// A contiguous tensor at the start of a storage of so many elements, which has no memory yet.
    pub(crate) fn within_storage(&self, dims: &[i64], elements: i64, dtype: DType) -> Tensor {
        let storage = self.storage_without_memory(&[elements], dtype);
        Tensor::on(storage, dims.to_vec(), contiguous_strides(dims), dtype)
    }

    /// A new contiguous tensor.
    pub(crate) fn empty(&self, dims: &[i64], dtype: DType) -> Tensor {
        Tensor::on(self.storage(dims, dtype), dims.to_vec(), contiguous_strides(dims), dtype)
    }

    /// A new dense tensor with these strides.
    pub(crate) fn strided(&self, dims: Vec<i64>, strides: Vec<i64>, dtype: DType) -> Tensor {
        Tensor::on(self.storage(&dims, dtype), dims, strides, dtype)
    }

    /// `aten::empty_strided`.
    pub(crate) fn empty_strided(&self, dims: Vec<i64>, strides: Vec<i64>, dtype: DType) -> Tensor {
        let args =
            args![dims, strides, dtype.number(), 0_i64, arguments::Absent, arguments::Absent];
        self.call("aten::empty_strided", args, || {
            self.strided(dims.clone(), strides.clone(), dtype)
        })
    }

    /// `aten::empty`.
    pub(crate) fn empty_called(&self, dims: &[i64], dtype: DType) -> Tensor {
        let args = args![
            dims,
            dtype.number(),
            0_i64,
            arguments::Absent,
            arguments::Absent,
            arguments::Absent
        ];
        self.call("aten::empty", args, || self.empty(dims, dtype))
    }

    /// A new tensor that lies in memory as another one, contiguous if that one has gaps
    /// (aten/src/ATen/native/TensorFactories.cpp, `empty_like`).
    pub(crate) fn like(&self, other: &Tensor) -> Tensor {
        self.like_of(other, other.dtype())
    }

    /// The same of another type.
    pub(crate) fn like_of(&self, other: &Tensor, dtype: DType) -> Tensor {
        self.strided(other.dims().to_vec(), dense_strides(other), dtype)
    }
}
