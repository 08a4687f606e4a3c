//! Typed ids: an index into one table cannot be used with another.

/// An address as the recording process saw it (a pointer value).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u64);

impl Addr {
    /// Out of hexadecimal text as Python and C print pointers (`0x7f12ab00`).
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Self)
    }
}

/// Defines a typed id: the row of one table, with `new` and `index`.
#[macro_export]
macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id of row `index`.
            ///
            /// # Panics
            /// If the table has more than `u32::MAX` rows.
            #[must_use]
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("table has more than u32::MAX rows"))
            }

            /// The row in its table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

typed_id!(
    /// A memory block: one allocation from its request to its free.
    BlockId
);
typed_id!(
    /// A row of the trace's operator table (operators and annotations).
    OpId
);
typed_id!(
    /// A row of the trace's Python call table.
    PythonId
);
typed_id!(
    /// A thread of the trace.
    ThreadIdx
);
typed_id!(
    /// A training iteration, counted from 0 within the trace.
    IterationId
);
typed_id!(
    /// A CUDA stream; 0 is the default stream.
    StreamId
);
typed_id!(
    /// A private pool (`MempoolId_t`): of a `torch.cuda.MemPool` or a CUDA graph.
    PrivatePoolId
);
