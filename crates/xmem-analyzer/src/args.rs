//! Recorded operator arguments: shapes, types, strides and scalar values, parsed once per distinct
//! signature.

use std::num::IntErrorKind;
use xmem_trace::{Signature, SignatureId};
use xmem_types::{Interner, saturating_product};

/// The element type of a tensor argument, as the profiler names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// `float`
    F32,
    /// `double`
    F64,
    /// `c10::Half`
    F16,
    /// `c10::BFloat16`
    BF16,
    /// `long int`
    I64,
    /// `int`
    I32,
    /// `short int`
    I16,
    /// `signed char`, `unsigned char`
    I8,
    /// `bool`
    Bool,
    /// Anything else that has an element size of its own.
    Other,
}

impl DType {
    /// Bytes of one element; 4 for [`DType::Other`].
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 | Self::Other => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::I8 | Self::Bool => 1,
        }
    }

    /// Returns whether this is a 16-bit floating type.
    #[must_use]
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::BF16)
    }
}

/// One argument of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A tensor.
    Tensor(TensorArg),
    /// A list of tensors; empty where the profiler left it out (more than 30 tensors).
    TensorList(Vec<Vec<u64>>),
    /// A number, boolean, list of numbers or string, as text (`4`, `[1, 1]`, `True`).
    Value(String),
    /// `None`, or of a kind that the profiler does not record.
    Absent,
}

/// Shape, strides and type of a tensor argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorArg {
    /// Extents, outermost first; empty for a 0-dimensional tensor.
    pub dims: Vec<u64>,
    /// Strides in elements; empty where not recorded.
    pub strides: Vec<i64>,
    /// Element type.
    pub dtype: DType,
}

impl TensorArg {
    /// Number of elements; 2^64 - 1 where there are more (a trace may say anything).
    #[must_use]
    pub fn numel(&self) -> u64 {
        saturating_product(&self.dims)
    }

    /// Bytes of a dense tensor of this shape and type; 2^64 - 1 where there are more.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.numel().saturating_mul(self.dtype.size())
    }

    /// Bytes that the tensor spans in memory: less than [`Self::bytes`] where dimensions are
    /// expanded (stride 0); the same where strides were not recorded. Saturates as they do.
    #[must_use]
    pub fn storage_bytes(&self) -> u64 {
        if self.strides.len() != self.dims.len() || self.numel() == 0 {
            return self.bytes();
        }
        let last = self.dims.iter().zip(&self.strides);
        let last = last.map(|(d, s)| (d - 1).saturating_mul(s.unsigned_abs()));
        let elements = last.fold(1, u64::saturating_add);
        elements.saturating_mul(self.dtype.size())
    }
}

/// The arguments of one operator; empty where shapes were not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// By position.
    pub list: Vec<Argument>,
}

impl Arguments {
    /// The tensor at `position`, if there is one.
    #[must_use]
    pub fn tensor(&self, position: usize) -> Option<&TensorArg> {
        match self.list.get(position) {
            Some(Argument::Tensor(t)) => Some(t),
            _ => None,
        }
    }

    /// The value at `position` as text.
    #[must_use]
    pub fn value(&self, position: usize) -> Option<&str> {
        match self.list.get(position) {
            Some(Argument::Value(v)) => Some(v),
            _ => None,
        }
    }

    /// The integers of a list value (`[1, 1]`) or of a single number.
    #[must_use]
    pub fn ints(&self, position: usize) -> Option<Vec<i64>> {
        let text = self.value(position)?;
        text.trim_matches(['[', ']'])
            .split(',')
            .map(str::trim)
            .filter(|t| !t.is_empty())
            .map(|t| t.parse().ok())
            .collect()
    }

    /// The tensor arguments in order.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorArg> {
        self.list.iter().filter_map(|a| match a {
            Argument::Tensor(t) => Some(t),
            _ => None,
        })
    }
}

/// The arguments of every distinct signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentTable {
    rows: Vec<Arguments>,
    /// Whether the fields of each signature contradict each other.
    contradictory: Vec<bool>,
}

impl ArgumentTable {
    pub(crate) fn build(signatures: &[Signature], strings: &Interner) -> Self {
        let fields = signatures.iter().map(|signature| Fields::read(signature, strings));
        let (rows, contradictory) =
            fields.map(|fields| (fields.arguments(), fields.contradict())).unzip();
        Self { rows, contradictory }
    }

