//! Lists of operations, the only document that is read: an object with `ops`, or the bare list.
//! Recordings of PyTorch's allocator have the same form, together with its results.

mod keys;

use keys::OperationKeys;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::collections::BTreeMap;
use std::fmt;
use xmem::Bytes;
use xmem::predict::OperationList;
use xmem::simulator::{AddressOrder, Completion, Operation};
use xmem::types::Severity;

/// Text that is not a list of operations.
#[derive(Debug)]
pub struct OperationsError {
    line: usize,
    column: usize,
    message: String,
}

impl From<serde_json::Error> for OperationsError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let message = text.strip_suffix(&place).unwrap_or(&text);
        let message = match message.split_once("EOF while parsing") {
            Some((before, _)) => format!("{before}unexpected end of the text"),
            None => message.to_owned(),
        };
        Self { line, column, message }
    }
}

impl fmt::Display for OperationsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for OperationsError {}

/// Reads a list of operations.
///
/// # Errors
/// If the text is not JSON or has unexpected content. The error gives the position, the operation
/// (counted from 0), and the expected content.
pub fn read_operations(text: &[u8]) -> Result<OperationList, OperationsError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let list = deserializer.deserialize_any(ListVisitor)?;
    deserializer.end()?;
    Ok(list)
}

/// Keys of recordings that are ignored.
const IGNORED_KEYS: [&str; 10] = [
    "comment",
    "final_stats",
    "gpu",
    "name",
    "results",
    "schema",
    "settings",
    "source",
    "trace",
    "varies",
];

/// Keys that are read.
const KEYS: [&str; 8] =
    ["address_order", "capacity", "conf", "env", "events", "ops", "torch", "total"];

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = OperationList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations, or an object with `ops`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OperationList, A::Error> {
        Ok(OperationList { operations: Operations.visit_seq(list)?, ..OperationList::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OperationList, A::Error> {
        let mut list = OperationList::default();
        let mut conf = None;
        let mut operations = None;
        let mut unknown = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ops" => operations = Some(map.next_value_seed(Operations)?),
                "conf" => conf = map.next_value::<Option<String>>()?,
                "capacity" => list.capacity = map.next_value::<Option<u64>>()?.map(Bytes),
                "total" => list.total = map.next_value::<Option<u64>>()?.map(Bytes),
                "torch" => list.environment.torch = map.next_value()?,
                "env" => {
                    let variables = map.next_value::<Option<BTreeMap<String, String>>>()?;
                    list.environment.variables.extend(variables.unwrap_or_default());
                }
                "address_order" => {
                    list.address_order = map.next_value::<Option<Order>>()?.map(AddressOrder::from);
                }
                "events" => {
                    let events = map.next_value::<Option<Events>>()?;
                    list.completion = events.map(Completion::from).unwrap_or_default();
                }
                other => {
                    map.next_value::<IgnoredAny>()?;
                    if !IGNORED_KEYS.contains(&other) {
                        unknown.push(key);
                    }
                }
            }
        }
        if let Some(conf) = conf {
            // Recordings are made with this variable, and without the others.
            list.environment.variables.push(("PYTORCH_CUDA_ALLOC_CONF".to_owned(), conf));
        }
        list.operations = operations.ok_or_else(|| A::Error::custom(no_operations(&unknown)))?;
        report_unknown(&unknown, &mut list);
        Ok(list)
    }
}

/// The message for a missing `ops`, with the keys found instead.
fn no_operations(unknown: &[String]) -> String {
    let about = match unknown.iter().find_map(|key| Some((key, nearest(key, ["ops"])?))) {
        _ if unknown.iter().any(|key| key == "traceEvents") => {
            "; it has `traceEvents`: use `xmem replay` for a profiler trace".to_owned()
        }
        Some((key, _)) => format!("; did you mean `ops` instead of `{key}`?"),
        None => String::new(),
    };
    format!("the key `ops` (a list of operations) is missing{about}")
}

fn report_unknown(unknown: &[String], list: &mut OperationList) {
    if unknown.is_empty() {
        return;
    }
    let names = unknown.iter().map(|key| match nearest(key, KEYS) {
        Some(meant) => format!("`{key}` (did you mean `{meant}`?)"),
        None => format!("`{key}`"),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    list.notes.report("unknown-keys", Severity::Warning, None, || {
        format!("ignored unknown keys: {names}")
    });
}

/// The most similar known name.
fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Driver,
    #[serde(alias = "asc")]
    Ascending,
    #[serde(alias = "desc")]
    Descending,
}

impl From<Order> for AddressOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Driver => Self::Driver,
            Order::Ascending => Self::Ascending,
            Order::Descending => Self::Descending,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Events {
    Immediate,
    Held,
}

impl From<Events> for Completion {
    fn from(events: Events) -> Self {
        match events {
            Events::Immediate => Self::Immediate,
            Events::Held => Self::AtSynchronization,
        }
    }
}

/// The list itself, read one by one, so that errors can name the operation.
struct Operations;

impl<'de> DeserializeSeed<'de> for Operations {
    type Value = Vec<Operation>;

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<Vec<Operation>, D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Operations {
    type Value = Vec<Operation>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Operation>, A::Error> {
        let mut operations = Vec::new();
        loop {
            let at = operations.len();
            let named =
                |error: &dyn fmt::Display| A::Error::custom(format!("operation {at}: {error}"));
            match list.next_element::<OperationKeys>() {
                Ok(Some(keys)) => operations.push(keys.operation().map_err(|e| named(&e))?),
                Ok(None) => return Ok(operations),
                Err(error) => return Err(named(&error)),
            }
        }
    }
}
