//! The effect of each rule of the lowering (`--explain`).

use crate::style::{Ink, Style, wrap};
use crate::words::counted;
use xmem::Bytes;
use xmem::orchestrator::RuleEffect;

/// The rules in the order in which they are applied; those without effect in one line.
#[must_use]
pub fn rules(effects: &[RuleEffect], style: &Style) -> String {
    let heading = "Lowering from CPU to GPU, rule by rule";
    let mut page = format!("\n{}\n", style.paint(Ink::Heading, heading));
    let mut idle = Vec::new();
    for effect in effects {
        let effects = effects_of(effect);
        if effects.is_empty() {
            idle.push(effect.rule.name);
            continue;
        }
        page += &format!("  {}: {}\n", style.paint(Ink::Bar, effect.rule.name), effects.join(", "));
        for line in wrap(effect.rule.summary, style.columns().saturating_sub(4)) {
            page += &format!("    {line}\n");
        }
        for line in wrap(&format!("source: {}", effect.rule.source), style.columns() - 4) {
            page += &format!("    {}\n", style.paint(Ink::Faint, &line));
        }
    }
    if !idle.is_empty() {
        for line in wrap(&format!("no effect: {}", idle.join(", ")), style.columns() - 2) {
            page += &format!("  {}\n", style.paint(Ink::Faint, &line));
        }
    }
    page
}

fn effects_of(effect: &RuleEffect) -> Vec<String> {
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
