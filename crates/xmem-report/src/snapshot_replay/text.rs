//! The differences between the simulator and a recording.

use crate::fields::{Fields, fields};
use crate::findings::findings;
use crate::setup::address_words;
use crate::site::{site, source};
use crate::style::{Ink, Style};
use crate::words::counted;
use xmem::Bytes;
use xmem::simulator::AddressOrder;
use xmem::types::{Severity, printable};
use xmem_eval::{
    Addresses, AllocatorAction, Candidate, Difference, EventAction, FirstDivergence, MemoryPlace,
    Pair, PlaceContent, Rerun, RerunVerdict, SetupSource,
};

/// The verdict, the replayed events, and the first difference with its context.
#[must_use]
pub fn snapshot_replay(snapshot: &str, rerun: &Rerun, style: &Style) -> String {
    let mut page = headline(snapshot, rerun, style);
    page += &fields(lines(rerun), style);
    if let Some(first) = &rerun.divergences.first {
        page += &format!("\n{}", divergence(first, style));
    }
    if let Some(end) = rerun.end.as_ref().filter(|end| !end.is_equal()) {
        page += &format!("\n{}\n", style.paint(Ink::Heading, "Differences at the end"));
        page += &end.first.iter().map(|line| format!("  {line}\n")).collect::<String>();
        let all = end.segments_that_differ + end.blocks_that_differ;
        let more = all.saturating_sub(end.first.len() as u64);
        if more > 0 {
            page += &format!("  and {more} more\n");
        }
    }
    let notes = findings(&rerun.findings, Severity::Note, style);
    if !notes.is_empty() {
        page += &format!("\n{}\n{notes}", style.paint(Ink::Heading, "Notes"));
    }
    page
}

/// One line: the verdict.
#[must_use]
pub fn snapshot_replay_brief(snapshot: &str, rerun: &Rerun, style: &Style) -> String {
    format!("{}  {}\n", verdict(rerun, style), printable(snapshot))
}

fn verdict(rerun: &Rerun, style: &Style) -> String {
    let total = rerun.divergences.total();
    let steps = format!("DIFFERENT in {}", counted(total as usize, "step"));
    let (word, ink) = match (rerun.verdict(), total) {
        (RerunVerdict::Exact, _) => ("EXACT", Ink::Good),
        (RerunVerdict::Withheld, _) => ("NO VERDICT", Ink::Warning),
        (RerunVerdict::Different, 0) => ("DIFFERENT at the end", Ink::Bad),
        (RerunVerdict::Different, _) => (steps.as_str(), Ink::Bad),
    };
    style.paint(ink, word).into_owned()
}

fn headline(snapshot: &str, rerun: &Rerun, style: &Style) -> String {
    let summary = match rerun.verdict() {
        RerunVerdict::Exact => "the simulator did the same as PyTorch",
        RerunVerdict::Different => "the simulator did not do the same as PyTorch",
        RerunVerdict::Withheld => "the snapshot does not show what PyTorch did",
    };
    let file = format!("{snapshot}, device {}", rerun.device.0);
    format!("{}  {summary}\n  {}\n", verdict(rerun, style), style.paint(Ink::Faint, &file))
}

fn lines(rerun: &Rerun) -> Fields {
    let counts = &rerun.counts;
    let replayed = format!(
        "{} events: {} allocations, {} frees, {} segment allocations, {} segment releases",
        counts.entries, counts.allocations, counts.frees, counts.device_allocs, counts.device_frees,
    );
    let failed = match counts.failures {
        0 => String::new(),
        n => counted(n as usize, "allocation"),
    };
    let end = rerun.end.as_ref().map_or_else(
        || "not compared".to_owned(),
        |end| match end.is_equal() {
            true => format!("all {} segments and {} blocks are equal", end.segments, end.blocks),
            false => format!(
                "{} of {} segments and {} of {} blocks differ",
                end.segments_that_differ, end.segments, end.blocks_that_differ, end.blocks,
            ),
        },
    );
    vec![
        ("allocator", allocator(rerun)),
        ("replayed", replayed),
        ("initial state", start(rerun)),
        ("inferred", inferred(rerun)),
        ("out of memory", failed),
        ("differences", differences(rerun)),
        ("at the end", end),
        ("peak reserved", pair(rerun.figures.reserved_peak)),
        ("allocated at end", pair(rerun.figures.allocated_end)),
        ("peak allocated", format!("{} (simulated)", rerun.figures.allocated_peak)),
    ]
}

fn allocator(rerun: &Rerun) -> String {
    let setup = &rerun.setup;
    let options = match (setup.text.as_str(), setup.source) {
        ("", SetupSource::Assumed) => "default options (none in the snapshot)".to_owned(),
        ("", SetupSource::Given) => "default options".to_owned(),
        ("", SetupSource::Recorded) => "recorded options".to_owned(),
        (text, SetupSource::Recorded) => format!("{text} (from the snapshot)"),
        (text, _) => text.to_owned(),
    };
    let addresses = match rerun.addresses {
        Addresses::Recorded => address_words(AddressOrder::Recorded),
        Addresses::Order(order) => address_words(order),
    };
    format!("PyTorch {}, {options}, {addresses}", setup.config.release)
}

