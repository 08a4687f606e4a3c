//! What a list of operations did.

use super::answer::counted;
use super::findings::findings;
use super::look::{Ink, Look, keep_end};
use super::setup;
use xmem::{
    Account, AllocatorKind, Bytes, Failure, Offset, Operation, PoolService, Severity, Simulation,
    Splitting, Step, StepOutcome,
};

/// The whole: peaks, what there is at the end, retries and failures, fragmentation.
#[must_use]
pub fn simulation(input: &str, simulation: &Simulation, look: &Look) -> String {
    let account = simulation.account();
    let mut parts = vec![headline(input, simulation, &account, look), numbers(&account, look)];
    parts.extend(account.first_failure.map(|failure| shortage(&failure, &account, look)));
    if simulation.setup().kind == AllocatorKind::Native {
        parts.push(fragmentation(&account, look));
    }
    let text = findings(simulation.findings(), Severity::Note, look);
    if !text.is_empty() {
        parts.push(format!("{}\n{text}", look.paint(Ink::Heading, "To know")));
    }
    parts.join("\n")
}

/// One line, for `--quiet`.
#[must_use]
pub fn simulation_in_short(input: &str, simulation: &Simulation) -> String {
    let account = simulation.account();
    format!(
        "peak allocated {}, peak reserved {}, {} out of memory  {input}\n",
        account.peak_allocated, account.peak_reserved, account.failures,
    )
}

/// One operation and what it gave, in a line.
#[must_use]
pub fn step(operation: &Operation, step: &Step, look: &Look) -> String {
    let outcome = match &step.outcome {
        StepOutcome::Done => String::new(),
        StepOutcome::Allocated(Some(Offset(at))) => format!("at {at}"),
        StepOutcome::Allocated(None) => "nothing".to_owned(),
        StepOutcome::Failed(failure) => {
            let text = format!("out of memory, tried {}", failure.tried);
            look.paint(Ink::Bad, &text).into_owned()
        }
    };
    let line = format!(
        "{:>8}  {:<38}  {:>11} of {:>11}  {outcome}",
        step.index,
        self::operation(operation),
        step.figures.allocated,
        step.figures.reserved,
    );
    format!("{}\n", line.trim_end())
}

/// The headings of [`step`]'s columns.
#[must_use]
pub fn step_heading(look: &Look) -> String {
    let line =
        format!("{:>8}  {:<38}  {:>11} of {:>11}", "#", "operation", "allocated", "reserved");
    format!("{}\n", look.paint(Ink::Faint, &line))
}

/// An operation in words.
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

fn headline(input: &str, simulation: &Simulation, account: &Account, look: &Look) -> String {
    let other = account.operations - account.allocations - account.frees;
    let mut counts = format!(
        ", {}: {}, {}",
        counted(account.operations as usize, "operation"),
        counted(account.allocations as usize, "alloc"),
        counted(account.frees as usize, "free"),
    );
    if other > 0 {
        counts += &format!(", {other} other");
    }
    let room = look.columns().saturating_sub(counts.chars().count());
    let name = keep_end(input, room);
    let device = simulation.device();
    let mut on = match (device.capacity, device.reported_total) {
        (Some(capacity), Some(total)) if capacity != total => {
            format!("device: {capacity} for the allocator, of {total}")
        }
        (Some(capacity), _) => format!("device: {capacity}"),
        (None, _) => "device: without limit".to_owned(),
    };
    if device.completion == xmem::Completion::AtSynchronization {
        on += "; other streams' work ends when the program waits for it";
    }
    let allocator = setup::lines(simulation.setup(), "file", look);
    format!("{}{counts}\n{allocator}  {on}\n", look.paint(Ink::Heading, &name))
}

fn numbers(account: &Account, look: &Look) -> String {
    let now = &account.now;
    let segments = match now.segments {
        0 => String::new(),
        n => format!("in {}", counted(n as usize, "segment")),
    };
    let mut page = String::new();
    for (label, size, text) in [
        ("peak allocated", account.peak_allocated, String::new()),
        ("peak reserved", account.peak_reserved, String::new()),
        ("allocated at the end", now.allocated, String::new()),
        ("reserved at the end", now.reserved, segments),
    ] {
        let size = look.paint(Ink::Heading, &format!("{:>11}", size.to_string())).into_owned();
        let line = format!("  {label:<22}  {size}   {}", look.paint(Ink::Faint, &text));
        page += &format!("{}\n", line.trim_end());
    }
    page += &format!("  {:<22}  {:>11}\n", "retries", now.retries);
    let failures = format!("{:>11}", account.failures);
    let ink = if account.failures == 0 { Ink::Good } else { Ink::Bad };
    page += &format!("  {:<22}  {}\n", "out of memory", look.paint(ink, &failures));
    page
}

fn shortage(failure: &Failure, account: &Account, look: &Look) -> String {
    let heading = look.paint(Ink::Bad, "Out of memory");
    let first = if account.failures > 1 { "first at" } else { "at" };
    let mut page = format!(
        "{heading}: {first} operation {}, {}\n",
        failure.index,
        operation(&failure.operation)
    );
    let free = failure.device_free.map(|free| format!(", {free} free")).unwrap_or_default();
    let cached = failure.reserved.saturating_sub(failure.allocated);
    page += &format!(
        "  tried to allocate {}{free}; {} reserved, {} of it allocated\n",
        failure.tried, failure.reserved, failure.allocated,
    );
    if cached > Bytes::ZERO {
        page += &format!("  {cached} cached, the largest piece {}\n", failure.largest_cached);
    }
    page
}

fn fragmentation(account: &Account, look: &Look) -> String {
    let now = &account.now;
    let free = now.reserved.saturating_sub(now.active);
    let part = match now.reserved.get() {
        0 => 0.0,
        reserved => free.get() as f64 * 100.0 / reserved as f64,
    };
    let mut page = format!(
        "{} at the end  {free} ({part:.0} %) of what is reserved is free\n",
        look.paint(Ink::Heading, "Fragmentation"),
    );
    if free > Bytes::ZERO {
        page += &format!(
            "  {} of it in segments that are partly in use; the largest free piece has {}\n",
            now.inactive_split, account.largest_free,
        );
    }
    page
}
