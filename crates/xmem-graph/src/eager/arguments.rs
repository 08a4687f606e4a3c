//! Arguments of operators as the profiler writes them (`Input Dims`, `Input type`, `Input Strides`,
//! `Concrete Inputs`; torch/csrc/profiler/util.cpp, collection.cpp).

use std::fmt::Write as _;

/// The arguments of one call.
#[derive(Clone, Debug, Default)]
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
        let mut args = $crate::eager::arguments::Args::default();
        $($crate::eager::arguments::Argument::write(&$value, &mut args);)*
        args
    }};
}
pub(crate) use args;

impl Args {
    pub(super) fn push(&mut self, dims: &str, kind: &str, strides: &str, concrete: &str) {
        let comma = if self.dims.is_empty() { "" } else { ", " };
        let _ = write!(self.dims, "{comma}{dims}");
        let _ = write!(self.types, "{comma}\"{kind}\"");
        let _ = write!(self.strides, "{comma}{strides}");
        let _ = write!(self.concrete, "{comma}\"{concrete}\"");
    }

    /// Members of the event's `args`, each with a comma behind it.
    pub(crate) fn write(&self, text: &mut String) {
        if self.dims.is_empty() {
            return;
        }
        let _ = write!(
            text,
            r#""Input Dims": [{}], "Input type": [{}], "Input Strides": [{}], "Concrete Inputs": [{}], "#,
            self.dims, self.types, self.strides, self.concrete
        );
    }
}

/// A list as the profiler writes it.
pub(super) fn list(values: &[i64]) -> String {
    let mut text = String::from("[");
    for (at, value) in values.iter().enumerate() {
        let _ = write!(text, "{}{value}", if at == 0 { "" } else { ", " });
    }
    text.push(']');
    text
}

impl Argument for Absent {
    fn write(&self, args: &mut Args) {
        args.push("[]", "", "[]", "");
    }
}

impl Argument for bool {
    fn write(&self, args: &mut Args) {
        args.push("[]", "Scalar", "[]", if *self { "True" } else { "False" });
    }
}

impl Argument for i64 {
    fn write(&self, args: &mut Args) {
        args.push("[]", "Scalar", "[]", &self.to_string());
    }
}

impl Argument for f64 {
    fn write(&self, args: &mut Args) {
        args.push("[]", "Scalar", "[]", &float(*self));
    }
}

/// As C++ streams print a double with 17 digits: `1.` for a whole number.
fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}.");
    }
    format!("{value}")
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
        args.push("[]", kind, "[]", "");
    }
}

impl Argument for [i64] {
    fn write(&self, args: &mut Args) {
        args.push("[]", "ScalarList", "[]", &list(self));
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
        let words: Vec<&str> = self.iter().map(|b| if *b { "True" } else { "False" }).collect();
        args.push("[]", "ScalarList", "[]", &format!("[{}]", words.join(", ")));
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
