//! The answer about one trace.

use crate::chart;
use crate::findings;
use crate::places::{moment, op_path, part, place_phrase};
use crate::recorded;
use crate::replay::largest::{Sources, largest};
use crate::setup;
use crate::style::{Ink, Style, keep_end, wrap};
use crate::words::{confidence_in, counted, verdict, withheld, word};
use std::cmp::Reverse;
use xmem::analyzer::integrity::Condition;
use xmem::analyzer::{GpuSource, ScriptPart};
use xmem::predict::{AllocatorKind, Confidence, CoveredExtent, Place, ShortAt, UncertaintyEffect};
use xmem::types::{Severity, WithheldReason, printable};
use xmem::{Answer, Bytes, Decision, Verdict};

/// The extent of an answer as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// All parts, whatever their length, instead of those that fit on a screen.
    pub full: bool,
    /// All notes, instead of the warnings alone.
    pub notes: bool,
    /// The most rows of largest blocks.
    pub rows: usize,
    /// Commands that go on from here where the job may not fit, and what each is for.
    pub next: Vec<(String, String)>,
}

impl Extent {
    /// All parts, with the warnings.
    pub const FULL: Self = Self { full: true, notes: false, rows: 10, next: Vec::new() };
}

/// The most lines of an answer that is not full.
const LINES: usize = 30;

/// The lines of a screen, beyond which the verdict is said again at the end.
const SCREEN: usize = 24;

/// The answer: verdict, the three numbers, place and composition of the peak, timeline, largest blocks, fragmentation and
/// notes. One that is not full has at most 30 lines, unless all notes are asked for.
///
/// If the verdict is withheld, the figures would mislead, and only the reasons are given.
#[must_use]
pub fn answer(trace: &str, answer: &Answer, extent: &Extent, style: &Style) -> String {
    let head = headline(trace, answer, style);
    if answer.verdict == Verdict::Withheld {
        return [head, notes(answer, extent.notes, usize::MAX, style)].join("\n");
    }
    let mut parts =
        vec![head, numbers(answer, style), other_gpus(answer, style), shortage(answer, style)];
    let next = next(answer, &extent.next, style);
    if extent.full {
        parts.extend([
            peak(answer, style),
            roles(answer, usize::MAX, style),
            unmodeled(answer, style),
            curve(answer, style),
            largest(answer, extent.rows, Sources::Shown, style),
            fragmentation(answer, style),
            notes(answer, extent.notes, usize::MAX, style),
        ]);
    } else {
        let notes_within = if extent.notes { usize::MAX } else { NOTES };
        let notes = notes(answer, extent.notes, notes_within, style);
        // The verdict at the end, and the line that names the option for the rest.
        let taken = parts.iter().chain([&notes, &next]).map(|part| height(part)).sum::<usize>() + 2;
        let mut left = LINES.saturating_sub(taken);
        let mut take = |part: String| {
            let fits = height(&part) <= left;
            left -= if fits { height(&part) } else { 0 };
            if fits { part } else { String::new() }
        };
        let (peak, roles) = (take(peak(answer, style)), take(roles(answer, 5, style)));
        let shown = (1..=extent.rows.min(5)).rev();
        let largest = shown
            .map(|rows| take(largest(answer, rows, Sources::LeftOut, style)))
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        let fragmentation = take(fragmentation(answer, style));
        parts.extend([peak, roles, largest, fragmentation, notes]);
    }
    parts.push(next);
    let page = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n");
    if page.lines().count() + 2 <= SCREEN && !extent.full {
        return page
            + "\n"
            + &style.paint(Ink::Faint, "--full shows the timeline and all parts")
            + "\n";
    }
    let painted = verdict(answer.verdict, answer.memory.range.confidence, style);
    let plain = word(answer.verdict, answer.memory.range.confidence);
    let width = style.columns().saturating_sub(plain.chars().count() + 2);
    let mut text = wrap(&needs(answer), width).join("\n  ");
    if !extent.full && text.chars().count() + MORE.len() <= width {
        text += &style.paint(Ink::Faint, MORE);
    }
    format!("{page}\n{painted}  {text}\n")
}

