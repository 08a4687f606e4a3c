//! `xmem.check/1`.

use serde::{Deserialize, Serialize};
use xmem::predict::{Confidence, Place};
use xmem::{Bytes, Device, Need};
use xmem_gate::{
    Action, BaselineEntry, Change, Decision, Growth, KnownNeed, KnownOutcome, Outcome, Policy,
    TightBy,
};

/// The schema of [`CheckDocument`].
const CHECK: &str = "xmem.check/1";

/// The source of the sizes of convolutions' workspaces, where a law says what the job needs and nothing was replayed.
const BY_LAW: &str = "by a law";

/// What `xmem check` decided about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckDocument {
    schema: String,
    /// The trace, as the user named it.
    pub trace: String,
    /// The name of the decision.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem_gate::Decision>"))]
    pub decision: String,
    /// What the policy makes of the decision.
    #[cfg_attr(test, schemars(extend("enum" = ["admit", "warn", "reject"])))]
    pub action: String,
    /// Why the job is tight: it needs part of the margin; the upper end of the range does not fit; only the lower end
    /// fits; the trace is doubtful; it fits on some of the devices on which it may start.
    #[cfg_attr(test, schemars(with = "Option<crate::schemas::NameOf<xmem_gate::TightBy>>"))]
    pub tight_by: Option<String>,
    /// The reasons for which there is no verdict, as codes.
    pub withheld: Vec<String>,
    /// The number of diagnostics that are warnings or serious.
    pub warnings: usize,
    /// The confidence of the estimate.
    #[cfg_attr(test, schemars(extend("enum" = ["certain", "likely", "may_fail", "may_fit", "doubtful"])))]
    pub confidence: String,
    /// The device that the decision is about.
    pub device: CheckedDevice,
    /// The number of GPUs that the job asks for.
    pub gpus: u32,
    /// Device memory that the job needs, context included: what it takes if it leaves the margin free, else the
    /// smallest device memory in which it runs. Null without a verdict.
    pub need_bytes: Option<u64>,
    /// Device memory that the job takes where there is room: the allocator caches more there. Null without a verdict.
    #[serde(default)]
    pub ample_bytes: Option<u64>,
    /// Memory of the device that is to stay free.
    pub margin_bytes: u64,
    /// Peak allocated.
    pub allocated_bytes: u64,
    /// Peak reserved.
    pub reserved_bytes: u64,
    /// The range of the peak on the device, context included.
    pub range_bytes: LowHigh,
    /// The source of the sizes of convolutions' workspaces.
    pub convolutions: String,
    /// The place at which memory runs out, or peaks.
    pub at: Option<CheckPlace>,
    /// True if memory runs out at `at`.
    pub runs_out: bool,
    /// Other devices on which the job may start.
    pub elsewhere: Vec<Elsewhere>,
    /// The smallest device of the site that holds the job, if it has less memory.
    pub smaller: Option<CheckedDevice>,
    /// Changes that were replayed and help.
    pub advice: Vec<Replayed>,
    /// Bytes alive at the peak of allocated memory, by role.
    pub by_role: Vec<NamedBytes>,
    /// The same by module, down to three levels; the empty name is for what no module made.
    pub by_module: Vec<NamedBytes>,
    /// What grew since the baseline; null without one.
    pub baseline: Option<GrowthDocument>,
}

/// The lowest and the highest of what is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LowHigh {
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
}

/// A figure of the baseline, and of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BeforeNow {
    /// In the baseline.
    pub before: u64,
    /// Now.
    pub now: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedDevice {
    /// The short name.
    pub name: String,
    /// The whole memory.
    pub memory_bytes: u64,
    /// The part of it that the CUDA context takes.
    pub context_bytes: u64,
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckPlace {
    /// The iteration; none before the first.
    pub iteration: Option<u32>,
    /// The phase.
    pub phase: String,
    /// The innermost operator.
    pub op: Option<String>,
    /// The module.
    pub module: Option<String>,
    /// The line of Python (`train.py(12): forward`).
    pub line: Option<String>,
}

/// Whether a job fits on another device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Elsewhere {
    /// The device.
    pub device: CheckedDevice,
    /// True if it certainly fits.
    pub fits: bool,
}

/// The value of a law's number that fits with measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// The one that was asked about.
    AsAsked,
    /// A smaller one.
    Smaller,
}

/// A change that was replayed or recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replayed {
    /// `device`, `alloc_conf`, `optimizer_impl`, `zero_grad`, or several of the last three together; `measures`, which were
    /// recorded, and `value`, a smaller number in the command, which was, too.
    #[cfg_attr(test, schemars(extend("enum" = ["device", "alloc_conf", "optimizer_impl", "zero_grad", "together", "measures", "value"])))]
    pub change: String,
    /// The value: a device, options, `fused`, `pos0`; in words where there are several, and of what was recorded: measures, with
    /// the value of a law's number that was recorded to fit, or a number and its value.
    pub value: String,
    /// The device memory that the job then needs, on each of its GPUs.
    pub need_bytes: u64,
    /// True if it then certainly fits; false of measures with which only a smaller value was recorded to fit.
    pub fits: bool,
}

