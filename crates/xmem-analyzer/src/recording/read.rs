//! Reads the recorder's notes from JSON. Fields and items of an unexpected form are ignored one by one and
//! reported; unknown keys are skipped.

use super::allocator::HistoryDto;
use super::sharding::ShardingDto;
use super::strategy::StrategyDto;
use super::unseen;
use super::{
    AllocatorHistory, EndReason, Ended, GraphSource, Implementation, IterationCount, Model,
    NamedTensor, Optimizer, Rank, Recording, Sharding, StateTensor, Storage, TensorKind,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use xmem_types::{Addr, Bytes, Diagnostics, Severity, printable};

/// The top-level key of a trace under which `xmem profile` notes what the events do not show.
pub const KEY: &str = "xmem_recording";

const SCHEMA: &str = "xmem.recording.1";

/// The recording in the raw text of the key's value; none if its schema is not supported.
pub(crate) fn read(raw: &str, notes: &mut Diagnostics) -> Option<Recording> {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(raw) else {
        notes.report("recording-unreadable", Severity::Warning, None, || {
            format!("`{KEY}` is not a JSON object: the recorder's notes are ignored")
        });
        return None;
    };
    let mut reader = Reader { fields, notes };
    let schema: Option<String> = reader.field("schema");
    if schema.as_deref() != Some(SCHEMA) {
        notes.report("recording-unknown", Severity::Warning, None, || {
            format!(
                "`{KEY}` has the unknown schema `{}` (known: `{SCHEMA}`): the recorder's notes are \
                 ignored",
                schema.as_deref().unwrap_or("")
            )
        });
        return None;
    }
    Some(reader.recording())
}

/// The values of an object, not yet read.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Pairs::deserialize(deserializer)?.0))
    }
}

