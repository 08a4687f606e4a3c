//! The values of one pickle: tables, and ids into them.

macro_rules! row {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(u32);

        impl $name {
            /// The id of row `index`, if ids reach so far.
            pub(crate) fn new(index: usize) -> Option<Self> {
                u32::try_from(index).ok().map(Self)
            }

            pub(crate) const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

row!(
    /// A text object; equal texts may be different objects.
    TextId
);
row!(
    /// A list, tuple or dict.
    ContainerId
);
row!(
    /// A number of eight bytes.
    NumberId
);

/// One value, in eight bytes: everything larger is a row of the [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    /// An integer of 32 bits.
    Int(i32),
    /// An integer of 64 bits.
    Wide(NumberId),
    /// An integer that 64 bits hold only without a sign.
    Unsigned(NumberId),
    /// An integer that 64 bits cannot hold.
    Huge,
    Float(NumberId),
    Text(TextId),
    /// Binary data, never part of a snapshot, hence not kept.
    Binary,
    List(ContainerId),
    Tuple(ContainerId),
    Dict(ContainerId),
}

impl Value {
    /// What to call such a value in a message.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::Wide(_) => "an integer",
            Self::Unsigned(_) => "an integer of 2^63 or more",
            Self::Huge => "an integer beyond 64 bits",
            Self::Float(_) => "a float",
            Self::Text(_) => "text",
            Self::Binary => "binary data",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a dict",
        }
    }
}

/// A list, tuple or dict.
#[derive(Debug)]
pub(crate) struct Container {
    /// Its elements; of a dict, key and value in turn.
    pub(crate) items: Vec<Value>,
    /// Offset of the instruction that made it.
    pub(crate) at: usize,
}

/// Everything that a pickle built; `'a` is the file, in which the texts stay.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    /// The value that the pickle is of.
    pub(crate) root: Value,
    pub(crate) containers: Vec<Container>,
    /// Texts as the file has them; UTF-8 unless the writer had unpaired surrogates.
    pub(crate) texts: Vec<&'a [u8]>,
    /// Wide integers, and floats as their bits.
    pub(crate) numbers: Vec<u64>,
    /// Bytes after the end of the pickle.
    pub(crate) trailing: usize,
}

impl<'a> Tree<'a> {
    pub(crate) fn container(&self, id: ContainerId) -> &Container {
        &self.containers[id.index()]
    }

    pub(crate) fn text(&self, id: TextId) -> &'a [u8] {
        self.texts[id.index()]
    }

    pub(crate) fn integer(&self, value: Value) -> Option<i64> {
        match value {
            Value::Int(n) => Some(i64::from(n)),
            Value::Wide(id) => Some(self.numbers[id.index()].cast_signed()),
            _ => None,
        }
    }

    /// The value as an integer without sign; a negative one as it is.
    pub(crate) fn natural(&self, value: Value) -> Option<Result<u64, i64>> {
        match value {
            Value::Unsigned(id) => Some(Ok(self.numbers[id.index()])),
            other => self.integer(other).map(|n| u64::try_from(n).map_err(|_| n)),
        }
    }

    pub(crate) fn float(&self, value: Value) -> Option<f64> {
        match value {
            Value::Float(id) => Some(f64::from_bits(self.numbers[id.index()])),
            _ => None,
        }
    }
}
