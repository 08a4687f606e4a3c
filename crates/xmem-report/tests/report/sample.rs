//! A hand-made answer.

use std::sync::Arc;
use xmem::analyzer::{Phase, Role};
use xmem::convolutions::FittedModel;
use xmem::orchestrator::{Rule, RuleEffect, Target};
use xmem::predict::{
    AllocatorCounts, AllocatorSettings, AllocatorSetup, Bounds, Confidence, Curve, Finding,
    Fragmentation, IterationPeak, JobEnvironment, LiveBlock, OutOfMemory, Peak, PeakRange, Place,
    RoleShare, ShortAt, UncertaintyEffect, UnmodeledShare,
};
use xmem::types::{IterationId, Nanos, Severity, WithheldReason};
use xmem::{Answer, Bytes, Device, Estimate, IterationFacts, Need, Timings, TraceFacts, Verdict};

/// A small device.
pub(crate) fn device() -> Device {
    let mut device = Device::custom(Bytes::mib(1024));
    "demo-1g".clone_into(&mut device.name);
    "NVIDIA Demo".clone_into(&mut device.title);
    device.context = Bytes::mib(300);
    device
}

/// The resolved settings for a trace without settings.
pub(crate) fn setup(settings: &AllocatorSettings) -> AllocatorSetup {
    settings.resolve(&JobEnvironment::default(), &device()).expect("settings that can be used")
}

fn place(iteration: Option<u32>, phase: Phase, ops: &[&str]) -> Place {
    Place {
        iteration: iteration.map(IterationId),
        phase,
        part: None,
        op_path: ops.iter().map(ToString::to_string).collect(),
        module: Some("Net_0 > Linear_1".to_owned()),
        line: Some("train.py(12): forward".to_owned()),
    }
}

fn block(mib: u64, role: Role, rule: Option<&'static str>, origin: Place) -> LiveBlock {
    let bytes = Bytes::mib(mib);
    LiveBlock { bytes, requested: bytes, role, evidence: "", rule, origin }
}

fn backward() -> Place {
    let ops = ["autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "aten::mm"];
    place(Some(1), Phase::Backward, &ops)
}

fn shares() -> Vec<RoleShare> {
    let of = |role| match role {
        Role::Parameter => (100, 4),
        Role::OptimizerState => (200, 8),
        Role::Activation => (96, 10),
        Role::Unknown => (1, 1),
        _ => (0, 0),
    };
    Role::ALL
        .into_iter()
        .map(|role| RoleShare { role, bytes: Bytes::mib(of(role).0), blocks: of(role).1 })
        .collect()
}

fn facts() -> TraceFacts {
    let iteration =
        IterationFacts { duration: Nanos(1_500_000), blocks: 12, allocated: Bytes::mib(120) };
    TraceFacts {
        events: 900,
        operators: 400,
        operators_with_shapes: 300,
        annotations: 4,
        python_calls: 100,
        host_memory_events: 60,
        links: 20,
        other_events: vec![("Trace".to_owned(), 1), ("kernel".to_owned(), 7)],
        threads: 2,
        schema_version: Some(1),
        options: vec!["profile_memory".to_owned()],
        optimizers: vec!["AdamW".to_owned()],
        modules: 3,
        iterations: vec![iteration; 2],
        blocks: 30,
        blocks_never_freed: 4,
        host_peak: Bytes::mib(390),
        ..TraceFacts::default()
    }
}

/// A range with a doubt about blocks and one about addresses.
fn range() -> PeakRange {
    let bounds = |low, high| Bounds { low: Bytes::mib(low), high: Bytes::mib(high) };
    let doubt =
        |name, blocks, allocated, reserved| UncertaintyEffect { name, blocks, allocated, reserved };
    PeakRange {
        allocated: bounds(390, 401),
        reserved: bounds(410, 440),
        confidence: Confidence::Certain,
        uncertainties: vec![
            doubt("convolution_plan", Some(7), bounds(390, 401), bounds(418, 440)),
            doubt("address_order", None, bounds(397, 397), bounds(410, 420)),
        ],
    }
}

fn unmodeled(op: &str, mib: u64) -> UnmodeledShare {
    UnmodeledShare { op: op.to_owned(), bytes: Bytes::mib(mib), blocks: 1 }
}

/// The answer about a trace of a single block, of which all fields are replaced.
fn base() -> Answer {
    let trace = br#"{"traceEvents": [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
         "args": {"Bytes": 512, "Addr": 64, "Device Type": 0, "Device Id": -1}}
    ]}"#;
    Estimate::builder(device())
        .convolutions(Arc::new(FittedModel))
        .build()
        .bytes(trace)
        .expect("a trace")
}