/// What follows the verdict at the end of an answer that is not full.
const MORE: &str = "  (--full shows more)";

/// The most lines of warnings in an answer that is not full.
const NOTES: usize = 5;

/// The lines of a part with the empty one above it.
fn height(part: &str) -> usize {
    if part.is_empty() { 0 } else { part.lines().count() + 1 }
}

/// Commands that go on from here.
fn next(answer: &Answer, commands: &[(String, String)], style: &Style) -> String {
    let is_short = answer.memory.out_of_memory.is_some() || answer.decision().0 == Decision::Tight;
    if !is_short || commands.is_empty() {
        return String::new();
    }
    let mut page = format!("{}\n", style.paint(Ink::Heading, "What next"));
    let width = commands.iter().map(|(_, purpose)| purpose.chars().count()).max().unwrap_or(0);
    for (command, purpose) in commands {
        page += &format!("  {purpose:<width$}  {}\n", style.paint(Ink::Heading, command));
    }
    page
}

/// One line: the verdict, the figure of nvidia-smi and the source of the convolutions' workspaces.
#[must_use]
pub fn brief(trace: &str, answer: &Answer, style: &Style) -> String {
    let about = if answer.setup.kind.is_approximate() { "about " } else { "" };
    let convolutions = convolution_source(answer).map(|text| format!("  ({text})"));
    let figures = match answer.verdict {
        Verdict::Withheld => {
            withheld(answer.withheld.first().map(|reason| reason.code())).to_owned()
        }
        _ => needs(answer).replacen("needs ", &format!("needs {about}"), 1),
    };
    format!(
        "{}  {figures}  {}{}{}\n",
        verdict(answer.verdict, answer.memory.range.confidence, style),
        printable(trace),
        convolutions.unwrap_or_default(),
        doubts(answer, style),
    )
}

/// What is said about a job beside the decision: `needs at least 2.97 GiB of 2.54 GiB on t4-16g: 438.00 MiB too much`.
#[must_use]
pub(crate) fn needs(answer: &Answer) -> String {
    let (need, device) = (answer.need, answer.device());
    let because = need.because(device.memory, answer.decision());
    format!("{}{because}", need.against(device.memory, &device.name))
}

/// The confidence, if it is not the usual one, and the number of warnings, in parentheses.
fn doubts(answer: &Answer, style: &Style) -> String {
    let warnings = match answer.warnings() {
        0 => None,
        count => Some(counted(count, "warning")),
    };
    let confidence = confidence(answer).to_owned();
    let parts = [Some(confidence).filter(|word| !word.is_empty()), warnings];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("  {}", style.paint(Ink::Warning, &format!("({})", parts.join(", "))))
}

/// The confidence as a word; empty where it is certain or the verdict says it.
pub(crate) fn confidence(answer: &Answer) -> &'static str {
    confidence_in(answer.verdict, answer.memory.range.confidence)
}

fn headline(trace: &str, answer: &Answer, style: &Style) -> String {
    let device = answer.device();
    let name = style.paint(Ink::Heading, &device.name);
    let on = match device.name.as_str() {
        "custom" => device.title.clone(),
        _ => format!("{name} ({}, {})", device.title, device.memory),
    };
    let about = about(answer);
    let width = style.columns().saturating_sub(2 + about.chars().count());
    format!(
        "{}  on {on}\n  {}{about}\n{}",
        verdict(answer.verdict, answer.memory.range.confidence, style),
        style.paint(Ink::Faint, &keep_end(trace, width)),
        allocator(answer, style)
            + &convolutions(answer, style)
            + &recorded_on(answer, style)
            + &coverage(answer, style)
            + &what_ifs(answer, style),
    )
}

