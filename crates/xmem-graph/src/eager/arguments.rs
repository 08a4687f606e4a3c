//! Arguments of operators as the profiler writes them (`Input Dims`, `Input type`, `Input Strides`,
//! `Concrete Inputs`; torch/csrc/profiler/util.cpp, collection.cpp).

use crate::events::ArgumentLists;
use crate::text;
use std::cell::RefCell;
use std::fmt::Write as _;

/// The arguments of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Args {
    dims: String,
    types: String,
    strides: String,
    concrete: String,
}

/// A value that can be an argument.
pub(crate) trait Argument {
    fn write(&self, args: &mut Args);
}

/// An argument that the caller left out, or `None`.
pub(crate) struct Absent;

/// A Python number where the operator takes a tensor: PyTorch wraps it
/// (c10/core/ScalarType.h; torch/csrc/utils/python_arg_parser.cpp).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapped(pub(crate) Number);

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// The list of arguments of a call, in the order of the operator's schema.
macro_rules! args {
    ($($value:expr),* $(,)?) => {{
        #[allow(unused_mut, reason = "a call without arguments")]
        let mut args = $crate::eager::arguments::Args::in_spare_memory();
        $($crate::eager::arguments::Argument::write(&$value, &mut args);)*
        args
    }};
}
pub(crate) use args;

thread_local! {
    /// Lists that calls are done with: most calls have the arguments of an earlier one, and would allocate four lists in vain.
    static SPARE: RefCell<Vec<Args>> = const { RefCell::new(Vec::new()) };
}

/// The most lists that are kept.
const MAX_SPARE: usize = 8;

impl Args {
    /// No arguments, in memory of a call that is over.
    pub(crate) fn in_spare_memory() -> Self {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Leaves its memory to later calls.
    pub(super) fn recycle(mut self) {
        for column in [&mut self.dims, &mut self.types, &mut self.strides, &mut self.concrete] {
            column.clear();
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(self);
            }
        });
    }

    /// Begins an argument of a type, whose sizes, strides and value follow.
    fn begin(&mut self, kind: &str) {
        if !self.dims.is_empty() {
            for column in [&mut self.dims, &mut self.types, &mut self.strides, &mut self.concrete] {
                column.push_str(", ");
            }
        }
        self.types.push('"');
        self.types.push_str(kind);
        self.types.push('"');
    }

    /// An argument that is no tensor.
    fn push(&mut self, kind: &str, write: impl FnOnce(&mut String)) {
        self.begin(kind);
        self.dims.push_str("[]");
        self.strides.push_str("[]");
        self.concrete.push('"');
        write(&mut self.concrete);
        self.concrete.push('"');
    }

    /// A tensor.
    pub(super) fn push_tensor(&mut self, kind: &str, dims: &[i64], strides: &[i64]) {
        self.begin(kind);
        text::integers(&mut self.dims, dims);
        text::integers(&mut self.strides, strides);
        self.concrete.push_str("\"\"");
    }

    /// A list of tensors, each with its sizes and strides.
    pub(super) fn push_tensors<'a>(
        &mut self,
        tensors: impl Iterator<Item = (&'a [i64], &'a [i64])> + Clone,
    ) {
        self.begin("TensorList");
        text::list(&mut self.dims, tensors.clone(), |text, (dims, _)| text::integers(text, dims));
        text::list(&mut self.strides, tensors, |text, (_, strides)| text::integers(text, strides));
        self.concrete.push_str("\"\"");
    }

    /// Returns whether there are no arguments.
    pub(super) fn is_empty(&self) -> bool {
        self.dims.is_empty()
    }

    /// The lists.
    pub(super) fn lists(&self) -> ArgumentLists<'_> {
        ArgumentLists {
            dims: &self.dims,
            types: &self.types,
            strides: &self.strides,
            concrete: &self.concrete,
        }
    }
}

impl Argument for Absent {
    fn write(&self, args: &mut Args) {
        args.push("", |_| ());
    }
}

impl Argument for bool {
    fn write(&self, args: &mut Args) {
        args.push("Scalar", |text| text.push_str(text::boolean(*self)));
    }
}

impl Argument for i64 {
    fn write(&self, args: &mut Args) {
        args.push("Scalar", |text| text::integer(text, *self));
    }
}

impl Argument for f64 {
    fn write(&self, args: &mut Args) {
        args.push("Scalar", |text| float(text, *self));
    }
}

/// As C++ streams print a double with 17 digits: `1.` for a whole number.
fn float(text: &mut String, value: f64) {
    if value.is_infinite() {
        text.push_str(if value > 0.0 { "inf" } else { "-inf" });
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        if value.is_sign_negative() {
            text.push('-');
        }
        text::integer(text, value.abs() as u64);
        text.push('.');
    } else {
        // A string takes all that is written to it.
        let _infallible = write!(text, "{value}");
    }
}

impl Argument for Number {
    fn write(&self, args: &mut Args) {
        match self {
            Self::Int(value) => value.write(args),
            Self::Float(value) => value.write(args),
            Self::Bool(value) => value.write(args),
        }
    }
}

impl Argument for Wrapped {
    fn write(&self, args: &mut Args) {
        let kind = match self.0 {
            Number::Int(_) => "long int",
            Number::Float(_) => "double",
            Number::Bool(_) => "bool",
        };
        args.push(kind, |_| ());
    }
}

impl Argument for [i64] {
    fn write(&self, args: &mut Args) {
        args.push("ScalarList", |text| text::integers(text, self));
    }
}

impl Argument for Vec<i64> {
    fn write(&self, args: &mut Args) {
        self.as_slice().write(args);
    }
}

impl<const N: usize> Argument for [i64; N] {
    fn write(&self, args: &mut Args) {
        self.as_slice().write(args);
    }
}

impl<const N: usize> Argument for [bool; N] {
    fn write(&self, args: &mut Args) {
        args.push("ScalarList", |text| {
            text::list(text, self.iter(), |text, flag| text.push_str(text::boolean(*flag)));
        });
    }
}

impl<T: Argument + ?Sized> Argument for &T {
    fn write(&self, args: &mut Args) {
        (**self).write(args);
    }
}

impl<T: Argument> Argument for Option<T> {
    fn write(&self, args: &mut Args) {
        match self {
            Some(value) => value.write(args),
            None => Absent.write(args),
        }
    }
}

impl Number {
    /// The value as a float.
    #[expect(clippy::cast_precision_loss, reason = "numbers of graphs are small")]
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
            Self::Bool(value) => f64::from(u8::from(value)),
        }
    }
}
