//! The result of a list of operations.

use crate::findings::findings;
use crate::setup;
use crate::style::{Ink, Style, keep_end};
use crate::words::counted;
use xmem::Bytes;
use xmem::predict::{
    AllocatorKind, FailedAllocation, Offset, Simulation, SimulationStep, SimulationSummary,
    StepOutcome,
};
use xmem::simulator::{Operation, PoolService, Splitting};
use xmem::types::Severity;
use xmem::types::printable;

/// The complete summary: peaks, final memory, retries and failures, fragmentation.
#[must_use]
pub fn simulation(input: &str, simulation: &Simulation, style: &Style) -> String {
    let summary = simulation.summary();
    let mut parts = vec![headline(input, simulation, &summary, style), numbers(&summary, style)];
    parts.extend(summary.first_failure.map(|failure| shortage(&failure, &summary, style)));
    if simulation.setup().kind == AllocatorKind::Native {
        parts.push(fragmentation(&summary, style));
    }
    let text = findings(simulation.findings(), Severity::Note, style);
    if !text.is_empty() {
        parts.push(format!("{}\n{text}", style.paint(Ink::Heading, "Notes")));
    }
    parts.join("\n")
}

/// One line, for `--quiet`.
#[must_use]
pub fn simulation_brief(input: &str, simulation: &Simulation) -> String {
    let summary = simulation.summary();
    format!(
        "peak allocated {}, peak reserved {}, {} out of memory  {}\n",
        summary.peak_allocated,
        summary.peak_reserved,
        summary.failures,
        printable(input),
    )
}

/// One operation and its result, as a line.
#[must_use]
pub fn step(operation: &Operation, step: &SimulationStep, style: &Style) -> String {
    let outcome = match &step.outcome {
        StepOutcome::Done => String::new(),
        StepOutcome::Allocated(Some(Offset(at))) => format!("at {at}"),
        StepOutcome::Allocated(None) => "no block".to_owned(),
        StepOutcome::Failed(failure) => {
            let text = format!("out of memory, tried {}", failure.tried);
            style.paint(Ink::Bad, &text).into_owned()
        }
    };
    let line = format!(
        "{:>8}  {:<38}  {:>11} of {:>11}  {outcome}",
        step.index,
        self::operation(operation),
        step.stats.allocated,
        step.stats.reserved,
    );
    format!("{}\n", line.trim_end())
}

/// The headings of [`step`]'s columns.
#[must_use]
pub fn step_heading(style: &Style) -> String {
    let line =
        format!("{:>8}  {:<38}  {:>11} of {:>11}", "#", "operation", "allocated", "reserved");
    format!("{}\n", style.paint(Ink::Faint, &line))
}

/// An operation as text.
#[must_use]
pub fn operation(operation: &Operation) -> String {
    match *operation {
        Operation::Alloc { block, size, stream } => match stream.0 {
            0 => format!("alloc {}: {size}", block.0),
            other => format!("alloc {}: {size} on stream {other}", block.0),
        },
        Operation::Free(block) => format!("free {}", block.0),
        Operation::RecordStream { block, stream } => {
            format!("record_stream {} on stream {}", block.0, stream.0)
        }
        Operation::Synchronize => "synchronize".to_owned(),
        Operation::EmptyCache => "empty_cache".to_owned(),
        Operation::MemoryFraction(fraction) => format!("fraction {fraction}"),
        Operation::ResetPeaks => "reset_peak".to_owned(),
        Operation::Capacity(capacity) => format!("capacity {capacity}"),
        Operation::EnterPool { pool, options } => {
            let splitting = if options.splitting == Splitting::Never { " no_split" } else { "" };
            let service =
                if options.service == PoolService::LastResort { " use_on_oom" } else { "" };
            format!("pool_begin {}{splitting}{service}", pool.0)
        }
        Operation::BeginCapture { pool, stream } => {
            format!("capture_begin {} on stream {}", pool.0, stream.0)
        }
        Operation::LeavePool(pool) => format!("pool_end {}", pool.0),
        Operation::ReleasePool(pool) => format!("pool_release {}", pool.0),
    }
}