    /// The table of a recording in which bfloat16 stands for float16.
    pub(crate) fn with_float16(mut self) -> Self {
        for argument in self.rows.iter_mut().flat_map(|row| &mut row.list) {
            if let Argument::Tensor(tensor) = argument
                && tensor.dtype == DType::BF16
            {
                tensor.dtype = DType::F16;
            }
        }
        self
    }

    /// The arguments of a signature.
    pub(crate) fn get(&self, id: SignatureId) -> &Arguments {
        &self.rows[id.0 as usize]
    }

    /// Returns whether the fields of a signature contradict each other: of different lengths, extents
    /// of an argument that is not a tensor, strides of another rank, an unknown type, a negative extent.
    pub(crate) fn is_contradictory(&self, id: SignatureId) -> bool {
        self.contradictory[id.0 as usize]
    }
}

/// The fields of a signature, by argument.
struct Fields<'a> {
    dims: Tree<'a>,
    types: Tree<'a>,
    strides: Tree<'a>,
    concrete: Tree<'a>,
}

impl<'a> Fields<'a> {
    fn read(signature: &Signature, strings: &'a Interner) -> Self {
        let field = |sym| Tree::read(strings.resolve(sym));
        Self {
            dims: field(signature.dims),
            types: field(signature.types),
            strides: field(signature.strides),
            concrete: field(signature.concrete),
        }
    }

    fn contradict(&self) -> bool {
        let Self { dims, types, strides, concrete } = self;
        let lengths = [dims, types, strides, concrete].map(Tree::len);
        let longest = lengths.into_iter().max().unwrap_or(0);
        let argument = |i: usize| {
            let (kind, rank) = (types.at(i).text(), dims.at(i).len());
            let ranks = strides.at(i).len();
            rank > 0 && (!is_tensor(kind) || ranks > 0 && ranks != rank) || dims.at(i).is_negative()
        };
        lengths.into_iter().any(|length| length != 0 && length != longest)
            || (0..dims.len()).any(argument)
    }

    fn arguments(&self) -> Arguments {
        let Self { dims, types, strides, concrete } = self;
        let count = dims.len().max(types.len());
        let list = (0..count).map(|i| {
            let kind = types.at(i).text();
            let value = concrete.at(i).text();
            match kind {
                "TensorList" => {
                    Argument::TensorList(dims.at(i).list().iter().map(Tree::ints).collect())
                }
                "" | "Scalar" | "ScalarList" => {
                    if value.is_empty() {
                        Argument::Absent
                    } else {
                        Argument::Value(value.into())
                    }
                }
                _ => Argument::Tensor(TensorArg {
                    dims: dims.at(i).ints(),
                    strides: strides.at(i).list().iter().map(Tree::int).collect(),
                    dtype: dtype(kind),
                }),
            }
        });
        Arguments { list: list.collect() }
    }
}

/// Returns whether a type is that of a tensor or a list of tensors. Element types have the names of C++
/// (c10/core/ScalarType.h), which differ between platforms.
fn is_tensor(kind: &str) -> bool {
    const WORDS: [&str; 10] = [
        "unsigned", "signed", "long", "short", "int", "char", "float", "double", "bool", "__int64",
    ];
    kind == "TensorList"
        || kind == "GenericList"
        || kind.starts_with("c10::")
        || !kind.is_empty() && kind.split(' ').all(|word| WORDS.contains(&word))
}

fn dtype(name: &str) -> DType {
    match name {
        "float" => DType::F32,
        "double" => DType::F64,
        "c10::Half" => DType::F16,
        "c10::BFloat16" => DType::BF16,
        "long int" | "long" => DType::I64,
        "int" => DType::I32,
        "short int" | "short" => DType::I16,
        "signed char" | "unsigned char" => DType::I8,
        "bool" => DType::Bool,
        _ => DType::Other,
    }
}

