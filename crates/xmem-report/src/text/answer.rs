//! The answer about one trace.

use super::chart;
use super::findings::findings;
use super::look::{Ink, Look, keep_end};
use super::places::{moment, op_path};
use super::tabular::{Align, Tabular};
use std::cmp::Reverse;
use xmem::{Answer, Bytes, Place, Severity, Verdict};

/// The whole answer: verdict, the three numbers, where the peak is, what it consists of, the curve
/// over the iterations, the largest blocks, fragmentation, and what was odd.
#[must_use]
pub fn answer(trace: &str, answer: &Answer, look: &Look) -> String {
    let parts = [
        headline(trace, answer, look),
        numbers(answer, look),
        shortage(answer, look),
        peak(answer, look),
        roles(answer, look),
        curve(answer, look),
        largest(answer, look),
        fragmentation(answer, look),
        notes(answer, look),
    ];
    let mut page = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n");
    if answer.trace.blocks == 0 {
        page += "\n  Nothing was replayed.\n";
    }
    page
}

/// One line: the verdict and what nvidia-smi would show.
#[must_use]
pub fn brief(trace: &str, answer: &Answer, look: &Look) -> String {
    format!(
        "{}  {} of {} on {}  {trace}\n",
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
    let mut line = format!(
        "{}  on {} ({}, {})\n",
        verdict(answer.verdict, look),
        look.paint(Ink::Heading, &device.name),
        device.title,
        device.memory
    );
    for reason in answer.reasons() {
        line += &format!("      {}\n", reason.message);
    }
    let about = about(answer);
    let room = look.columns().saturating_sub(2 + about.chars().count());
    line += &format!("  {}{about}\n", look.paint(Ink::Faint, &keep_end(trace, room)));
    line
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
    let context = answer.device().context;
    let mut rows = vec![
        (
            "peak allocated",
            peak.allocated.to_string(),
            "tensors: torch.cuda.max_memory_allocated()".to_owned(),
        ),
        (
            "peak reserved",
            peak.reserved.to_string(),
            "segments: torch.cuda.max_memory_reserved()".to_owned(),
        ),
        (
            "in nvidia-smi",
            peak.device.to_string(),
            format!("expected: reserved + {context} context"),
        ),
    ];
    if let Some(free) = answer.headroom() {
        let of = answer.device().memory;
        let text = format!("{} of {of} stay free", percent(free, of));
        rows.push(("headroom", free.to_string(), text));
    }
    if let Some(short) = answer.shortfall() {
        let text = format!("over the {} of the device", answer.device().memory);
        rows.push(("short by", short.to_string(), text));
    }
    if let Some(capacity) = answer.min_capacity {
        let text = "smallest device memory in which it runs".to_owned();
        rows.push(("min capacity", capacity.to_string(), text));
    }
    let mut page = String::new();
    for (label, size, text) in rows {
        let size = look.paint(Ink::Heading, &format!("{size:>12}")).into_owned();
        page += &format!("  {label:<15}{size}   {}\n", look.paint(Ink::Faint, &text));
    }
    page
}

/// What happened for lack of room: the out-of-memory, or cached memory given back.
fn shortage(answer: &Answer, look: &Look) -> String {
    let peak = &answer.peak;
    if let Some(oom) = &answer.out_of_memory {
        let place = oom.at.as_ref().map_or_else(String::new, |p| format!(" in {}", moment(p)));
        let mut page = format!(
            "{}{place}\n  tried to allocate {}, {} free; {} reserved, {} of it allocated\n",
            look.paint(Ink::Bad, "Out of memory"),
            oom.tried,
            oom.free,
            oom.reserved,
            oom.allocated,
        );
        page += &origin(oom.at.as_ref());
        page += &format!(
            "  {} would be enough; the figures above are those of a device with room for all\n",
            oom.needed
        );
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
    let of = match at.iteration {
        Some(_) => format!(" (of {}, counted from 0)", answer.trace.iterations.len()),
        None => String::new(),
    };
    format!("{} in {}{of}\n{}", look.paint(Ink::Heading, "Peak"), moment(at), origin(Some(at)))
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
    if answer.largest.is_empty() {
        return String::new();
    }
    let mut table = Tabular::new(&[
        ("size", Align::Right),
        ("role", Align::Left),
        ("from", Align::Left),
        ("op", Align::Rest),
        ("module", Align::Rest),
        ("line", Align::Rest),
    ]);
    for block in &answer.largest {
        let place = &block.origin;
        let op = match (place.op(), block.rule) {
            (Some(op), Some(rule)) => format!("{op} [{rule}]"),
            (Some(op), None) => op.to_owned(),
            (None, Some(rule)) => format!("[{rule}]"),
            (None, None) => String::new(),
        };
        table.row([
            block.bytes.to_string(),
            block.role.name().replace('_', " "),
            match place.iteration {
                Some(id) => format!("{} {}", id.0, super::places::phase(place.phase)),
                None => "init".to_owned(),
            },
            op,
            place.module.clone().unwrap_or_default(),
            place.line.clone().unwrap_or_default(),
        ]);
    }
    let heading = "Largest blocks alive at the peak";
    format!("{}\n{}", look.paint(Ink::Heading, heading), table.render(look))
}

fn fragmentation(answer: &Answer, look: &Look) -> String {
    let f = &answer.fragmentation;
    let reserved = answer.peak.reserved;
    if reserved == Bytes::ZERO {
        return String::new();
    }
    let mut page = format!(
        "{}  {} ({}) of the reserved memory holds no tensor when most is reserved",
        look.paint(Ink::Heading, "Fragmentation"),
        f.unused,
        percent(f.unused, reserved),
    );
    if f.pieces > 0 {
        page += &format!(
            "\n  in {}, the largest {}; {} could be given back to the device",
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
    let rest = match hidden {
        0 => String::new(),
        n => format!("  {} more in --format json\n", counted(n, "note")),
    };
    format!("{}\n{text}{rest}", look.paint(Ink::Heading, "To know"))
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