/// A job that fits.
pub(crate) fn fits() -> Answer {
    let curve: Vec<Bytes> = (0..120).map(|i| Bytes::mib(100 + (i % 60) * 5)).collect();
    let mut init = place(None, Phase::Init, &["aten::empty"]);
    init.module = None;
    let mut answer = base();
    answer.verdict = Verdict::Fits;
    answer.withheld = Vec::new();
    answer.target = Target::new(device());
    answer.setup = setup(&AllocatorSettings::default());
    answer.iterations = IterationId(0)..IterationId(2);
    answer.memory.peak = Peak {
        allocated: Bytes::mib(397),
        requested: Bytes::mib(396),
        reserved: Bytes::mib(420),
        device: Bytes::mib(720),
        ample_reserved: Bytes::mib(420),
        at: Some(backward()),
        reserved_at: Some(backward()),
    };
    answer.memory.range = range();
    answer.memory.unmodeled = vec![
        unmodeled("torchvision::nms", 6),
        unmodeled("my::kernel", 1),
        unmodeled("my::other", 1),
        unmodeled("my::third", 1),
    ];
    answer.memory.by_role = shares();
    answer.memory.largest = vec![
        block(64, Role::OptimizerState, None, init.clone()),
        block(64, Role::OptimizerState, None, init),
        block(32, Role::Activation, Some("leaf-scratch"), backward()),
    ];
    answer.memory.per_iteration = vec![IterationPeak {
        start: Bytes::ZERO,
        iteration: Some(IterationId(1)),
        allocated: Bytes::mib(397),
        reserved: Bytes::mib(420),
    }];
    answer.memory.curve = Curve {
        reserved: vec![Bytes::mib(420); curve.len()],
        allocated: curve,
        iterations: vec![(IterationId(0), 4), (IterationId(1), 60)],
        requests: 600,
    };
    answer.memory.fragmentation = Fragmentation {
        at: ShortAt::PeakAllocated,
        reserved: Bytes::mib(420),
        unused: Bytes::mib(23),
        releasable: Bytes::mib(20),
        pieces: 3,
        largest_piece: Bytes::mib(20),
        rounding: Bytes::mib(1),
    };
    answer.memory.allocator = AllocatorCounts {
        requests: 600,
        allocations: 310,
        segments_peak: 9,
        device_allocs: 9,
        device_frees: 0,
        retries: 0,
    };
    answer.memory.out_of_memory = None;
    answer.need = Need { least: Bytes::mib(720), ample: Bytes::mib(720) };
    answer.memory.min_capacity = None;
    answer.rules = effects();
    answer.findings = vec![
        finding("never-freed", Severity::Note, "four blocks outlive the trace", 4),
        finding("no-shapes", Severity::Warning, "argument shapes were not recorded", 1),
    ];
    answer.trace = facts();
    answer.timings = Timings::default();
    answer
}

fn rule(name: &str) -> &'static Rule {
    xmem::orchestrator::rules().iter().find(|rule| rule.name == name).expect("a rule of this name")
}

fn effects() -> Vec<RuleEffect> {
    let none = |rule| RuleEffect {
        rule,
        dropped: (0, Bytes::ZERO),
        added: (0, Bytes::ZERO),
        resized: (0, Bytes::ZERO, Bytes::ZERO),
        retimed: (0, Bytes::ZERO),
    };
    vec![
        RuleEffect { dropped: (7, Bytes::mib(12)), ..none(rule("leaf-scratch")) },
        RuleEffect {
            resized: (1, Bytes::mib(8), Bytes::mib(2)),
            added: (2, Bytes(64)),
            ..none(rule("dropout-mask"))
        },
        none(rule("zero-grad")),
    ]
}

fn finding(code: &'static str, severity: Severity, message: &str, count: u64) -> Finding {
    let place = (count > 1).then(|| "memory event 17".to_owned());
    Finding { code, severity, message: message.to_owned(), place, count }
}

/// The same job on a device that is too small.
pub(crate) fn does_not_fit() -> Answer {
    let mut answer = fits();
    answer.verdict = Verdict::DoesNotFit;
    answer.target.device.memory = Bytes::mib(640);
    answer.need = Need { least: Bytes::mib(702), ample: Bytes::mib(720) };
    answer.memory.min_capacity = Some(Bytes::mib(702));
    answer.memory.out_of_memory = Some(OutOfMemory {
        at: Some(backward()),
        request: 212,
        requested: Bytes::mib(30),
        tried: Bytes::mib(30),
        free: Bytes::mib(18),
        allocated: Bytes::mib(310),
        reserved: Bytes::mib(322),
        needed: Bytes::mib(710),
    });
    answer
}

/// A job that runs only because cached memory is given back.
pub(crate) fn only_just() -> Answer {
    let mut answer = fits();
    answer.target.device.memory = Bytes::mib(720);
    answer.memory.peak.ample_reserved = Bytes::mib(460);
    answer.memory.allocator.retries = 2;
    answer
}

/// A trace that says too little.
pub(crate) fn withheld() -> Answer {
    let mut answer = fits();
    answer.verdict = Verdict::Withheld;
    answer.withheld = vec![WithheldReason::NoMemoryEvents];
    let message = "the trace has no memory events: record it with profile_memory=True";
    answer.findings.push(finding("no-memory-events", Severity::Serious, message, 1));
    answer
}