/// An object's keys and values in its order.
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    pairs.push((printable(&key).into_owned(), value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

struct Reader<'a, 'n> {
    fields: Fields<'a>,
    notes: &'n mut Diagnostics,
}

impl<'a> Reader<'a, '_> {
    fn recording(mut self) -> Recording {
        let batch: Option<BatchDto> = self.field("batch");
        Recording {
            recorder: self.field("recorder"),
            torch: self.field("torch"),
            python: self.field("python"),
            stacks: self.field("stacks"),
            reported_device: self.field("reported_device").or_else(|| self.field("told_device")),
            environment: self.pairs("environment"),
            backends: self.pairs("backends"),
            cudnn_benchmark_limit: self.field("cudnn_benchmark_limit"),
            compiled_eagerly: self.list("compiled_eagerly", |name: String| name),
            cudnn: self.field("cudnn"),
            cudnn_answers: Vec::new(),
            tried: None,
            memory_fraction: self.field("memory_fraction"),
            ended: self.field("ended").map(ended),
            iterations: self.field("iterations").map(
                |IterationsDto { by, count, requested, resident }| IterationCount {
                    by,
                    count,
                    requested,
                    resident: resident.into_iter().flatten().map(Bytes).collect(),
                },
            ),
            uses_gpu: self.field("uses_gpu"),
            models: self.list("models", model),
            tensors: self.list("tensors", tensor).into_iter().flatten().collect(),
            optimizers: self.list("optimizers", optimizer),
            autocast: self
                .list("autocast", |AutocastDto { dtype }| dtype)
                .into_iter()
                .flatten()
                .collect(),
            cuda_autocast_lists: self
                .field("autocast_lists")
                .is_some_and(|lists: String| lists == "cuda"),
            float16_as_bfloat16: self.field::<String>("float16_as").as_deref() == Some("bfloat16"),
            grad_scaler: self.field("grad_scaler"),
            batch_size: batch.and_then(|batch| batch.size),
            redirected: self.list("redirected", |RedirectedDto { what, times }| (what, times)),
            allocator_history: self.allocator_history(),
            rest: None,
            unseen: self.list("unseen", unseen::event),
            batches: self.field("batches").unwrap_or_default(),
            virtual_gpu: self.field("virtual_gpu"),
            rank: self.field("distributed").and_then(Rank::read),
            sharding: self.sharding(),
            strategies: self.list("strategies", StrategyDto::read),
            notes: self.list("notes", |note: String| note),
            graph: self.field("graph").map(graph),
        }
    }

    fn sharding(&mut self) -> Option<Sharding> {
        const NAME: &str = "sharding";
        let sharding = self.field::<ShardingDto>(NAME)?.read();
        if sharding.is_none() {
            self.left_out(NAME);
        }
        sharding
    }

    fn allocator_history(&mut self) -> Option<AllocatorHistory> {
        const NAME: &str = "allocator_history";
        let history = self.field::<HistoryDto>(NAME)?.history();
        if history.is_none() {
            self.left_out(NAME);
        }
        history
    }

    /// The value of a key, where it is there and not null.
    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.fields.0.iter().find(|(known, _)| known == name)?.1;
        (found.get() != "null").then_some(found)
    }

    fn field<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let raw = self.raw(name)?;
        self.parsed(raw, name)
    }

    /// The pairs of an object whose values have the right type.
    fn pairs<T: DeserializeOwned>(&mut self, name: &'static str) -> Vec<(String, T)> {
        let Some(raw) = self.raw(name) else { return Vec::new() };
        match serde_json::from_str::<Fields<'a>>(raw.get()) {
            Ok(fields) => fields
                .0
                .into_iter()
                .filter_map(|(key, raw)| Some((key, self.parsed(raw, name)?)))
                .collect(),
            Err(_) => {
                self.left_out(name);
                Vec::new()
            }
        }
    }

    /// The items of a list that have the right shape.
    fn list<D: DeserializeOwned, T>(&mut self, name: &'static str, make: fn(D) -> T) -> Vec<T> {
        let Some(raw) = self.raw(name) else { return Vec::new() };
        match serde_json::from_str::<Vec<&'a RawValue>>(raw.get()) {
            Ok(items) => {
                items.into_iter().filter_map(|raw| self.parsed(raw, name)).map(make).collect()
            }
            Err(_) => {
                self.left_out(name);
                Vec::new()
            }
        }
    }

    fn parsed<T: DeserializeOwned>(&mut self, raw: &RawValue, name: &'static str) -> Option<T> {
        let raw = raw.get();
        // Text may be hostile only where it has an escape or a character beyond ASCII.
        let parsed = if raw.bytes().all(|byte| byte.is_ascii() && byte != b'\\') {
            serde_json::from_str(raw).ok()
        } else {
            let value = serde_json::from_str(raw).ok();
            value.and_then(|value| serde_json::from_value(with_printable_text(value)).ok())
        };
        if parsed.is_none() {
            self.left_out(name);
        }
        parsed
    }

    fn left_out(&mut self, name: &'static str) {
        self.notes.report("recording-field", Severity::Warning, None, || {
            format!("`{name}` in `{KEY}` has an unexpected form: that part is ignored")
        });
    }
}

