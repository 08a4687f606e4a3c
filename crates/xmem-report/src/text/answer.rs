//! The answer about one trace.

use super::chart;
use super::findings::findings;
use super::look::{Ink, Look, keep_end, wrap};
use super::places::{moment, op_path};
use super::setup;
use std::cmp::Reverse;
use xmem::{AllocatorKind, Answer, Bytes, Outlook, Place, Severity, Verdict};

/// The whole answer: verdict, the three numbers, where the peak is, what it consists of, the curve
/// over the iterations, the largest blocks, fragmentation, and what was odd.
///
/// Where the verdict is withheld the figures would mislead; only the reasons are given.
#[must_use]
pub fn answer(trace: &str, answer: &Answer, look: &Look) -> String {
    if answer.verdict == Verdict::Withheld {
        return [headline(trace, answer, look), notes(answer, look)].join("\n");
    }
    let parts = [
        headline(trace, answer, look),
        numbers(answer, look),
        shortage(answer, look),
        peak(answer, look),
        roles(answer, look),
        unmodelled(answer, look),
        curve(answer, look),
        largest(answer, look),
        fragmentation(answer, look),
        notes(answer, look),
    ];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line: the verdict and what nvidia-smi would show.
#[must_use]
pub fn brief(trace: &str, answer: &Answer, look: &Look) -> String {
    let about = if answer.setup.kind.is_approximate() { "about " } else { "" };
    format!(
        "{}  {about}{} of {} on {}  {trace}\n",
        verdict(answer.verdict, look),
        answer.peak.device,
        answer.device().memory,
        answer.device().name,
    )
}

/// The verdict as a word.
pub(super) fn verdict(verdict: Verdict, look: &Look) -> String {
    let (word, ink) = match verdict {
        Verdict::Fits => ("FITS", Ink::Good),
        Verdict::DoesNotFit => ("DOES NOT FIT", Ink::Bad),
        Verdict::Withheld => ("NO VERDICT", Ink::Doubtful),
    };
    look.paint(ink, word).into_owned()
}

fn headline(trace: &str, answer: &Answer, look: &Look) -> String {
    let device = answer.device();
    let name = look.paint(Ink::Heading, &device.name);
    let on = match device.name.as_str() {
        "custom" => device.title.clone(),
        _ => format!("{name} ({}, {})", device.title, device.memory),
    };
    let about = about(answer);
    let room = look.columns().saturating_sub(2 + about.chars().count());
    format!(
        "{}  on {on}\n  {}{about}\n{}",
        verdict(answer.verdict, look),
        look.paint(Ink::Faint, &keep_end(trace, room)),
        allocator(answer, look) + &convolutions(answer, look),
    )
}

/// Which allocator it is, where it is not the usual one.
fn allocator(answer: &Answer, look: &Look) -> String {
    if setup::is_usual(&answer.setup) {
        return String::new();
    }
    setup::lines(&answer.setup, "trace", look)
}

/// What the workspaces of convolutions are from, where there are any.
fn convolutions(answer: &Answer, look: &Look) -> String {
    let added = answer.rules.iter().any(|r| r.rule.name == "cudnn-convolution" && r.added.0 > 0);
    if !added {
        return String::new();
    }
    let text = format!("convolution workspaces: {}", answer.target.convolutions.origin());
    let lines = wrap(&text, look.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn about(answer: &Answer) -> String {
    let all = answer.trace.iterations.len();
    let (from, to) = (answer.iterations.start.index(), answer.iterations.end.index());
    let chosen = match (from, to) {
        (0, n) if n == all => format!(", {}", counted(all, "iteration")),
        _ => format!(", iterations {from}..{to} of {all}"),
    };
    match answer.trace.optimizers.as_slice() {
        [] => chosen,
        names => format!("{chosen}, {}", names.join(" and ")),
    }
}

fn numbers(answer: &Answer, look: &Look) -> String {
    let peak = &answer.peak;
    let (context, memory) = (answer.device().context, answer.device().memory);
    let [allocated, reserved] = meanings(answer.setup.kind);
    let mut rows = vec![
        ("peak allocated", peak.allocated, allocated.to_owned()),
        (RESERVED, peak.reserved, reserved.to_owned()),
        ("expected in nvidia-smi", peak.device, format!("reserved + {context} context")),
    ];
    if let Some(free) = answer.headroom() {
        let text = format!("{} of {memory} stay free", percent(free, memory));
        rows.push(("headroom", free, text));
    }
    if let Some(short) = answer.shortfall() {
        rows.push(("short by", short, format!("over the {memory} of the device")));
    }
    if let Some(capacity) = answer.min_capacity {
        rows.push(("smallest capacity", capacity, "device memory in which it runs".to_owned()));
    }
    let mut page = String::new();
    for (label, size, text) in rows {
        let size = look.paint(Ink::Heading, &format!("{:>11}", size.to_string())).into_owned();
        page += &format!("  {label:<22}  {size}   {}\n", look.paint(Ink::Faint, &text));
        if label == RESERVED {
            page += &range(answer, look);
        }
    }
    page
}

const RESERVED: &str = "peak reserved";

/// How far peak reserved may be off, and because of what.
fn range(answer: &Answer, look: &Look) -> String {
    let range = &answer.range;
    if range.reserved.is_exact() {
        return String::new();
    }
    let doubts = range.doubts.iter().filter(|doubt| !doubt.reserved.is_exact());
    let reasons: Vec<&str> = doubts.map(|doubt| reason(doubt.name)).collect();
    let low = format!("{:>11}", range.reserved.low.to_string());
    let mut text = format!("and {}: {}", range.reserved.high, reasons.join(", "));
    if 40 + text.chars().count() > look.columns() || reasons.is_empty() {
        text = format!("and {}", range.reserved.high);
    }
    format!("    {:<20}  {low}   {}\n", "between", look.paint(Ink::Faint, &text))
}

/// A doubt in a word.
fn reason(name: &'static str) -> &'static str {
    match name {
        "convolution_plan" => "cuDNN's plans",
        "address_order" => "addresses",
        "library" => "libraries",
        "operator" => "operators",
        other => other,
    }
}

/// Where a program finds the two peaks, or what they are where it cannot.
fn meanings(kind: AllocatorKind) -> [&'static str; 2] {
    match kind {
        AllocatorKind::Native | AllocatorKind::MallocAsync => {
            ["torch.cuda.max_memory_allocated()", "torch.cuda.max_memory_reserved()"]
        }
        AllocatorKind::Uncached => ["asked for by the program", "given by the device"],
        AllocatorKind::Bfc | AllocatorKind::BfcGrowth => {
            ["peak_bytes_in_use of the allocator", "taken from the device"]
        }
    }
}

/// What happened for lack of room: the out-of-memory, or cached memory given back; and whether that
/// is for sure.
fn shortage(answer: &Answer, look: &Look) -> String {
    let outlook = match answer.range.outlook {
        Outlook::Sure => return short_of_memory(answer, look),
        Outlook::MayFail => "It may not fit: at the upper end of the range it runs out of memory",
        Outlook::MayFit => "It may fit all the same: at the lower end of the range it runs",
    };
    let outlook = look.paint(Ink::Doubtful, outlook);
    let short = short_of_memory(answer, look);
    format!("{outlook}\n{short}")
}

fn short_of_memory(answer: &Answer, look: &Look) -> String {
    let peak = &answer.peak;
    if let Some(oom) = &answer.out_of_memory {
        let place = oom.at.as_ref().map_or_else(String::new, |p| format!(" in {}", moment(p)));
        let mut page = format!("{}{place}\n", look.paint(Ink::Bad, "Out of memory"));
        let mut told = format!(
            "tried to allocate {}, {} free; {} reserved, {} of it allocated",
            oom.tried, oom.free, oom.reserved, oom.allocated,
        );
        if let Some(fraction) = answer.setup.memory_fraction {
            let allowed = Bytes((answer.device().memory.get() as f64 * fraction) as u64);
            told += &format!("; the memory fraction allows {allowed}");
        }
        for line in wrap(&told, look.columns().saturating_sub(2)) {
            page += &format!("  {line}\n");
        }
        page += &origin(oom.at.as_ref());
        page +=
            &format!("  {} would be enough; the figures above are for ample memory\n", oom.needed);
        return page;
    }
    if answer.allocator.retries == 0 {
        return String::new();
    }
    format!(
        "{}: cached memory is given back {}\n  with more room PyTorch would reserve {}\n",
        look.paint(Ink::Doubtful, "It fits only just"),
        times(answer.allocator.retries),
        peak.ample_reserved,
    )
}

fn peak(answer: &Answer, look: &Look) -> String {
    let Some(at) = &answer.peak.at else { return String::new() };
    let heading = look.paint(Ink::Heading, "Peak");
    format!("{heading}: {}\n{}", moment(at), origin(Some(at)))
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

fn roles(answer: &Answer, look: &Look) -> String {
    let whole = answer.peak.allocated;
    let mut shares: Vec<_> = answer.by_role.iter().filter(|s| s.bytes > Bytes::ZERO).collect();
    if shares.is_empty() {
        return String::new();
    }
    shares.sort_by_key(|s| Reverse(s.bytes));
    let width = look.columns().saturating_sub(54).clamp(10, 40);
    let most = shares[0].bytes;
    let mut page = format!("{}\n", look.paint(Ink::Heading, "What is alive at the peak"));
    for share in shares {
        let bar = chart::bar(share.bytes, most, width);
        let padding = " ".repeat(width - bar.chars().count());
        page += &format!(
            "  {:<16} {:>11}  {:>4}  {}{padding}  {}\n",
            share.role.name().replace('_', " "),
            share.bytes,
            percent(share.bytes, whole),
            look.paint(Ink::Bar, &bar),
            look.paint(Ink::Faint, &counted(share.blocks as usize, "block")),
        );
    }
    page
}

/// What is not modelled, if it is enough to matter: from a hundredth of the peak on.
fn unmodelled(answer: &Answer, look: &Look) -> String {
    let bytes: Bytes = answer.unmodelled.iter().map(|share| share.bytes).sum();
    if bytes.get() * 100 < answer.peak.allocated.get() || bytes == Bytes::ZERO {
        return String::new();
    }
    let names: Vec<&str> = answer.unmodelled.iter().take(3).map(|s| s.op.as_str()).collect();
    let more = match answer.unmodelled.len().saturating_sub(names.len()) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let told = format!(
        "{bytes} ({}) of it are made by operators whose memory on CUDA is not known; they are kept \
         as the CPU had them: {}{more}",
        percent(bytes, answer.peak.allocated),
        names.join(", "),
    );
    let lines = wrap(&told, look.columns().saturating_sub(2));
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{lines}", look.paint(Ink::Doubtful, "Not modelled"))
}

fn curve(answer: &Answer, look: &Look) -> String {
    let curve = &answer.curve;
    if curve.allocated.is_empty() {
        return String::new();
    }
    let width = look.columns().saturating_sub(16);
    let values = chart::squeeze(curve, width);
    let top = answer.peak.allocated;
    let heading = "Allocated memory over the iterations";
    let mut page = format!("{}\n", look.paint(Ink::Heading, heading));
    for (row, line) in chart::columns(&values, top).iter().enumerate() {
        let label = if row == 0 { top.to_string() } else { String::new() };
        page += &format!("  {label:>11} {}\n", look.paint(Ink::Bar, line));
    }
    let marks = chart::marks(curve, width);
    if !marks.is_empty() {
        page += &format!("  {:>11} {marks}\n", "iteration");
    }
    page
}

fn largest(answer: &Answer, look: &Look) -> String {
    let heading = look.paint(Ink::Heading, "Largest blocks alive at the peak");
    let mut page = String::new();
    for alike in answer.largest.chunk_by(|a, b| a == b) {
        let block = &alike[0];
        let place = &block.origin;
        let count = match alike.len() {
            1 => String::new(),
            n => format!("{n} ×"),
        };
        let rule = block.rule.map(|rule| format!("[{rule}]"));
        let made =
            [place.op(), rule.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let made = keep_end(&made, look.columns().saturating_sub(66));
        let line = format!(
            "  {count:>4} {:>11}  {:<15}  {:<27}  {made}",
            block.bytes.to_string(),
            block.role.name().replace('_', " "),
            moment(place),
        );
        page += &format!("{}\n", line.trim_end());
        let source = [place.module.as_deref(), place.line.as_deref()];
        let source = source.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !source.is_empty() {
            let source = keep_end(&source, look.columns().saturating_sub(20));
            page += &format!("{:20}{}\n", "", look.paint(Ink::Faint, &source));
        }
    }
    if page.is_empty() { page } else { format!("{heading}\n{page}") }
}

fn fragmentation(answer: &Answer, look: &Look) -> String {
    let f = &answer.fragmentation;
    let reserved = answer.peak.reserved;
    if reserved == Bytes::ZERO {
        return String::new();
    }
    let mut page = format!(
        "{}  {} ({}) of the peak reserved holds no tensor",
        look.paint(Ink::Heading, "Fragmentation"),
        f.unused,
        percent(f.unused, reserved),
    );
    if f.pieces > 0 {
        page += &format!(
            "\n  in {}, the largest {}; {} could be given back",
            counted(f.pieces as usize, "free piece"),
            f.largest_piece,
            if f.releasable == Bytes::ZERO { "none".to_owned() } else { f.releasable.to_string() },
        );
    }
    page.push('\n');
    page
}

fn notes(answer: &Answer, look: &Look) -> String {
    let text = findings(&answer.findings, Severity::Warning, look);
    let hidden = answer.findings.iter().filter(|f| f.severity < Severity::Warning).count();
    if text.is_empty() {
        return String::new();
    }
    let heading = match answer.verdict {
        Verdict::Withheld => "Why there is no verdict, and what else is odd",
        _ => "To know",
    };
    let rest = match hidden {
        0 => String::new(),
        n => format!("  and {}: see --format json\n", counted(n, "note")),
    };
    format!("{}\n{text}{rest}", look.paint(Ink::Heading, heading))
}

/// `3 blocks`, `1 block`.
pub(super) fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
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