/// Bytes under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedBytes {
    /// The name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// The comparison with a baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowthDocument {
    /// True if a peak grew by more than the tolerance.
    pub beyond_tolerance: bool,
    /// True if the baseline knows nothing of the trace on this device.
    pub is_new: bool,
    /// Peak allocated.
    pub allocated_bytes: BeforeNow,
    /// Peak reserved.
    pub reserved_bytes: BeforeNow,
    /// The roles that grew.
    pub roles: Vec<Grown>,
    /// The modules that grew.
    pub modules: Vec<Grown>,
}

/// What grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Grown {
    /// The name.
    pub name: String,
    /// Bytes.
    pub bytes: BeforeNow,
}

impl From<&Device> for CheckedDevice {
    fn from(device: &Device) -> Self {
        Self {
            name: device.name.clone(),
            memory_bytes: device.memory.get(),
            context_bytes: device.context.get(),
        }
    }
}

impl From<&Place> for CheckPlace {
    fn from(place: &Place) -> Self {
        Self {
            iteration: place.iteration.map(|id| id.0),
            phase: place.phase.name().to_owned(),
            op: place.op().map(str::to_owned),
            module: place.module.clone(),
            line: place.line.clone(),
        }
    }
}

impl From<&Growth> for GrowthDocument {
    fn from(growth: &Growth) -> Self {
        let pair =
            |(before, now): (Bytes, Bytes)| BeforeNow { before: before.get(), now: now.get() };
        let roles = growth.roles.iter();
        let modules = growth.modules.iter();
        Self {
            beyond_tolerance: growth.beyond_tolerance,
            is_new: false,
            allocated_bytes: pair(growth.allocated),
            reserved_bytes: pair(growth.reserved),
            roles: roles
                .map(|grown| Grown {
                    name: grown.role.clone(),
                    bytes: pair((grown.before, grown.now)),
                })
                .collect(),
            modules: modules
                .map(|grown| Grown {
                    name: grown.module.clone(),
                    bytes: pair((grown.before, grown.now)),
                })
                .collect(),
        }
    }
}

impl CheckDocument {
    /// The document of an outcome about `trace`, the input as the user named it. The action is that of the
    /// policy to reject what does not fit.
    #[must_use]
    pub fn new(trace: &str, gpus: u32, outcome: &Outcome) -> Self {
        let answer = &outcome.answer;
        let decided = outcome.decision != Decision::NoVerdict;
        let entry = BaselineEntry::of(answer);
        // With NCCL's memory, if the job uses it.
        let context = answer.device().context;
        let range = answer.memory.range.reserved;
        let out_of_memory = answer.memory.out_of_memory.as_ref();
        let place = match out_of_memory {
            Some(found) => found.at.as_ref(),
            None => answer.memory.peak.at.as_ref(),
        };
        Self {
            schema: CHECK.to_owned(),
            trace: trace.to_owned(),
            decision: outcome.decision.name().to_owned(),
            action: Policy::Reject.action(outcome.decision, false).name().to_owned(),
            tight_by: outcome.tight_by.map(|by| by.name().to_owned()),
            withheld: answer.withheld.iter().map(|reason| reason.code().to_owned()).collect(),
            warnings: answer.warnings(),
            confidence: answer.memory.range.confidence.name().to_owned(),
            device: (&outcome.device).into(),
            gpus,
            need_bytes: decided.then(|| outcome.need.get()),
            ample_bytes: decided.then(|| answer.need.ample.get()),
            margin_bytes: outcome.margin.get(),
            allocated_bytes: answer.memory.peak.allocated.get(),
            reserved_bytes: answer.memory.peak.reserved.get(),
            range_bytes: LowHigh {
                low: (range.low + context).get(),
                high: (range.high + context).get(),
            },
            convolutions: answer.convolutions.source().to_owned(),
            at: place.map(CheckPlace::from),
            runs_out: out_of_memory.is_some(),
            elsewhere: outcome
                .elsewhere
                .iter()
                .map(|(device, fits)| Elsewhere { device: device.into(), fits: *fits })
                .collect(),
            smaller: outcome.smaller.as_ref().map(CheckedDevice::from),
            advice: outcome.advice.iter().map(replayed).collect(),
            by_role: named(&entry.by_role),
            by_module: named(&entry.by_module),
            baseline: None,
        }
    }

