//! The answer as text.

use crate::style::{Ink, Style};
use crate::table::{Align, Table};
use xmem::types::printable;
use xmem::{Bytes, Need};
use xmem_studies::tune::{Tuned, Tuning};

const COLUMNS: [(&str, Align); 4] = [
    ("needs", Align::Right),
    ("fits", Align::Left),
    ("saves", Align::Left),
    ("settings", Align::Left),
];

/// A table of settings, those that need least first, below the job as it is.
#[must_use]
pub fn tune(trace: &str, device: &str, found: &Tuning, style: &Style) -> String {
    let (words, ink) =
        if found.base.fits { ("FITS", Ink::Good) } else { ("DOES NOT FIT", Ink::Bad) };
    let heading = format!(
        "{} as it is: needs {} of {}  {}\n",
        style.paint(ink, words),
        found.base.needs,
        Need::room(found.room, device),
        printable(trace),
    );
    if found.better.is_empty() {
        return format!("{heading}\nNone of {} other settings needs less.\n", found.tried);
    }
    let mut table = Table::new(&COLUMNS);
    for tuned in &found.better {
        table.row([
            tuned.needs.to_string(),
            if tuned.fits { "YES".to_owned() } else { "no".to_owned() },
            saves(&found.base, tuned),
            tuned.setting.options(),
        ]);
    }
    let tried = format!(
        "{} settings were replayed; those that need less, and no more changes than others\n",
        found.tried
    );
    format!("{heading}\n{}\n{tried}", table.render(style))
}

/// One line: the job as it is, and the best settings.
#[must_use]
pub fn tune_brief(trace: &str, device: &str, found: &Tuning) -> String {
    let words = if found.base.fits { "FITS" } else { "DOES NOT FIT" };
    let best = found
        .better
        .first()
        .map(|best| format!("; needs {} with {}", best.needs, best.setting.options()));
    let line = format!(
        "{words}  needs {} of {}{}  {trace}",
        found.base.needs,
        Need::room(found.room, device),
        best.unwrap_or_default(),
    );
    format!("{}\n", printable(&line))
}

/// What is saved, and of what: tensors, or what the allocator holds beyond them.
fn saves(base: &Tuned, tuned: &Tuned) -> String {
    let saved = base.needs.saturating_sub(tuned.needs);
    let tensors = base.allocated.saturating_sub(tuned.allocated);
    match tensors {
        Bytes::ZERO => format!("{saved} (fragmentation and cached memory)"),
        tensors if tensors >= saved => format!("{saved} (tensors)"),
        tensors => format!("{saved} (tensors {tensors})"),
    }
}
