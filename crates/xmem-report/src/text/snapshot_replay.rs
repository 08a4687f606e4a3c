//! What the simulator did differently from a recording.

use super::answer::counted;
use super::findings::findings;
use super::labelled::{Lines, labelled};
use super::look::{Ink, Look};
use super::setup::address_words;
use super::site::{site, source};
use xmem::{AddressOrder, Bytes, Severity};
use xmem_eval::{
    Addresses, Candidate, Deed, Difference, EventAction, FirstDivergence, Pair, Place, Rerun,
    SetupSource, There,
};

/// Whether it did the same, what was replayed, and the first difference with its surroundings.
#[must_use]
pub fn snapshot_replay(snapshot: &str, rerun: &Rerun, look: &Look) -> String {
    let mut page = headline(snapshot, rerun, look);
    page += &labelled(lines(rerun), look);
    if let Some(first) = &rerun.divergences.first {
        page += &format!("\n{}", divergence(first, look));
    }
    if let Some(end) = rerun.end.as_ref().filter(|end| !end.is_equal()) {
        page += &format!("\n{}\n", look.paint(Ink::Heading, "Different at the end"));
        page += &end.first.iter().map(|line| format!("  {line}\n")).collect::<String>();
        let all = end.segments_that_differ + end.blocks_that_differ;
        let more = all.saturating_sub(end.first.len() as u64);
        if more > 0 {
            page += &format!("  and {more} more\n");
        }
    }
    let notes = findings(&rerun.findings, Severity::Note, look);
    if !notes.is_empty() {
        page += &format!("\n{}\n{notes}", look.paint(Ink::Heading, "To know"));
    }
    page
}

/// One line: whether it did the same.
#[must_use]
pub fn snapshot_replay_brief(snapshot: &str, rerun: &Rerun, look: &Look) -> String {
    format!("{}  {snapshot}\n", verdict(rerun, look))
}

fn verdict(rerun: &Rerun, look: &Look) -> String {
    let total = rerun.divergences.total();
    let steps = format!("DIFFERENT in {}", counted(total as usize, "step"));
    let (word, ink) = match (rerun.is_exact(), total) {
        (true, _) => ("EXACT", Ink::Good),
        (false, 0) => ("DIFFERENT at the end", Ink::Bad),
        (false, _) => (steps.as_str(), Ink::Bad),
    };
    look.paint(ink, word).into_owned()
}

fn headline(snapshot: &str, rerun: &Rerun, look: &Look) -> String {
    let told = match rerun.is_exact() {
        true => "the simulator did what PyTorch did",
        false => "the simulator did not do what PyTorch did",
    };
    let file = format!("{snapshot}, device {}", rerun.device.0);
    format!("{}  {told}\n  {}\n", verdict(rerun, look), look.paint(Ink::Faint, &file))
}

fn lines(rerun: &Rerun) -> Lines {
    let counts = &rerun.counts;
    let replayed = format!(
        "{} events: {} allocations, {} frees, {} times memory got from the device, {} given back",
        counts.entries, counts.allocations, counts.frees, counts.device_allocs, counts.device_frees,
    );
    let failed = match counts.failures {
        0 => String::new(),
        n => counted(n as usize, "allocation"),
    };
    let end = rerun.end.as_ref().map_or_else(
        || "not compared".to_owned(),
        |end| match end.is_equal() {
            true => format!("{} segments and {} blocks, all the same", end.segments, end.blocks),
            false => format!(
                "{} of {} segments and {} of {} blocks are not the same",
                end.segments_that_differ, end.segments, end.blocks_that_differ, end.blocks,
            ),
        },
    );
    vec![
        ("allocator", allocator(rerun)),
        ("replayed", replayed),
        ("began with", start(rerun)),
        ("inferred", inferred(rerun)),
        ("ran out of memory", failed),
        ("differences", differences(rerun)),
        ("at the end", end),
        ("peak reserved", pair(rerun.figures.reserved_peak)),
        ("allocated at end", pair(rerun.figures.allocated_end)),
        ("peak allocated", format!("{} (simulated only)", rerun.figures.allocated_peak)),
    ]
}

