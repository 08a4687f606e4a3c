//! The contents of a memory snapshot.

use crate::fields::{Fields, fields};
use crate::findings::findings;
use crate::site::{site, source};
use crate::style::{Ink, Style, keep_end};
use crate::words::counted;
use xmem::Bytes;
use xmem::types::Severity;
use xmem_eval::{DeviceFacts, HistoryFacts, SnapshotFacts, Tally};

/// The writer of the snapshot and, for each device, its segments, history and largest blocks.
#[must_use]
pub fn snapshot_info(snapshot: &str, facts: &SnapshotFacts, style: &Style) -> String {
    let mut page = format!("{}\n", style.paint(Ink::Heading, snapshot));
    page += &fields(file(facts), style);
    for device in &facts.devices {
        let heading = format!("Device {}", device.device.0);
        page += &format!("\n{}\n", style.paint(Ink::Heading, &heading));
        page += &fields(contents(device), style);
        page += &fields(device.history.as_ref().map(history).unwrap_or_default(), style);
        page += &largest(device, style);
    }
    let notes = findings(&facts.findings, Severity::Note, style);
    if !notes.is_empty() {
        page += &format!("\n{}\n{notes}", style.paint(Ink::Heading, "Notes"));
    }
    page
}

fn file(facts: &SnapshotFacts) -> Fields {
    let (first, last) = facts.releases;
    let span = if first == last { String::new() } else { format!(" to {last}") };
    let unusual = facts.unusual_settings.iter();
    let unusual: Vec<String> = unusual.map(|(name, value)| format!("{name} {value}")).collect();
    let options = match facts.options.as_deref() {
        None => String::new(),
        Some("") if unusual.is_empty() => "PyTorch's defaults".to_owned(),
        Some("") => "none".to_owned(),
        Some(text) => text.to_owned(),
    };
    let stacks = match facts.stacks {
        0 => "none".to_owned(),
        n => format!("{n} distinct"),
    };
    vec![
        ("written by", format!("PyTorch {first}{span} (inferred from the keys)")),
        ("allocator options", options),
        ("other settings", unusual.join(", ")),
        ("call stacks", stacks),
        ("scopes", scopes(facts)),
    ]
}

fn scopes(facts: &SnapshotFacts) -> String {
    const SHOWN: usize = 6;
    let mut names: Vec<String> = facts
        .scopes
        .iter()
        .take(SHOWN)
        .map(|(name, count)| if *count == 1 { name.clone() } else { format!("{name} ({count})") })
        .collect();
    let more = facts.scopes.len().saturating_sub(SHOWN);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn contents(device: &DeviceFacts) -> Fields {
    let segments = &device.segments;
    let kinds =
        [("large", segments.large), ("small", segments.small), ("expandable", segments.expandable)];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(_, facts)| facts.count > 0)
        .map(|(name, facts)| format!("{} {name}", facts.count))
        .collect();
    let requested = device.requested.filter(|_| device.live.count > 0);
    let requested =
        requested.map_or_else(String::new, |bytes| format!(", {bytes} of it requested"));
    let many = |facts: Tally, thing: &str| match facts.count {
        0 => String::new(),
        n => format!("{} in {}", facts.bytes, counted(n as usize, thing)),
    };
    let streams = device.streams.iter().filter(|stream| stream.handle != 0);
    let streams: Vec<String> =
        streams.map(|s| format!("{:#x} {}", s.handle, s.segments.bytes)).collect();
    let pools = device.private_pools.iter();
    let pools: Vec<String> =
        pools.map(|(id, facts)| format!("({}, {}) {}", id.0, id.1, facts.bytes)).collect();
    let free = match device.free.count {
        0 => "none".to_owned(),
        _ => format!("{}, the largest {}", many(device.free, "piece"), device.largest_free),
    };
    let waiting = match device.pending.count {
        0 => String::new(),
        _ => format!("{} for other streams", many(device.pending, "block")),
    };
    vec![
        (
            "reserved",
            format!(
                "{} in {}: {}",
                segments.all.bytes,
                counted(segments.all.count as usize, "segment"),
                kinds.join(", ")
            ),
        ),
        ("in use", format!("{}{requested}", many(device.live, "block"))),
        ("waiting", waiting),
        ("free", free),
        ("other streams", streams.join(", ")),
        ("private pools", pools.join(", ")),
    ]
}

fn history(history: &HistoryFacts) -> Fields {
    let count = |name: &str| {
        let found = history.by_action.iter().find(|(action, _)| action == name);
        found.map_or(0, |(_, count)| *count)
    };
    let allocated = count("segment_alloc") + count("segment_map");
    let released = count("segment_free") + count("segment_unmap");
    let span = history
        .duration
        .map_or_else(String::new, |time| format!(" over {:.2} s", time.get() as f64 / 1e9));
    let began = match (history.begins_warm(), history.reserved_at_start, history.live_at_start) {
        (false, ..) => "with no memory reserved".to_owned(),
        (true, Some(reserved), Some(live)) => {
            format!("with {reserved} reserved, {} of it in use", live.bytes)
        }
        (true, ..) => format!("with {} reserved", history.usage.reserved.start),
    };
    let failed = match count("oom") {
        0 => String::new(),
        n => counted(n as usize, "allocation"),
    };
    vec![
        (
            "history",
            format!(
                "{} events{span}: {} allocations, {} frees",
                history.entries,
                count("alloc"),
                count("free_requested").max(count("free_completed")),
            ),
        ),
        ("  from the device", format!("{allocated} segment allocations, {released} releases")),
        ("  out of memory", failed),
        ("  begins", began),
        ("  peak reserved", history.usage.reserved.peak.to_string()),
        ("  peak requested", history.usage.requested.peak.to_string()),
    ]
}

fn largest(device: &DeviceFacts, style: &Style) -> String {
    if device.largest.is_empty() {
        return String::new();
    }
    let mut page = format!("  {}\n", style.paint(Ink::Heading, "Largest blocks in use"));
    for group in &device.largest {
        let count = if group.count == 1 { String::new() } else { format!("{} ×", group.count) };
        let made = keep_end(&site(&group.site), style.columns().saturating_sub(24)).into_owned();
        let line = format!("  {count:>6} {:>11}  {made}", Bytes::to_string(&group.size));
        page += &format!("{}\n", line.trim_end());
        if let Some(source) = source(&group.site) {
            let source = keep_end(source, style.columns().saturating_sub(26)).into_owned();
            page += &format!("{:22}{}\n", "", style.paint(Ink::Faint, &format!("from {source}")));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_eval::{DeviceUsage, Usage};

    /// The first entry may be the rest of an operation; the blocks are those after it.
    #[test]
    fn memory_in_use_at_the_start_is_part_of_what_is_reserved_at_the_same_moment() {
        let usage = |start| Usage { start: Bytes::mib(start), ..Usage::default() };
        let facts = HistoryFacts {
            entries: 1,
            by_action: Vec::new(),
            duration: None,
            usage: DeviceUsage { requested: usage(2), reserved: usage(2) },
            live_at_start: Some(Tally { count: 1, bytes: Bytes::mib(4) }),
            reserved_at_start: Some(Bytes::mib(22)),
        };
        let shown = history(&facts);
        let began = shown.iter().find(|(name, _)| name.trim() == "begins").map(|(_, text)| text);
        assert_eq!(began.expect("a line"), "with 22.00 MiB reserved, 4.00 MiB of it in use");
    }
}