    /// The document about a job whose need is known from a law: `subject` is the law, as the user named it, and the value.
    #[must_use]
    pub fn of_known(
        subject: &str,
        gpus: u32,
        (known, outcome): (&KnownNeed, &KnownOutcome),
        confidence: Confidence,
    ) -> Self {
        let elsewhere = outcome.elsewhere.iter();
        Self {
            schema: CHECK.to_owned(),
            trace: subject.to_owned(),
            decision: outcome.decision.name().to_owned(),
            action: Policy::Reject.action(outcome.decision, false).name().to_owned(),
            tight_by: outcome.tight_by.map(|by| by.name().to_owned()),
            withheld: Vec::new(),
            warnings: 0,
            confidence: confidence.name().to_owned(),
            device: (&outcome.device).into(),
            gpus,
            need_bytes: Some(outcome.need.least.get()),
            ample_bytes: Some(outcome.need.ample.get()),
            margin_bytes: outcome.margin.get(),
            allocated_bytes: known.allocated.get(),
            reserved_bytes: known.reserved.get(),
            range_bytes: LowHigh { low: outcome.range.0.get(), high: outcome.range.1.get() },
            convolutions: BY_LAW.to_owned(),
            at: None,
            runs_out: outcome.decision == Decision::DoesNotFit,
            elsewhere: elsewhere
                .map(|(device, fits)| Elsewhere { device: device.into(), fits: *fits })
                .collect(),
            smaller: outcome.smaller.as_ref().map(CheckedDevice::from),
            advice: Vec::new(),
            by_role: Vec::new(),
            by_module: Vec::new(),
            baseline: None,
        }
    }

    /// Adds measures with which a value of the law's number was recorded to fit: the one that was asked about (`fits`) or a
    /// greater one, or else a smaller one.
    pub fn add_measures(&mut self, value: String, need: Bytes, fits: Fits) {
        let (change, need_bytes) = ("measures".to_owned(), need.get());
        self.advice.push(Replayed { change, value, need_bytes, fits: fits == Fits::AsAsked });
    }

    /// Whether the job was replayed; else a law says what it needs.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.convolutions != BY_LAW
    }

    /// The decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        Decision::named(&self.decision).unwrap_or(Decision::NoVerdict)
    }

    /// Why the job is tight, if it is.
    #[must_use]
    pub fn tight_by(&self) -> Option<TightBy> {
        self.tight_by.as_deref().and_then(TightBy::named)
    }

    /// The memory that the job needs; none without a verdict.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        let least = Bytes(self.need_bytes?);
        Some(Need { least, ample: self.ample_bytes.map_or(least, Bytes) })
    }

    /// True if the job is expected to run out of memory, whether or not it may run: the verdict of `xmem replay`, which
    /// decides the exit code.
    #[must_use]
    pub fn is_expected_to_fail(&self) -> bool {
        self.decision() == Decision::DoesNotFit || self.tight_by() == Some(TightBy::MayFit)
    }

    /// Sets what follows from the decision.
    pub fn set_action(&mut self, action: Action) {
        action.name().clone_into(&mut self.action);
    }

    /// The figures that a baseline keeps.
    #[must_use]
    pub fn baseline_entry(&self) -> BaselineEntry {
        let table = |rows: &[NamedBytes]| {
            rows.iter().map(|row| (row.name.clone(), Bytes(row.bytes))).collect()
        };
        BaselineEntry {
            allocated: Bytes(self.allocated_bytes),
            reserved: Bytes(self.reserved_bytes),
            by_role: table(&self.by_role),
            by_module: table(&self.by_module),
        }
    }

    /// True if there is a baseline, and the job needs more than it allows.
    #[must_use]
    pub fn grew(&self) -> bool {
        self.baseline.as_ref().is_some_and(|growth| growth.beyond_tolerance)
    }

    /// The document in a line of JSON, from which [`from_json`](Self::from_json) reads it again.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::encode::line(self)
    }

    /// Reads a document that was kept; none if it is not one of this schema.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|document: &Self| document.schema == CHECK)
    }
}

fn named(table: &std::collections::BTreeMap<String, Bytes>) -> Vec<NamedBytes> {
    table
        .iter()
        .map(|(name, bytes)| NamedBytes { name: name.clone(), bytes: bytes.get() })
        .collect()
}

/// Where the figures of recorded changes come from.
const BY_FIT: &str = "recorded by xmem fit";

fn replayed(advice: &xmem_gate::Advice) -> Replayed {
    let (change, value) = named_change(&advice.change);
    Replayed { change: change.to_owned(), value, need_bytes: advice.need.get(), fits: advice.fits }
}

fn named_change(change: &Change) -> (&'static str, String) {
    match change {
        Change::Device(device) => ("device", device.name.clone()),
        Change::AllocConf(conf) => ("alloc_conf", conf.clone()),
        Change::Optimizer(kind) => ("optimizer_impl", kind.name().to_owned()),
        Change::ZeroGrad(place) => ("zero_grad", place.name().to_owned()),
        Change::Together(all) => {
            let one = |change: &Change| {
                let (name, value) = named_change(change);
                super::words::named_change(name, &value)
            };
            ("together", all.iter().map(one).collect::<Vec<_>>().join(" and "))
        }
        Change::Measures { names, gpus: 1 } => ("measures", format!("{names}, {BY_FIT}")),
        Change::Measures { names, gpus } => {
            ("measures", format!("{names} over {gpus} GPUs, {BY_FIT}"))
        }
        Change::Value { name, value } => ("value", format!("{name}={value}, {BY_FIT}")),
        _ => ("other", String::new()),
    }
}
