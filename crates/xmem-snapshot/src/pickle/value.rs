//! One value, in eight bytes: everything larger is a row of a table.

macro_rules! row {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// A text; equal texts have the same id.
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
row!(
    /// The keys of a dict, in their order.
    ShapeId
);

impl ShapeId {
    /// No keys at all.
    pub(super) const EMPTY: Self = Self(0);
}

/// A value of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    None,
    Bool(bool),
    /// An integer of 56 bits: sizes, times in microseconds, addresses.
    Int(ShortInt),
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

const _: () = assert!(size_of::<Option<Value>>() == 8);

impl Value {
    /// The name of such a value in a message.
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

/// An integer of seven bytes, which leaves one for the kind of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShortInt([u8; 7]);

impl ShortInt {
    /// `number`, if it is short enough.
    pub(crate) fn new(number: i64) -> Option<Self> {
        let [low @ .., _] = number.to_le_bytes();
        let short = Self(low);
        (short.get() == number).then_some(short)
    }

    pub(crate) fn get(self) -> i64 {
        let mut wide = [0; 8];
        wide[1..].copy_from_slice(&self.0);
        i64::from_le_bytes(wide) >> 8
    }
}

impl From<i32> for ShortInt {
    fn from(number: i32) -> Self {
        let [low @ .., _] = i64::from(number).to_le_bytes();
        Self(low)
    }
}

#[cfg(test)]
mod tests {
    use super::ShortInt;

    #[test]
    fn integers_of_seven_bytes_are_kept() {
        const LIMIT: i64 = 1 << 55;
        for number in [0, 1, -1, i64::from(i32::MIN), 0x7fff_ffff_ffff, LIMIT - 1, -LIMIT] {
            assert_eq!(ShortInt::new(number).map(ShortInt::get), Some(number));
        }
        for number in [LIMIT, -LIMIT - 1, i64::MAX, i64::MIN] {
            assert_eq!(ShortInt::new(number), None);
        }
        assert_eq!(ShortInt::from(i32::MIN).get(), i64::from(i32::MIN));
    }
}
