//! The contents of a trace.

use crate::findings::findings;
use crate::recorded;
use crate::style::{Ink, Style};
use crate::table::{Align, Table};
use crate::words::counted;
use xmem::analyzer::recording::{EndReason, Implementation, Rank};
use xmem::predict::Finding;
use xmem::types::Severity;
use xmem::{Bytes, ModelFacts, OptimizerFacts, RecordingFacts, TraceFacts};

/// Counts by kind of event, the job's structure, and what is missing.
#[must_use]
pub fn inspect(trace: &str, facts: &TraceFacts, found: &[Finding], style: &Style) -> String {
    let mut page = format!("{}\n", style.paint(Ink::Heading, trace));
    let recording = facts.recording.as_ref().map(recording).unwrap_or_default();
    for (label, text) in [file(facts), events(facts), job(facts), recording].into_iter().flatten() {
        if !text.is_empty() {
            page += &format!("  {label:<19} {text}\n");
        }
    }
    if !facts.iterations.is_empty() {
        page +=
            &format!("\n{}\n{}", style.paint(Ink::Heading, "Iterations"), iterations(facts, style));
    }
    let notes = findings(found, Severity::Note, style);
    if !notes.is_empty() {
        page += &format!("\n{}\n{notes}", style.paint(Ink::Heading, "Notes"));
    }
    page
}

type Fields = Vec<(&'static str, String)>;

fn file(facts: &TraceFacts) -> Fields {
    let version = facts.schema_version.map(|v| v.to_string()).unwrap_or_default();
    vec![
        ("schema version", version),
        ("profiler options", facts.options.join(", ")),
        ("devices", facts.devices.join(", ")),
        ("other metadata", facts.metadata.join(", ")),
    ]
}

fn events(facts: &TraceFacts) -> Fields {
    let other: Vec<String> =
        facts.other_events.iter().map(|(name, n)| format!("{n} {name}")).collect();
    let some = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    vec![
        ("events", facts.events.to_string()),
        ("operators", format!("{} ({} with shapes)", facts.operators, facts.operators_with_shapes)),
        ("annotations", facts.annotations.to_string()),
        ("Python calls", facts.python_calls.to_string()),
        ("host memory", facts.host_memory_events.to_string()),
        ("device memory", some(facts.device_memory_events)),
        ("out of memory", some(facts.out_of_memory_events)),
        ("backward links", facts.links.to_string()),
        ("other events", other.join(", ")),
    ]
}

fn job(facts: &TraceFacts) -> Fields {
    let (blocks, peak) = match facts.gpu {
        None => ("host blocks", "host memory peak"),
        Some(_) => ("GPU blocks", "GPU memory peak"),
    };
    vec![
        ("threads", facts.threads.to_string()),
        ("module paths", facts.modules.to_string()),
        ("optimizers", facts.optimizers.join(", ")),
        (blocks, format!("{} ({} never freed)", facts.blocks, facts.blocks_never_freed)),
        (peak, facts.host_peak.to_string()),
        ("rank", facts.rank.as_ref().map(rank).unwrap_or_default()),
        ("recorded on", recorded_on(facts)),
        ("recorded peaks", facts.gpu.as_ref().map(recorded::peaks).unwrap_or_default()),
    ]
}

/// The place among the processes of the job.
fn rank(rank: &Rank) -> String {
    let version = |(major, minor, patch): (u32, u32, u32)| format!("NCCL {major}.{minor}.{patch}");
    let sizes = |kind: &str, sizes: &[u32]| {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        (!sizes.is_empty()).then(|| format!("{kind} of {} ranks", sizes.join(", ")))
    };
    let parts = [
        Some(format!("{} of {}", rank.rank, rank.world_size)),
        rank.nodes.map(|nodes| counted(nodes as usize, "node")),
        rank.nccl.map(version).or_else(|| rank.backend.clone()),
        sizes("process groups", &rank.groups),
        rank.communicators.as_deref().and_then(|made| sizes("communicators", made)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The GPU, or the CPU that stood for one.
fn recorded_on(facts: &TraceFacts) -> String {
    match &facts.gpu {
        Some(gpu) => recorded::gpu(gpu),
        None if facts.host_memory_events > 0 => "the CPU".to_owned(),
        None => String::new(),
    }
}

/// The facts that `xmem profile` recorded.
fn recording(facts: &RecordingFacts) -> Fields {
    let with = [("torch", &facts.torch), ("Python", &facts.python), ("xmem", &facts.recorder)];
    let with =
        with.iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
    let model = |m: &ModelFacts| {
        format!("{} ({} in {} parameters)", m.class, m.parameter_bytes, m.parameters)
    };
    let optimizer = |o: &OptimizerFacts| match o.implementation {
        Implementation::Default => format!("{} ({} tensors)", o.class, o.tensors),
        given => format!("{} ({} tensors, {})", o.class, o.tensors, given.name()),
    };
    let ended = facts.ended.map(|reason| match (reason, &facts.ended_by) {
        (EndReason::Complete, _) => "complete".to_owned(),
        (reason, Some(by)) => format!("incomplete: {} ({by})", reason.name().replace('_', " ")),
        (reason, None) => format!("incomplete: {}", reason.name().replace('_', " ")),
    });
    let count = facts.iterations.as_ref().map(|(by, count)| format!("{count} {by}"));
    let resident = match facts.resident.as_slice() {
        [] => String::new(),
        [only] => format!("{only} after the iteration"),
        [first, .., last] => format!("{first} after the first iteration, {last} after the last"),
    };
    let recorded: Vec<String> = count.into_iter().chain(ended).collect();
    let join = |list: Vec<String>| list.join(", ");
    vec![
        ("recorded with", join(with.collect())),
        ("reported GPU", facts.reported_device.clone().unwrap_or_default()),
        ("recorded", join(recorded)),
        ("resident memory", resident),
        ("models", join(facts.models.iter().map(model).collect())),
        ("optimizer settings", join(facts.optimizers.iter().map(optimizer).collect())),
        ("batch size", facts.batch_size.map(|n| n.to_string()).unwrap_or_default()),
        ("autocast", join(facts.autocast.clone())),
        ("strategies", join(facts.strategies.iter().map(ToString::to_string).collect())),
        ("recorder notes", join(facts.notes.clone())),
    ]
}

fn iterations(facts: &TraceFacts, style: &Style) -> String {
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("CPU time", Align::Right),
        (if facts.gpu.is_some() { "GPU blocks" } else { "host blocks" }, Align::Right),
        ("total allocated", Align::Right),
    ]);
    for (i, iteration) in facts.iterations.iter().enumerate() {
        let millis = iteration.duration.get() as f64 / 1e6;
        table.row([
            i.to_string(),
            format!("{millis:.1} ms"),
            iteration.blocks.to_string(),
            Bytes::to_string(&iteration.allocated),
        ]);
    }
    table.render(style)
}
