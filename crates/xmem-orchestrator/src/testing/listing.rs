//! A schedule as text: one request a line.

use crate::Schedule;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use xmem_types::RequestKind;

/// The requests of a schedule. Recorded blocks have the names that `names` gives, added ones the
/// rule's and a number.
///
/// `+ NAME BYTES ROLE`, then the rule that resized or moved a recorded block; `- NAME`.
pub(crate) fn requests(schedule: &Schedule, names: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut labels = vec![String::new(); schedule.blocks.len()];
    let mut lines = Vec::with_capacity(schedule.requests.len());
    for request in &schedule.requests {
        let block = schedule.block(request.block);
        let label = &mut labels[request.block.index()];
        let line = match request.kind {
            RequestKind::Alloc { size, .. } => {
                assert_eq!(size, block.size, "a request asks for its block's size");
                let rule = block.rule.map_or("", |rule| rule.name);
                match block.origin.recorded() {
                    Some(origin) => label.clone_from(&names[origin.index()]),
                    None => {
                        let count = counts.entry(rule).or_default();
                        *count += 1;
                        *label = format!("{rule}#{count}");
                    }
                }
                let changed = if block.origin.recorded().is_some() && block.rule.is_some() {
                    rule
                } else {
                    ""
                };
                format!("+ {label} {} {} {changed}", size.get(), block.role.name())
            }
            RequestKind::Free => format!("- {label}"),
        };
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Two listings as one: lines of both without a mark, lines of one only under its mark.
pub(crate) fn compare(on: &[String], off: &[String]) -> String {
    let mut same = vec![vec![0_usize; off.len() + 1]; on.len() + 1];
    for i in (0..on.len()).rev() {
        for j in (0..off.len()).rev() {
            same[i][j] = if on[i] == off[j] {
                same[i + 1][j + 1] + 1
            } else {
                same[i + 1][j].max(same[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut text = String::new();
    while i < on.len() || j < off.len() {
        let (mark, line) = if i < on.len() && j < off.len() && on[i] == off[j] {
            i += 1;
            j += 1;
            ("", &on[i - 1])
        } else if j == off.len() || i < on.len() && same[i + 1][j] >= same[i][j + 1] {
            i += 1;
            ("on", &on[i - 1])
        } else {
            j += 1;
            ("off", &off[j - 1])
        };
        let _ = writeln!(text, "{mark:3} {line}");
    }
    text
}