/// Nested lists of numbers and strings: all that argument fields consist of.
#[derive(Debug)]
enum Tree<'a> {
    List(Vec<Tree<'a>>),
    Leaf(&'a str),
}

static NOTHING: Tree<'static> = Tree::Leaf("");

impl<'a> Tree<'a> {
    fn read(text: &'a str) -> Self {
        let mut rest = text;
        Self::value(&mut rest, 0)
    }

    fn value(rest: &mut &'a str, depth: u8) -> Self {
        *rest = rest.trim_start();
        if let Some(inner) = rest.strip_prefix('[').filter(|_| depth < 8) {
            *rest = inner;
            let mut items = Vec::new();
            loop {
                *rest = rest.trim_start_matches([' ', ',', '\n', '\t', '\r']);
                if rest.is_empty() {
                    break;
                }
                if let Some(after) = rest.strip_prefix(']') {
                    *rest = after;
                    break;
                }
                items.push(Self::value(rest, depth + 1));
            }
            return Self::List(items);
        }
        if let Some(inner) = rest.strip_prefix('"') {
            let end = inner.find('"').unwrap_or(inner.len());
            let (text, after) = inner.split_at(end);
            *rest = after.strip_prefix('"').unwrap_or(after);
            return Self::Leaf(text);
        }
        let end = rest.find([',', ']']).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        // A stray bracket beyond the depth limit must not stall the reader.
        *rest = if end == 0 { after.get(1..).unwrap_or("") } else { after };
        Self::Leaf(text.trim())
    }

    fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            Self::Leaf(_) => &[],
        }
    }

    fn len(&self) -> usize {
        self.list().len()
    }

    fn at(&self, i: usize) -> &Self {
        self.list().get(i).unwrap_or(&NOTHING)
    }

    fn text(&self) -> &'a str {
        match self {
            Self::Leaf(text) => text,
            Self::List(_) => "",
        }
    }

    fn int(&self) -> i64 {
        self.text().parse().unwrap_or(0)
    }

    /// Returns whether a number in it has a minus sign.
    fn is_negative(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(Self::is_negative),
            Self::Leaf(text) => text.starts_with('-'),
        }
    }

    /// Extents: 0 for text that is not a number, 2^64 - 1 for a larger number.
    fn ints(&self) -> Vec<u64> {
        let extent = |tree: &Self| match tree.text().parse::<u64>() {
            Ok(extent) => extent,
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => u64::MAX,
            Err(_) => 0,
        };
        self.list().iter().map(extent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(dims: &str, types: &str, strides: &str, concrete: &str) -> Arguments {
        let mut strings = Interner::default();
        let signature = Signature {
            dims: strings.intern(dims),
            types: strings.intern(types),
            strides: strings.intern(strides),
            concrete: strings.intern(concrete),
        };
        Fields::read(&signature, &strings).arguments()
    }

    #[test]
    fn tensors_scalars_lists_and_missing_arguments_are_told_apart() {
        let a = arguments(
            "[[8,64],[],[[2,3],[4]],[]]",
            r#"["float","Scalar","TensorList",""]"#,
            "[[64,1],[],[],[]]",
            r#"["","[1, -1]","",""]"#,
        );
        let t = a.tensor(0).expect("tensor");
        assert_eq!((t.numel(), t.bytes(), t.strides.as_slice()), (512, 2048, &[64, 1][..]));
        assert_eq!(a.ints(1), Some(vec![1, -1]));
        assert_eq!(a.list[2], Argument::TensorList(vec![vec![2, 3], vec![4]]));
        assert_eq!(a.list[3], Argument::Absent);
    }

    #[test]
    fn expanded_dimensions_take_no_storage() {
        let strides = vec![0, 16, 4, 1];
        let mask = TensorArg { dims: vec![8, 2, 4, 4], strides, dtype: DType::F32 };
        assert_eq!((mask.bytes(), mask.storage_bytes()), (1024, 128));
    }

    #[test]
    fn a_shape_of_more_elements_than_64_bits_count_saturates() {
        for dims in ["[[4294967296,4294967296,4294967296]]", "[[99999999999999999999999999]]"] {
            let a = arguments(dims, r#"["double"]"#, "[[1,1,1]]", "");
            let t = a.tensor(0).expect("tensor");
            assert_eq!((t.numel(), t.bytes()), (u64::MAX, u64::MAX), "{dims}");
        }
        let strides = vec![i64::MIN, 1];
        let far = TensorArg { dims: vec![1 << 32, 1 << 32], strides, dtype: DType::F64 };
        assert_eq!(far.storage_bytes(), u64::MAX);
    }

    #[test]
    fn absent_and_broken_fields_give_no_arguments_and_end() {
        assert_eq!(arguments("", "", "", ""), Arguments::default());
        let deep = "[".repeat(100);
        assert!(arguments(&deep, "[[[", "]", "\"").list.len() <= 1);
    }
}