fn allocator(rerun: &Rerun) -> String {
    let setup = &rerun.setup;
    let options = match (setup.text.as_str(), setup.source) {
        ("", SetupSource::Assumed) => "default options, as the snapshot names none".to_owned(),
        ("", SetupSource::Given) => "default options".to_owned(),
        ("", SetupSource::Recorded) => "options as recorded".to_owned(),
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
        return "nothing".to_owned();
    }
    format!(
        "{} in {}, {} of it in {} in use",
        start.reserved,
        counted(start.segments as usize, "segment"),
        start.allocated,
        counted(start.blocks as usize, "block"),
    )
}

/// What the history does not say.
fn inferred(rerun: &Rerun) -> String {
    let counts = &rerun.counts;
    let parts = [
        (counts.empty_caches, "empty_cache"),
        (counts.shared_frees, "free of a block that another stream used"),
        (counts.refusals, "allocation that the device refused at first"),
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
        Difference::Outcome => "one failed, the other did not",
        Difference::Segments => "other segments got or given back",
        Difference::Placement => "the block elsewhere",
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
        return format!("{}, the same", pair.recorded);
    }
    format!("{}, simulated {}", pair.recorded, pair.simulated)
}

fn divergence(first: &FirstDivergence, look: &Look) -> String {
    let heading = format!("First difference: event {}", first.entry.0);
    let mut page = format!("{}\n", look.paint(Ink::Heading, &heading));
    let mut lines: Lines = Vec::new();
    if let Some(asked) = first.asked {
        let size = format!("{} B, rounded {} B", asked.size.get(), asked.rounded.get());
        lines.push(("asked for", format!("{size}, on stream {}", asked.stream.0)));
    }
    if !first.site.is_empty() {
        lines.push(("where", site(&first.site)));
        lines.extend(source(&first.site).map(|source| ("", format!("from {source}"))));
    }
    for (who, deeds) in [("PyTorch", &first.recorded), ("simulator", &first.simulated)] {
        let told = deeds.iter().enumerate();
        lines.extend(told.map(|(row, deed)| (if row == 0 { who } else { "" }, deed_words(deed))));
        if deeds.is_empty() {
            lines.push((who, "nothing".to_owned()));
        }
    }
    lines.extend(there_words(first).map(|there| ("there, simulated", there)));
    page += &labelled(lines, look);
    page += &candidates(first, look);
    if !first.before.is_empty() {
        page += &format!("  {}\n", look.paint(Ink::Faint, "what both did before"));
        for (entry, deed) in &first.before {
            page += &format!("    {:>8}  {}\n", entry.0, deed_words(deed));
        }
    }
    page
}

fn deed_words(deed: &Deed) -> String {
    let (action, size) = (deed.action.name(), deed.size.get());
    let stream = match deed.stream.0 {
        0 => String::new(),
        n => format!(", stream {n}"),
    };
    match deed.place {
        Place::Nowhere => format!("{action} {size} B{stream}"),
        place => format!("{action} {size} B at {place}{stream}"),
    }
}

/// What the simulator has where PyTorch put the block.
fn there_words(first: &FirstDivergence) -> Option<String> {
    let words = |what: &str, block: &Candidate| {
        format!("{what} block of {} B at {}", block.size.get(), block.place)
    };
    Some(match first.there? {
        There::Free(block) => words("a free", &block),
        There::InUse(block) => words("a used", &block),
        There::Nothing => "no segment".to_owned(),
    })
}

fn candidates(first: &FirstDivergence, look: &Look) -> String {
    if first.asked.is_none() {
        return String::new();
    }
    let heading = match first.candidates.len() {
        0 => "no free block of the simulator was large enough",
        _ => "free blocks of the simulator that were large enough, best fit first",
    };
    let mut page = format!("  {}\n", look.paint(Ink::Faint, heading));
    let block = |deeds: &[Deed]| {
        deeds.iter().find(|deed| deed.action == EventAction::Alloc).map(|deed| deed.place)
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
