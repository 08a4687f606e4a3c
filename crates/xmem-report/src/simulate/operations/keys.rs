//! One operation as it is written.

use super::nearest;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use std::fmt;
use xmem::Bytes;
use xmem::simulator::{Operation, PoolOptions, PoolService, PrivatePoolId, Splitting};
use xmem::types::{BlockId, StreamId};

/// The keys of an operation, whichever it is.
#[derive(Default)]
pub(super) struct OperationKeys {
    name: Option<Name>,
    id: Option<u32>,
    size: Option<u64>,
    stream: Option<u32>,
    pool: Option<u32>,
    value: Option<serde_json::Number>,
    no_split: bool,
    use_on_oom: bool,
}

/// The kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Alloc,
    Free,
    RecordStream,
    Synchronize,
    EmptyCache,
    Fraction,
    ResetPeak,
    Capacity,
    PoolBegin,
    PoolEnd,
    PoolRelease,
    CaptureBegin,
    CaptureEnd,
}

/// Every operation by name, with an example.
const NAMES: [(Name, &str, &str); 13] = [
    (Name::Alloc, "alloc", r#"{"op":"alloc","id":1,"size":1048576,"stream":0}"#),
    (Name::Free, "free", r#"{"op":"free","id":1}"#),
    (Name::RecordStream, "record_stream", r#"{"op":"record_stream","id":1,"stream":2}"#),
    (Name::Synchronize, "synchronize", r#"{"op":"synchronize"}"#),
    (Name::EmptyCache, "empty_cache", r#"{"op":"empty_cache"}"#),
    (Name::Fraction, "fraction", r#"{"op":"fraction","value":0.5}"#),
    (Name::ResetPeak, "reset_peak", r#"{"op":"reset_peak"}"#),
    (Name::Capacity, "capacity", r#"{"op":"capacity","value":1073741824}"#),
    (Name::PoolBegin, "pool_begin", r#"{"op":"pool_begin","pool":1}"#),
    (Name::PoolEnd, "pool_end", r#"{"op":"pool_end","pool":1}"#),
    (Name::PoolRelease, "pool_release", r#"{"op":"pool_release","pool":1}"#),
    (Name::CaptureBegin, "capture_begin", r#"{"op":"capture_begin","pool":1,"stream":1}"#),
    (Name::CaptureEnd, "capture_end", r#"{"op":"capture_end","pool":1}"#),
];

/// Every key. Recorders write `kind`, which has no effect.
const KEYS: [&str; 9] =
    ["op", "id", "size", "stream", "pool", "value", "no_split", "use_on_oom", "kind"];

impl OperationKeys {
    /// The operation that they describe.
    pub(super) fn operation(&self) -> Result<Operation, String> {
        let name =
            self.name.ok_or_else(|| format!("`op` is missing: expected one of {}", names()))?;
        let missing = |key: &str| {
            let (_, text, form) = NAMES[name as usize];
            format!("`{key}` is missing from {text}: expected {form}")
        };
        let block = || self.id.map(BlockId).ok_or_else(|| missing("id"));
        let pool = || self.pool.map(PrivatePoolId).ok_or_else(|| missing("pool"));
        let stream = || self.stream.map(StreamId).ok_or_else(|| missing("stream"));
        let value = || self.value.as_ref().ok_or_else(|| missing("value"));
        Ok(match name {
            Name::Alloc => Operation::Alloc {
                block: block()?,
                size: self.size.map(Bytes).ok_or_else(|| missing("size"))?,
                stream: self.stream.map(StreamId).unwrap_or_default(),
            },
            Name::Free => Operation::Free(block()?),
            Name::RecordStream => Operation::RecordStream { block: block()?, stream: stream()? },
            Name::Synchronize => Operation::Synchronize,
            Name::EmptyCache => Operation::EmptyCache,
            Name::Fraction => {
                let value = value()?;
                let fraction = value.as_f64().filter(|part| (0.0..=1.0).contains(part));
                let wrong =
                    || format!("`value` of fraction must be a number from 0 to 1, not {value}");
                Operation::MemoryFraction(fraction.ok_or_else(wrong)?)
            }
            Name::ResetPeak => Operation::ResetPeaks,
            Name::Capacity => {
                let value = value()?;
                let wrong =
                    || format!("`value` of capacity must be a number of bytes, not {value}");
                Operation::Capacity(value.as_u64().map(Bytes).ok_or_else(wrong)?)
            }
            Name::PoolBegin => Operation::EnterPool { pool: pool()?, options: self.options() },
            Name::CaptureBegin => Operation::BeginCapture { pool: pool()?, stream: stream()? },
            Name::PoolEnd | Name::CaptureEnd => Operation::LeavePool(pool()?),
            Name::PoolRelease => Operation::ReleasePool(pool()?),
        })
    }

    fn options(&self) -> PoolOptions {
        PoolOptions {
            splitting: if self.no_split { Splitting::Never } else { Splitting::Usual },
            service: if self.use_on_oom { PoolService::LastResort } else { PoolService::Scopes },
        }
    }
}

fn names() -> String {
    NAMES.map(|(_, text, _)| text).join(", ")
}

impl<'de> Deserialize<'de> for OperationKeys {
    fn deserialize<D: Deserializer<'de>>(keys: D) -> Result<Self, D::Error> {
        keys.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = OperationKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"an operation like {"op":"free","id":1}"#)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OperationKeys, A::Error> {
        let mut keys = OperationKeys::default();
        while let Some(key) = map.next_key_seed(OneOf("a key", KEYS))? {
            match key {
                "op" => {
                    let texts = NAMES.map(|(_, text, _)| text);
                    let op = map.next_value_seed(OneOf("an operation", texts))?;
                    keys.name =
                        NAMES.iter().find(|(_, text, _)| *text == op).map(|(name, ..)| *name);
                }
                "id" => {
                    keys.id = map.next_value_seed(Whole("id"))?.map(narrow("id")).transpose()?;
                }
                "size" => keys.size = map.next_value_seed(Whole("size"))?,
                "stream" => {
                    let stream = map.next_value_seed(Whole("stream"))?;
                    keys.stream = stream.map(narrow("stream")).transpose()?;
                }
                "pool" => {
                    keys.pool =
                        map.next_value_seed(Whole("pool"))?.map(narrow("pool")).transpose()?;
                }
                "value" => keys.value = map.next_value()?,
                "no_split" => keys.no_split = map.next_value()?,
                "use_on_oom" => keys.use_on_oom = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(keys)
    }
}

/// Numbers of blocks, streams and pools are kept in 32 bits.
fn narrow<E: Error>(key: &'static str) -> impl Fn(u64) -> Result<u32, E> {
    move |number| {
        u32::try_from(number)
            .map_err(|_| E::custom(format!("`{key}` must be below 4294967296, not {number}")))
    }
}

/// One of a list of words.
struct OneOf<const N: usize>(&'static str, [&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for OneOf<N> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, word: D) -> Result<&'static str, D::Error> {
        word.deserialize_str(self)
    }
}

impl<const N: usize> Visitor<'_> for OneOf<N> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: one of {}", self.0, self.1.join(", "))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<&'static str, E> {
        let Self(what, known) = self;
        known.into_iter().find(|known| *known == word).ok_or_else(|| {
            let meant = nearest(word, known).map(|known| format!("did you mean `{known}`?"));
            let meant = meant.unwrap_or_else(|| format!("expected one of {}", known.join(", ")));
            E::custom(format!("`{word}` is not {what}: {meant}"))
        })
    }
}

/// A whole number under this key, or null.
struct Whole(&'static str);

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, number: D) -> Result<Option<u64>, D::Error> {
        number.deserialize_any(self)
    }
}

impl Visitor<'_> for Whole {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number for `{}`", self.0)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        Ok(Some(number))
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }
}