/// The what-ifs that make the job another one than the recorded one.
fn what_ifs(answer: &Answer, style: &Style) -> String {
    let what_ifs =
        answer.target.what_ifs.iter().filter_map(|what_if| what_if.words(&answer.target));
    let lines = what_ifs
        .flat_map(|text| wrap(&format!("what if: {text}"), style.columns().saturating_sub(2)));
    lines.map(|line| format!("  {line}\n")).collect()
}

/// The GPU that the job was recorded on, with the recorded peaks.
fn recorded_on(answer: &Answer, style: &Style) -> String {
    let Some(gpu) = &answer.trace.gpu else { return String::new() };
    let peaks = recorded::peaks(gpu);
    let peaks = if peaks.is_empty() { peaks } else { format!("; recorded peaks: {peaks}") };
    let text = printable(&format!("recorded on {}{peaks}", recorded::gpu(gpu))).into_owned();
    let lines = wrap(&text, style.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// How far the script was recorded, with the peaks of its parts.
fn coverage(answer: &Answer, style: &Style) -> String {
    let coverage = &answer.memory.coverage;
    if coverage.parts.is_empty() {
        return String::new();
    }
    let later = match coverage.later_steps {
        0 => String::new(),
        steps => format!(", {} later", counted(steps as usize, "step")),
    };
    let how = match coverage.extent {
        CoveredExtent::Whole => "recorded to the script's end",
        CoveredExtent::Iterations => "recorded up to the last iteration, not to the script's end",
        CoveredExtent::Time => "recorded until the time was up, not to the script's end",
        CoveredExtent::Settled => "recorded until nothing new followed, not to the script's end",
        CoveredExtent::Failure => "recorded until the script failed",
        _ => "recorded until it was stopped, not to the script's end",
    };
    let peaks: Vec<String> = coverage
        .parts
        .iter()
        .filter(|peak| peak.part != ScriptPart::Setup)
        .map(|peak| format!("{} {}", peak.part.name(), peak.allocated))
        .collect();
    let text = format!("{how}{later}; allocated: {}", peaks.join(", "));
    let lines = wrap(&text, style.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// The allocator, if it is not the default one.
fn allocator(answer: &Answer, style: &Style) -> String {
    if setup::is_default(&answer.setup) {
        return String::new();
    }
    setup::lines(&answer.setup, "trace", style)
}

fn convolutions(answer: &Answer, style: &Style) -> String {
    let Some(text) = convolution_source(answer) else { return String::new() };
    let lines = wrap(&text, style.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// The source of the workspaces, if the job has convolutions: also where it says that none has one.
pub(crate) fn convolution_source(answer: &Answer) -> Option<String> {
    let has_convolutions = !answer.convolutions.is_empty();
    let source = printable(answer.convolutions.source());
    has_convolutions.then(|| format!("convolution workspaces: {source}"))
}

fn about(answer: &Answer) -> String {
    let all = answer.trace.iterations.len();
    let (from, to) = (answer.iterations.start.index(), answer.iterations.end.index());
    let chosen = match (from, to) {
        _ if all == 0 && answer.trace.gpu.is_some() => String::new(),
        (0, n) if n == all => format!(", {}", counted(all, "iteration")),
        _ => format!(", iterations {from}..{to} of {all}"),
    };
    let optimizers = match answer.trace.optimizers.as_slice() {
        [] => String::new(),
        names => format!(", {}", names.join(" and ")),
    };
    format!("{chosen}{optimizers}{}", place(answer))
}

/// The place of the process among those of its job, and how these share the model.
fn place(answer: &Answer) -> String {
    let Some(rank) = &answer.rank else { return String::new() };
    let strategies = answer.trace.recording.iter().flat_map(|recording| &recording.strategies);
    let names: Vec<&str> = strategies.map(|strategy| strategy.name.as_str()).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!(", rank {} of {}{names}", rank.rank, rank.world_size)
}

fn numbers(answer: &Answer, style: &Style) -> String {
    let peak = &answer.memory.peak;
    let memory = answer.device().memory;
    let bound = if answer.is_lower_bound { "at least; " } else { "" };
    let [allocated, reserved] = meanings(answer.setup.kind).map(|text| format!("{bound}{text}"));
    let mut rows = vec![
        ("peak allocated", peak.allocated, allocated),
        (RESERVED, peak.reserved, reserved),
        (ON_DEVICE, peak.device, context_in_words(answer)),
    ];
    if let Some(free) = answer.headroom().filter(|_| !answer.is_lower_bound) {
        let text = format!("{} of {memory} stay free", percent(free, memory));
        rows.push(("headroom", free, text));
    }
    if let Some(short) = answer.shortfall() {
        rows.push(("shortfall", short, format!("beyond {memory} of device memory")));
    }
    if answer.decision().0 != Decision::Fits && answer.memory.min_capacity.is_none() {
        let room = answer.need.with_room().map_or_else(String::new, |room| format!("; {room}"));
        let text = format!("smallest device memory for this job{room}");
        rows.push(("needed at least", answer.need.least, text));
    }
    if let Some(capacity) = answer.memory.min_capacity {
        rows.push(("minimum capacity", capacity, "smallest device memory for this job".to_owned()));
    }
    let mut page = String::new();
    for (label, size, text) in rows {
        let size = style.paint(Ink::Heading, &format!("{:>11}", size.to_string())).into_owned();
        page += &format!("  {label:<22}  {size}   {}\n", style.paint(Ink::Faint, &text));
        if label == RESERVED {
            page += &range(answer, style);
        }
        if label == ON_DEVICE {
            page += &nccl(answer, style);
            page += &outside(answer, style);
        }
    }
    page + &host(answer, style)
}

/// Memory of the host, where a job on the GPU takes much of it.
fn host(answer: &Answer, style: &Style) -> String {
    const MUCH: Bytes = Bytes(1 << 30);
    let host = answer.budget.host();
    let parts = [
        (host.pinned, "pinned", "of the host, which cannot be swapped out"),
        (host.allocated, "pageable", "of the host, up to the last recorded iteration"),
    ];
    let parts = parts.into_iter().filter_map(|(size, kind, text)| Some((size?, kind, text)));
    let lines = parts.filter(|(size, ..)| *size >= MUCH).map(|(size, kind, text)| {
        let label = format!("{kind} host memory");
        let size = format!("{:>11}", size.to_string());
        format!("  {label:<22}  {size}   {}\n", style.paint(Ink::Faint, text))
    });
    lines.collect()
}

/// The context with its bounds, without the memory of NCCL and of others.
fn context_in_words(answer: &Answer) -> String {
    let device = answer.device();
    let whole = (device.context_bounds().0, device.context, device.context_bounds().1);
    let (low, context, high) = match answer.budget.nccl() {
        None => whole,
        Some(nccl) => (whole.0 - nccl.low, whole.1 - nccl.expected, whole.2 - nccl.high),
    };
    let [low, context, high] = [low, context, high].map(|size| size - answer.budget.outside());
    let mut text = match low == high {
        true => format!("reserved + {context} context"),
        false => format!("reserved + {context} context ({})", in_mib(low, high)),
    };
    if answer.budget.nccl().is_some() {
        text += " + NCCL";
    }
    if answer.budget.outside() > Bytes::ZERO {
        text += " + other memory";
    }
    text
}

/// The memory of NCCL with its bounds.
fn nccl(answer: &Answer, style: &Style) -> String {
    let Some(nccl) = answer.budget.nccl() else { return String::new() };
    let count = counted(nccl.communicators as usize, "communicator");
    let up_to = if nccl.is_counted { "" } else { "up to " };
    let text = format!("{}, {up_to}{count}", in_mib(nccl.low, nccl.high));
    let size = format!("{:>11}", nccl.expected.to_string());
    format!("    {:<20}  {size}   {}\n", "NCCL", style.paint(Ink::Faint, &text))
}

/// The memory that the program took from the device itself.
fn outside(answer: &Answer, style: &Style) -> String {
    if answer.budget.outside() == Bytes::ZERO {
        return String::new();
    }
    let size = format!("{:>11}", answer.budget.outside().to_string());
    let text = "not from PyTorch's allocator: symmetric memory, cudaMalloc";
    format!("    {:<20}  {size}   {}\n", "other memory", style.paint(Ink::Faint, text))
}

fn in_mib(low: Bytes, high: Bytes) -> String {
    format!("{} to {} MiB", low.get() >> 20, high.get() >> 20)
}

/// What to do about a damaged recording.
const DAMAGED: &str =
    "\nThe trace is damaged: record it again. --lenient shows what is left of it.\n";

/// What follows from a script that was not recorded to its end.
const NOT_TO_THE_END: &str =
    "\nThe script was not recorded to its end: record it on a virtual GPU, without --steps.\n";

/// What follows from a script that ran out of memory.
const RAN_OUT_OF_MEMORY: &str =
    "\nThe script ran out of memory: record it without --enforce and --capacity.\n";

/// What to do about a doubtful recording with `--strict`.
const STRICT: &str = "\nThe trace is doubtful, which --strict does not accept: record it again.\n";

/// What a doubtful recording means for the verdict.
const DOUBTFUL: &str = "Doubtful: the trace contradicts itself, see the notes";

/// What assumptions of a virtual GPU mean for the verdict.
const ASSUMED: &str = "Doubtful: memory depends on values that were assumed, see the notes";

/// What a compiled job that was recorded eagerly means for the verdict.
const COMPILED: &str = "Doubtful: the job is compiled, and was recorded eagerly, see the notes";

/// What a job on several processes that was recorded on the CPU means for the verdict.
const DISTRIBUTED: &str =
    "Doubtful: the job is distributed, and was recorded on the CPU, see the notes";

const RESERVED: &str = "peak reserved";

const ON_DEVICE: &str = "expected in nvidia-smi";

/// The range of peak reserved, with its reasons.
fn range(answer: &Answer, style: &Style) -> String {
    let range = &answer.memory.range;
    // Bounds that look alike say nothing.
    if range.reserved.low.to_string() == range.reserved.high.to_string() {
        return String::new();
    }
    let causes = range.uncertainties.iter().filter(|cause| !cause.reserved.is_exact());
    let reasons: Vec<&str> = causes.map(|cause| reason(cause.name)).collect();
    let low = format!("{:>11}", range.reserved.low.to_string());
    let mut text = format!("and {}: {}", range.reserved.high, reasons.join(", "));
    if 40 + text.chars().count() > style.columns() || reasons.is_empty() {
        text = format!("and {}", range.reserved.high);
    }
    format!("    {:<20}  {low}   {}\n", "between", style.paint(Ink::Faint, &text))
}

/// A short name of an uncertainty.
fn reason(name: &'static str) -> &'static str {
    match name {
        "convolution_plan" => "cuDNN plans",
        "convolution_benchmark" => "cudnn.benchmark",
        "convolution_splits" => "cuDNN on this GPU",
        "address_order" => "address order",
        "assumed_values" => "assumed values",
        "gpu_timing" => "GPU timing",
        "other_orders" => "other orders of the lengths",
        "torch_compile" => "torch.compile",
        "library" => "libraries",
        "operator" => "operators",
        other => other,
    }
}

/// PyTorch's functions for the two peaks, or their meaning for other allocators.
fn meanings(kind: AllocatorKind) -> [&'static str; 2] {
    match kind {
        AllocatorKind::Native | AllocatorKind::MallocAsync => {
            ["torch.cuda.max_memory_allocated()", "torch.cuda.max_memory_reserved()"]
        }
        AllocatorKind::Uncached => ["requested by the program", "allocated from the device"],
        AllocatorKind::Bfc | AllocatorKind::BfcGrowth => {
            ["peak_bytes_in_use of the allocator", "allocated from the device"]
        }
    }
}

/// What the job needs on the other GPUs of its process.
fn other_gpus(answer: &Answer, style: &Style) -> String {
    if answer.other_gpus.is_empty() {
        return String::new();
    }
    let own = answer.trace.gpu.as_ref().map_or(0, |gpu| gpu.index);
    let head = style.paint(Ink::Heading, "Other GPUs of the process");
    let mut out = format!("{head}; all else is about GPU {own}\n");
    for gpu in &answer.other_gpus {
        let need = gpu.need.against(answer.device().memory, &answer.device().name);
        out += &format!(
            "  GPU {}  {}  {need}; {} allocated, {} reserved\n",
            gpu.index,
            gpu.decision.words(),
            gpu.allocated,
            gpu.reserved,
        );
    }
    out
}

/// The effects of scarce memory: an out-of-memory, or the release of cached memory; and the
/// confidence of the verdict.
fn shortage(answer: &Answer, style: &Style) -> String {
    let warning = match answer.memory.range.confidence {
        Confidence::Certain | Confidence::Likely => return short_of_memory(answer, style),
        Confidence::Doubtful if answer.integrity.condition() == Condition::Intact => {
            let is_compiled = |cause: &UncertaintyEffect| cause.name == "torch_compile";
            match () {
                () if answer.memory.range.uncertainties.iter().any(is_compiled) => COMPILED,
                () if answer.findings.iter().any(|f| f.code == "distributed-on-cpu") => DISTRIBUTED,
                () => ASSUMED,
            }
        }
        Confidence::Doubtful => DOUBTFUL,
        Confidence::MayFail if answer.findings.iter().any(|f| f.code == "memory-grows") => {
            "May not fit: memory grows from iteration to iteration, see the notes"
        }
        Confidence::MayFail if depends_on_device(answer) && answer.budget.nccl().is_some() => {
            "May not fit: what the driver and NCCL take depends on their releases and on the machine"
        }
        Confidence::MayFit if depends_on_device(answer) && answer.budget.nccl().is_some() => {
            "May fit: what the driver and NCCL take depends on their releases and on the machine"
        }
        Confidence::MayFail if depends_on_device(answer) => {
            "May not fit: the memory that the driver takes differs by release, see xmem devices"
        }
        Confidence::MayFit if depends_on_device(answer) => {
            "May fit: the memory that the driver takes differs by release, see xmem devices"
        }
        Confidence::MayFail => {
            "May not fit: the job runs out of memory at the upper end of the range"
        }
        Confidence::MayFit => "May fit: the job runs at the lower end of the range",
    };
    let warning = style.paint(Ink::Warning, warning);
    let short = short_of_memory(answer, style);
    format!("{warning}\n{short}")
}

/// Returns whether the verdict depends on the memory that the device leaves to the allocator.
fn depends_on_device(answer: &Answer) -> bool {
    answer.memory.range.uncertainties.iter().any(|cause| cause.name == "device_memory")
}

fn short_of_memory(answer: &Answer, style: &Style) -> String {
    let peak = &answer.memory.peak;
    if let Some(oom) = &answer.memory.out_of_memory {
        let place = oom.at.as_ref().map_or_else(String::new, |p| match is_history(answer) {
            true => format!(" in {}", part(p)),
            false => format!(" {}", place_phrase(p)),
        });
        let mut page = format!("{}{place}\n", style.paint(Ink::Bad, "Out of memory"));
        let mut text = format!(
            "tried to allocate {} with {} free; {} reserved, {} of it allocated",
            oom.tried, oom.free, oom.reserved, oom.allocated,
        );
        if let Some(fraction) = answer.setup.memory_fraction {
            let allowed = Bytes((answer.device().memory.get() as f64 * fraction) as u64);
            text += &format!("; the memory fraction allows {allowed}");
        }
        for line in wrap(&text, style.columns().saturating_sub(2)) {
            page += &format!("  {line}\n");
        }
        page += &origin(oom.at.as_ref());
        page += "  the figures above are those of a device with room for everything\n";
        return page;
    }
    if answer.memory.allocator.retries == 0 {
        return String::new();
    }
    format!(
        "{}: the allocator released cached memory {}\n  with more memory it would reserve {}\n",
        style.paint(Ink::Warning, "Tight fit"),
        times(answer.memory.allocator.retries),
        peak.ample_reserved,
    )
}

fn peak(answer: &Answer, style: &Style) -> String {
    let Some(at) = &answer.memory.peak.at else { return String::new() };
    let heading = style.paint(Ink::Heading, "Peak");
    let (moment, advice) = (moment_in(answer, at), advice(answer, at, style));
    format!("{heading}: {moment}\n{}{advice}", origin(Some(at)))
}

/// What lowers the peak of the part of the script that has it.
fn advice(answer: &Answer, at: &Place, style: &Style) -> String {
    const LABEL: &str = "  lower   ";
    let parts = &answer.memory.coverage.parts;
    let part = at.part.and_then(|part| parts.iter().find(|peak| peak.part == part));
    let Some(advice) = part.and_then(|peak| peak.advice) else { return String::new() };
    let lines = wrap(advice.words(), style.columns().saturating_sub(LABEL.len()));
    let labels = std::iter::once(LABEL).chain(std::iter::repeat("          "));
    labels.zip(lines).map(|(label, line)| format!("{label}{line}\n")).collect()
}

/// Returns whether the answer is about the history of a snapshot, which has no iterations.
fn is_history(answer: &Answer) -> bool {
    answer.trace.gpu.as_ref().is_some_and(|gpu| gpu.source == GpuSource::Snapshot)
}

pub(crate) fn moment_in(answer: &Answer, place: &Place) -> String {
    if is_history(answer) { part(place) } else { moment(place) }
}

fn origin(place: Option<&Place>) -> String {
    let Some(place) = place else { return String::new() };
    let mut page = String::new();
    for (label, text) in [
        ("module", place.module.clone().unwrap_or_default()),
        ("op", op_path(place)),
        ("line", place.line.clone().unwrap_or_default()),
    ] {
        if !text.is_empty() {
            page += &format!("  {label:<7} {text}\n");
        }
    }
    page
}

fn roles(answer: &Answer, most_rows: usize, style: &Style) -> String {
    let whole = answer.memory.peak.allocated;
    let mut shares: Vec<_> =
        answer.memory.by_role.iter().filter(|s| s.bytes > Bytes::ZERO).collect();
    if shares.is_empty() {
        return String::new();
    }
    shares.sort_by_key(|s| Reverse(s.bytes));
    let width = style.columns().saturating_sub(54).clamp(10, 40);
    let most = shares[0].bytes;
    let mut page = format!("{}\n", style.paint(Ink::Heading, "Memory at the peak by role"));
    let rest = shares.split_off(most_rows.min(shares.len()));
    for share in shares {
        let bar = chart::bar(share.bytes, most, width);
        let padding = " ".repeat(width - bar.chars().count());
        page += &format!(
            "  {:<16} {:>11}  {:>4}  {}{padding}  {}\n",
            share.role.name().replace('_', " "),
            share.bytes,
            percent(share.bytes, whole),
            style.paint(Ink::Bar, &bar),
            style.paint(Ink::Faint, &counted(share.blocks as usize, "block")),
        );
    }
    if !rest.is_empty() {
        let bytes: Bytes = rest.iter().map(|share| share.bytes).sum();
        page += &format!("  {:<16} {bytes:>11}  {:>4}\n", "other", percent(bytes, whole));
    }
    page
}

/// The memory of operators without a model, if it is at least 1 % of the peak.
fn unmodeled(answer: &Answer, style: &Style) -> String {
    let bytes: Bytes = answer.memory.unmodeled.iter().map(|share| share.bytes).sum();
    if bytes.get() * 100 < answer.memory.peak.allocated.get() || bytes == Bytes::ZERO {
        return String::new();
    }
    let names: Vec<&str> = answer.memory.unmodeled.iter().take(3).map(|s| s.op.as_str()).collect();
    let more = match answer.memory.unmodeled.len().saturating_sub(names.len()) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let text = format!(
        "{bytes} ({}) of the peak come from operators without a CUDA model; their CPU sizes are used: \
         {}{more}",
        percent(bytes, answer.memory.peak.allocated),
        names.join(", "),
    );
    let lines = wrap(&text, style.columns().saturating_sub(2));
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{lines}", style.paint(Ink::Warning, "Unmodeled operators"))
}

fn curve(answer: &Answer, style: &Style) -> String {
    let curve = &answer.memory.curve;
    if curve.allocated.is_empty() {
        return String::new();
    }
    let width = style.columns().saturating_sub(16);
    let values = chart::squeeze(curve, width);
    let top = answer.memory.peak.allocated;
    let heading = "Allocated memory over the iterations";
    let mut page = format!("{}\n", style.paint(Ink::Heading, heading));
    for (row, line) in chart::columns(&values, top).iter().enumerate() {
        let label = if row == 0 { top.to_string() } else { String::new() };
        page += &format!("  {label:>11} {}\n", style.paint(Ink::Bar, line));
    }
    let marks = chart::marks(curve, width);
    if !marks.is_empty() {
        page += &format!("  {:>11} {marks}\n", "iteration");
    }
    page
}

fn fragmentation(answer: &Answer, style: &Style) -> String {
    let f = &answer.memory.fragmentation;
    if f.reserved == Bytes::ZERO {
        return String::new();
    }
    let moment = match f.at {
        ShortAt::PeakAllocated => "at the peak allocated",
        ShortAt::OutOfMemory => "at the out-of-memory",
    };
    let text = format!(
        "{} ({}) of the {} reserved {moment} holds no tensor",
        f.unused,
        percent(f.unused, f.reserved),
        f.reserved,
    );
    let lines = wrap(&text, style.columns().saturating_sub(15));
    let mut page =
        format!("{}  {}", style.paint(Ink::Heading, "Fragmentation"), lines.join("\n  "));
    if f.pieces > 0 {
        page += &format!(
            "\n  in {}, the largest {}; {} could be released",
            counted(f.pieces as usize, "free piece"),
            f.largest_piece,
            if f.releasable == Bytes::ZERO { "none".to_owned() } else { f.releasable.to_string() },
        );
    }
    page.push('\n');
    page
}

/// The warnings, or all notes, within so many lines.
fn notes(answer: &Answer, all: bool, within: usize, style: &Style) -> String {
    let least = if all { Severity::Note } else { Severity::Warning };
    let mut text = String::new();
    let mut shown = 0;
    for note in findings::each(&answer.findings, least, style) {
        // The first one is shown whatever its length.
        if shown > 0 && text.lines().count() + note.lines().count() > within {
            break;
        }
        text += &note;
        shown += 1;
    }
    let hidden = answer.findings.len() - shown;
    if text.is_empty() {
        return String::new();
    }
    let heading = match answer.verdict {
        Verdict::Withheld => "Reasons and notes",
        _ => "Notes",
    };
    let rest = match hidden {
        0 => String::new(),
        1 => "  1 more note: --notes shows it\n".to_owned(),
        n => format!("  {n} more notes: --notes shows them\n"),
    };
    let help = match answer.withheld.as_slice() {
        [WithheldReason::DamagedTrace] => DAMAGED.to_owned(),
        [WithheldReason::DoubtfulTrace] => STRICT.to_owned(),
        [WithheldReason::NotToTheEnd] => NOT_TO_THE_END.to_owned(),
        [WithheldReason::RanOutOfMemory] => RAN_OUT_OF_MEMORY.to_owned(),
        [WithheldReason::IncompleteHistory] => format!(
            "\nThe job needs at least {} of {}: record the history from the beginning of the job.\n",
            answer.memory.peak.device,
            answer.device().memory,
        ),
        _ => String::new(),
    };
    format!("{}\n{text}{rest}{help}", style.paint(Ink::Heading, heading))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

fn percent(part: Bytes, whole: Bytes) -> String {
    let percent = part.get() as f64 * 100.0 / (whole.get().max(1)) as f64;
    if percent > 0.0 && percent < 1.0 { "<1 %".to_owned() } else { format!("{percent:.0} %") }
}