fn headline(
    input: &str,
    simulation: &Simulation,
    summary: &SimulationSummary,
    style: &Style,
) -> String {
    let other = summary.operations - summary.allocations - summary.frees;
    let mut counts = format!(
        ", {}: {}, {}",
        counted(summary.operations as usize, "operation"),
        counted(summary.allocations as usize, "alloc"),
        counted(summary.frees as usize, "free"),
    );
    if other > 0 {
        counts += &format!(", {other} other");
    }
    let width = style.columns().saturating_sub(counts.chars().count());
    let name = keep_end(input, width);
    let device = simulation.device();
    let mut on = match (device.capacity, device.reported_total) {
        (Some(capacity), Some(total)) if capacity != total => {
            format!("device: {capacity} of {total} available to the allocator")
        }
        (Some(capacity), _) => format!("device: {capacity}"),
        (None, _) => "device: unlimited".to_owned(),
    };
    if device.completion == xmem::simulator::Completion::AtSynchronization {
        on += "; work on other streams ends when the program synchronizes";
    }
    let allocator = setup::lines(simulation.setup(), "file", style);
    format!("{}{counts}\n{allocator}  {on}\n", style.paint(Ink::Heading, &name))
}

fn numbers(summary: &SimulationSummary, style: &Style) -> String {
    let now = &summary.now;
    let segments = match now.segments {
        0 => String::new(),
        n => format!("in {}", counted(n as usize, "segment")),
    };
    let mut page = String::new();
    for (label, size, text) in [
        ("peak allocated", summary.peak_allocated, String::new()),
        ("peak reserved", summary.peak_reserved, String::new()),
        ("allocated at end", now.allocated, String::new()),
        ("reserved at end", now.reserved, segments),
    ] {
        let size = style.paint(Ink::Heading, &format!("{:>11}", size.to_string())).into_owned();
        let line = format!("  {label:<22}  {size}   {}", style.paint(Ink::Faint, &text));
        page += &format!("{}\n", line.trim_end());
    }
    page += &format!("  {:<22}  {:>11}\n", "retries", now.retries);
    let failures = format!("{:>11}", summary.failures);
    let ink = if summary.failures == 0 { Ink::Good } else { Ink::Bad };
    page += &format!("  {:<22}  {}\n", "out of memory", style.paint(ink, &failures));
    page
}

fn shortage(failure: &FailedAllocation, summary: &SimulationSummary, style: &Style) -> String {
    let heading = style.paint(Ink::Bad, "Out of memory");
    let first = if summary.failures > 1 { "first at" } else { "at" };
    let mut page = format!(
        "{heading}: {first} operation {}, {}\n",
        failure.index,
        operation(&failure.operation)
    );
    let free = failure.device_free.map(|free| format!(" with {free} free")).unwrap_or_default();
    let cached = failure.reserved.saturating_sub(failure.allocated);
    page += &format!(
        "  tried to allocate {}{free}; {} reserved, {} of it allocated\n",
        failure.tried, failure.reserved, failure.allocated,
    );
    if cached > Bytes::ZERO {
        page += &format!("  {cached} cached, largest free piece {}\n", failure.largest_cached);
    }
    page
}

fn fragmentation(summary: &SimulationSummary, style: &Style) -> String {
    let now = &summary.now;
    let free = now.reserved.saturating_sub(now.active);
    let part = match now.reserved.get() {
        0 => 0.0,
        reserved => free.get() as f64 * 100.0 / reserved as f64,
    };
    let mut page = format!(
        "{} at the end  {free} ({part:.0} %) of reserved memory is free\n",
        style.paint(Ink::Heading, "Fragmentation"),
    );
    if free > Bytes::ZERO {
        page += &format!(
            "  {} of it in segments that are partly in use; largest free piece {}\n",
            now.inactive_split, summary.largest_free,
        );
    }
    page
}