fn start(rerun: &Rerun) -> String {
    let start = &rerun.start;
    if start.segments == 0 {
        return "no memory reserved".to_owned();
    }
    format!(
        "{} reserved in {}, {} of it in use in {}",
        start.reserved,
        counted(start.segments as usize, "segment"),
        start.allocated,
        counted(start.blocks as usize, "block"),
    )
}

/// Operations that the history does not contain and that are inferred.
fn inferred(rerun: &Rerun) -> String {
    let counts = &rerun.counts;
    let parts = [
        (counts.empty_caches, "empty_cache"),
        (counts.shared_frees, "free of a block in use by another stream"),
        (counts.refusals, "allocation that failed at first"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} × {what}"))
        .collect();
    parts.join(", ")
}

fn differences(rerun: &Rerun) -> String {
    let words = |difference| match difference {
        Difference::Outcome => "only one of the two failed",
        Difference::Segments => "other segments allocated or released",
        Difference::Placement => "block at another address",
    };
    let counts = Difference::ALL.into_iter().zip(rerun.divergences.by_difference);
    let parts: Vec<String> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(difference, count)| format!("{count} × {}", words(difference)))
        .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn pair(pair: Pair) -> String {
    if pair.recorded == pair.simulated {
        return format!("{} in both", pair.recorded);
    }
    format!("{}, simulated {}", pair.recorded, pair.simulated)
}

fn divergence(first: &FirstDivergence, style: &Style) -> String {
    let heading = format!("First difference: event {}", first.entry.0);
    let mut page = format!("{}\n", style.paint(Ink::Heading, &heading));
    let mut lines: Fields = Vec::new();
    if let Some(request) = first.request {
        let size = format!("{} B, rounded to {} B", request.size.get(), request.rounded.get());
        lines.push(("request", format!("{size}, stream {}", request.stream.0)));
    }
    if !first.site.is_empty() {
        lines.push(("call site", site(&first.site)));
        lines.extend(source(&first.site).map(|source| ("", format!("from {source}"))));
    }
    for (who, actions) in [("PyTorch", &first.recorded), ("simulator", &first.simulated)] {
        let rows = actions.iter().enumerate();
        lines.extend(
            rows.map(|(row, action)| (if row == 0 { who } else { "" }, action_text(action))),
        );
        if actions.is_empty() {
            lines.push((who, "no event".to_owned()));
        }
    }
    lines.extend(content_text(first).map(|content| ("at that address", content)));
    page += &fields(lines, style);
    page += &candidates(first, style);
    if !first.before.is_empty() {
        page += &format!("  {}\n", style.paint(Ink::Faint, "preceding events, equal in both"));
        for (entry, action) in &first.before {
            page += &format!("    {:>8}  {}\n", entry.0, action_text(action));
        }
    }
    page
}

fn action_text(action: &AllocatorAction) -> String {
    let (kind, size) = (action.kind.name(), action.size.get());
    let stream = match action.stream.0 {
        0 => String::new(),
        n => format!(", stream {n}"),
    };
    match action.place {
        MemoryPlace::Nowhere => format!("{kind} {size} B{stream}"),
        place => format!("{kind} {size} B at {place}{stream}"),
    }
}

/// The simulator's block at the address of PyTorch's block.
fn content_text(first: &FirstDivergence) -> Option<String> {
    let words = |what: &str, block: &Candidate| {
        format!("{what} block of {} B at {}", block.size.get(), block.place)
    };
    Some(match first.at_recorded_place? {
        PlaceContent::Free(block) => words("free", &block),
        PlaceContent::InUse(block) => words("used", &block),
        PlaceContent::Nothing => "no segment in the simulator".to_owned(),
    })
}

fn candidates(first: &FirstDivergence, style: &Style) -> String {
    if first.request.is_none() {
        return String::new();
    }
    let heading = match first.candidates.len() {
        0 => "no free block of the simulator is large enough",
        _ => "free blocks of the simulator that are large enough, best fit first",
    };
    let mut page = format!("  {}\n", style.paint(Ink::Faint, heading));
    let block = |actions: &[AllocatorAction]| {
        actions.iter().find(|action| action.kind == EventAction::Alloc).map(|action| action.place)
    };
    let (theirs, ours) = (block(&first.recorded), block(&first.simulated));
    for candidate in &first.candidates {
        let place = Some(candidate.place);
        let mark = match (place == theirs, place == ours) {
            (true, true) => "  <- both",
            (true, false) => "  <- PyTorch",
            (false, true) => "  <- simulator",
            (false, false) => "",
        };
        page += &format!(
            "    {:>12} B at {}, segment of {}{mark}\n",
            candidate.size.get(),
            candidate.place,
            Bytes::to_string(&candidate.segment),
        );
    }
    if first.more_candidates > 0 {
        page += &format!("    and {} more\n", first.more_candidates);
    }
    page
}