/// A value whose texts are all printable.
fn with_printable_text(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(with_printable_text).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields
                .map(|(key, value)| (printable(&key).into_owned(), with_printable_text(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

#[derive(Deserialize)]
struct EndedDto {
    reason: String,
    detail: Option<Value>,
    needed: Option<u64>,
}

fn ended(EndedDto { reason, detail, needed }: EndedDto) -> Ended {
    Ended {
        reason: match reason.as_str() {
            "steps" | "forwards" | "backwards" => EndReason::Complete,
            "end" => EndReason::ScriptEnd,
            "exit" => EndReason::Exit,
            "exception" => EndReason::Exception,
            "signal" => EndReason::Signal,
            "timeout" => EndReason::Timeout,
            "memory" => EndReason::Memory,
            _ => EndReason::Other,
        },
        // The code of `sys.exit` is a number or a text.
        detail: detail.filter(|d| !d.is_null()).map(|detail| match detail {
            Value::String(text) => text,
            other => other.to_string(),
        }),
        needed: needed.map(Bytes),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GraphDto {
    unknown_operators: Vec<String>,
    different_sizes: Vec<String>,
    autograd_functions: Vec<String>,
    assumptions: Vec<String>,
    bounded_sizes: Vec<String>,
}

fn graph(dto: GraphDto) -> GraphSource {
    GraphSource {
        unknown_operators: dto.unknown_operators,
        different_sizes: dto.different_sizes,
        autograd_functions: dto.autograd_functions,
        assumptions: dto.assumptions,
        bounded_sizes: dto.bounded_sizes,
    }
}

#[derive(Deserialize)]
struct IterationsDto {
    by: String,
    count: u64,
    requested: Option<u64>,
    #[serde(default)]
    resident: Vec<Option<u64>>,
}

#[derive(Deserialize)]
struct ModelDto {
    class: String,
    training: Option<bool>,
    modules: Option<Pairs<IgnoredAny>>,
}

fn model(ModelDto { class, training, modules }: ModelDto) -> Model {
    Model { class, training, modules: modules.map_or(0, |m| m.0.len()) }
}

#[derive(Deserialize)]
struct TensorDto {
    name: String,
    model: Option<usize>,
    kind: KindDto,
    requires_grad: Option<bool>,
    /// None for a tensor that has no plain memory (sparse ones, fake ones).
    storage: Option<StorageDto>,
    gradient: Option<StorageDto>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindDto {
    Parameter,
    Buffer,
}

fn tensor(dto: TensorDto) -> Option<NamedTensor> {
    let TensorDto { name, model, kind, requires_grad, storage, gradient } = dto;
    let kind = match kind {
        KindDto::Parameter => TensorKind::Parameter,
        KindDto::Buffer => TensorKind::Buffer,
    };
    let gradient = gradient.map(Storage::from);
    let storage = storage?.into();
    Some(NamedTensor { name, model, kind, requires_grad, storage, gradient })
}

#[derive(Deserialize)]
struct StorageDto {
    #[serde(deserialize_with = "address")]
    address: Addr,
    bytes: u64,
}

impl From<StorageDto> for Storage {
    fn from(StorageDto { address, bytes }: StorageDto) -> Self {
        Self { address, bytes: Bytes(bytes) }
    }
}

/// Hexadecimal text (`0x7f12ab00`).
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Addr, D::Error> {
    let text = String::deserialize(deserializer)?;
    Addr::from_hex(&text).ok_or_else(|| D::Error::custom("no address"))
}

#[derive(Deserialize)]
struct OptimizerDto {
    class: String,
    #[serde(default)]
    arguments: ArgumentsDto,
    implementation: Option<ImplementationDto>,
    #[serde(default)]
    groups: Vec<GroupDto>,
    steps: Option<u64>,
    #[serde(default)]
    state_storages: Vec<StateDto>,
}

/// Of the constructor's arguments, those that decide where memory is taken. Users' own classes may
/// give them other types.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ArgumentsDto {
    capturable: Value,
    differentiable: Value,
}

#[derive(Deserialize)]
enum ImplementationDto {
    #[serde(rename = "foreach")]
    Foreach,
    #[serde(rename = "fused")]
    Fused,
    #[serde(rename = "for-loop")]
    ForLoop,
    #[serde(other)]
    Default,
}

#[derive(Deserialize)]
struct GroupDto {
    tensors: Option<u64>,
}

#[derive(Deserialize)]
struct StateDto {
    name: String,
    #[serde(flatten)]
    storage: StorageDto,
}

fn optimizer(dto: OptimizerDto) -> Optimizer {
    let OptimizerDto { class, arguments, implementation, groups, steps, state_storages } = dto;
    Optimizer {
        class,
        implementation: match implementation {
            Some(ImplementationDto::Foreach) => Implementation::Foreach,
            Some(ImplementationDto::Fused) => Implementation::Fused,
            Some(ImplementationDto::ForLoop) => Implementation::ForLoop,
            Some(ImplementationDto::Default) | None => Implementation::Default,
        },
        capturable: arguments.capturable == Value::Bool(true),
        differentiable: arguments.differentiable == Value::Bool(true),
        tensors: groups.iter().filter_map(|g| g.tensors).fold(0, u64::saturating_add),
        steps,
        state: state_storages
            .into_iter()
            .map(|StateDto { name, storage }| StateTensor { name, storage: storage.into() })
            .collect(),
    }
}

#[derive(Deserialize)]
struct AutocastDto {
    dtype: Option<String>,
}

#[derive(Deserialize)]
struct BatchDto {
    size: Option<u64>,
}

#[derive(Deserialize)]
struct RedirectedDto {
    what: String,
    times: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(raw: &str) -> (Option<Recording>, Diagnostics) {
        let mut notes = Diagnostics::default();
        (read(raw, &mut notes), notes)
    }

    #[test]
    fn everything_is_optional_and_what_is_unknown_is_passed_over() {
        let (recording, notes) = reading(r#"{"schema":"xmem.recording.1","later":[{"x":1}]}"#);
        assert_eq!((recording, notes.is_empty()), (Some(Recording::default()), true));
    }

    #[test]
    fn autocast_has_the_lists_of_the_cpu_unless_the_recording_says_otherwise() {
        for (field, expected) in [
            (r#","autocast_lists":"cuda""#, true),
            (r#","autocast_lists":"cpu""#, false),
            (r#","autocast_lists":"xpu""#, false),
            ("", false),
        ] {
            let (recording, _) = reading(&format!(r#"{{"schema":"xmem.recording.1"{field}}}"#));
            let recording = recording.expect("the schema is known");
            assert_eq!(recording.cuda_autocast_lists, expected, "{field}");
        }
    }

    #[test]
    fn a_value_of_another_shape_costs_itself_and_a_diagnostic() {
        let (recording, notes) = reading(
            r#"{"schema":"xmem.recording.1","torch":7,"python":"3.11.7","tensors":[
                {"name":"a","kind":"parameter","storage":{"address":"0x40","bytes":8}},
                {"name":"b","kind":"parameter","storage":{"address":64,"bytes":8}},
                {"name":"e","kind":"buffer","storage":null},
                {"name":"c","kind":"cache","storage":{"address":"0x80","bytes":8}},
                {"name":"d","kind":"buffer","storage":{"address":"0xc0","bytes":8},"gradient":null}
            ],"environment":{"A":"1","B":2},"models":{},"memory_fraction":0.5}"#,
        );
        let recording = recording.expect("the rest is good");
        assert_eq!(recording.torch, None);
        assert_eq!(recording.python.as_deref(), Some("3.11.7"));
        let tensors: Vec<_> =
            recording.tensors.iter().map(|t| (t.name.as_str(), t.storage.address.0)).collect();
        assert_eq!(tensors, [("a", 0x40), ("d", 0xc0)]);
        assert_eq!(recording.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(recording.memory_fraction, Some(0.5));
        assert_eq!(notes.get("recording-field").map(|d| d.count), Some(5));
    }

    #[test]
    fn what_is_no_recording_of_this_schema_is_not_used() {
        for (raw, code) in [
            ("7", "recording-unreadable"),
            (r#"{"schema":"#, "recording-unreadable"),
            ("{}", "recording-unknown"),
            (r#"{"schema":"xmem.recording.2"}"#, "recording-unknown"),
        ] {
            let (recording, notes) = reading(raw);
            assert_eq!(recording, None, "{raw}");
            assert!(notes.get(code).is_some(), "{raw}");
        }
    }

    #[test]
    fn optimizers_have_the_options_that_the_script_gave() {
        let (recording, notes) = reading(
            r#"{"schema":"xmem.recording.1","optimizers":[
                {"class":"torch.optim.adamw.AdamW","implementation":"fused",
                 "arguments":{"lr":0.001,"capturable":true},"groups":[{"tensors":3},{"tensors":4}],
                 "steps":3,"state_storages":[{"name":"exp_avg","address":"0x40","bytes":8}]},
                {"class":"mine.Sgd","implementation":"later","arguments":{"capturable":"no"}}],
                "ended":{"reason":"exit","detail":3}}"#,
        );
        assert!(notes.is_empty(), "{notes:?}");
        let recording = recording.expect("a recording");
        let [adam, mine] = recording.optimizers.as_slice() else { panic!("two optimizers") };
        assert_eq!(
            (adam.name(), adam.implementation, adam.capturable, adam.tensors),
            ("AdamW", Implementation::Fused, true, 7)
        );
        assert_eq!(adam.state[0].storage, Storage { address: Addr(0x40), bytes: Bytes(8) });
        assert_eq!((mine.implementation, mine.capturable), (Implementation::Default, false));
        let ended = recording.ended.expect("an end");
        assert_eq!((ended.reason, ended.detail.as_deref()), (EndReason::Exit, Some("3")));
    }
}
