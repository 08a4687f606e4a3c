//! What each rule of the lowering did (`--explain`).

use super::answer::counted;
use super::look::{Ink, Look, wrap};
use xmem::{Bytes, RuleEffect};

/// Rule by rule, in the order in which they are applied; rules without effect in one line.
#[must_use]
pub fn rules(effects: &[RuleEffect], look: &Look) -> String {
    let heading = "From the CPU to the GPU, rule by rule";
    let mut page = format!("\n{}\n", look.paint(Ink::Heading, heading));
    let mut idle = Vec::new();
    for effect in effects {
        let did = did(effect);
        if did.is_empty() {
            idle.push(effect.rule.name);
            continue;
        }
        page += &format!("  {}: {}\n", look.paint(Ink::Bar, effect.rule.name), did.join(", "));
        for line in wrap(effect.rule.summary, look.columns().saturating_sub(4)) {
            page += &format!("    {line}\n");
        }
        for line in wrap(&format!("source: {}", effect.rule.source), look.columns() - 4) {
            page += &format!("    {}\n", look.paint(Ink::Faint, &line));
        }
    }
    if !idle.is_empty() {
        for line in wrap(&format!("no effect here: {}", idle.join(", ")), look.columns() - 2) {
            page += &format!("  {}\n", look.paint(Ink::Faint, &line));
        }
    }
    page
}

fn did(effect: &RuleEffect) -> Vec<String> {
    let plain = |verb: &str, (blocks, bytes): (u64, Bytes)| {
        (blocks > 0).then(|| format!("{verb} {} ({bytes})", counted(blocks as usize, "block")))
    };
    let (blocks, before, after) = effect.resized;
    let resized = (blocks > 0)
        .then(|| format!("resized {} ({before} to {after})", counted(blocks as usize, "block")));
    [
        plain("dropped", effect.dropped),
        resized,
        plain("added", effect.added),
        plain("retimed", effect.retimed),
    ]
    .into_iter()
    .flatten()
    .collect()
}
