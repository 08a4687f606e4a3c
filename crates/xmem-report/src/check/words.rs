//! The words that all forms share.

use super::json::{BeforeNow, CheckDocument, CheckPlace, LowHigh, Replayed};
use xmem::Bytes;
use xmem::types::printable;
use xmem_gate::{Decision, TightBy};

/// The longest first line, in columns.
pub(super) const COLUMNS: usize = 100;

/// The decision as words.
pub(super) fn decision(document: &CheckDocument) -> &'static str {
    document.decision().words()
}

/// Need against room: what follows the decision in the first line.
pub(super) fn need(document: &CheckDocument) -> String {
    let memory = Bytes(document.device.memory_bytes);
    let Some(need) = document.need() else {
        let reason = document.withheld.first().map(String::as_str);
        return crate::words::withheld(reason).to_owned();
    };
    let more = match (document.decision(), document.tight_by()) {
        (Decision::OverRequested, _) => {
            let smaller = document.smaller.as_ref().map_or("a smaller one", |d| d.name.as_str());
            format!(": {smaller} is enough")
        }
        (_, Some(TightBy::Margin)) => {
            format!(" with {} to stay free", Bytes(document.margin_bytes))
        }
        decided => need.because(memory, decided),
    };
    format!("{}{more}", need.against(memory, &document.device.name))
}

/// The first line without color, of at most [`COLUMNS`] columns: the end of the trace's name gives way.
pub(super) fn headline(document: &CheckDocument) -> String {
    headline_within(document, COLUMNS)
}

/// The first line of at most so many columns.
pub(super) fn headline_within(document: &CheckDocument, columns: usize) -> String {
    let start = format!("{}  {}", decision(document), need(document));
    let start = printable(&start);
    let left = columns.saturating_sub(start.chars().count() + 2);
    let trace = crate::style::keep_end(&document.trace, left.max(12));
    let line = format!("{start}  {trace}");
    line.chars().take(columns).collect()
}

/// `train.py(12): forward, iteration 1, backward, aten::mm`.
pub(super) fn place(place: &CheckPlace) -> String {
    let moment = match place.iteration {
        Some(id) => format!("iteration {id}, {}", place.phase.replace('_', " ")),
        None => "before iteration 0".to_owned(),
    };
    let parts = [place.line.as_deref(), Some(moment.as_str()), place.op.as_deref()];
    printable(&parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).into_owned()
}

/// What a change is called in a job: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
pub(super) fn change(replayed: &Replayed) -> String {
    named_change(&replayed.change, &replayed.value)
}

/// The same of a change and its value.
pub(super) fn named_change(change: &str, of: &str) -> String {
    let value = printable(of);
    match change {
        "device" => value.into_owned(),
        "alloc_conf" => format!("PYTORCH_CUDA_ALLOC_CONF={value}"),
        "optimizer_impl" => match of {
            "fused" => "fused=True in the optimizer".to_owned(),
            "for-loop" => "foreach=False in the optimizer".to_owned(),
            _ => "foreach=True in the optimizer".to_owned(),
        },
        "zero_grad" => match of {
            "pos0" => "zero_grad() just before backward()".to_owned(),
            _ => "zero_grad() at the start of the iteration".to_owned(),
        },
        _ => value.into_owned(),
    }
}

/// `fits with …`, `needs … with …`.
pub(super) fn advice(replayed: &Replayed) -> String {
    let need = Bytes(replayed.need_bytes);
    match (replayed.change.as_str(), replayed.fits) {
        ("device", _) => format!("fits on {}", change(replayed)),
        ("measures", false) => {
            format!("a smaller value fits with {} (needs {need})", change(replayed))
        }
        (_, true) => format!("fits with {} (needs {need})", change(replayed)),
        (_, false) => format!("needs {need} with {}", change(replayed)),
    }
}

/// `+12.00 MiB (1.00 GiB to 1.01 GiB)`.
pub(super) fn grown(bytes: BeforeNow) -> String {
    let (before, now) = (Bytes(bytes.before), Bytes(bytes.now));
    let sign = if now >= before { ("+", now - before) } else { ("-", before - now) };
    format!("{}{} ({before} to {now})", sign.0, sign.1)
}

/// The name of a module in a comparison.
pub(super) fn module(name: &str) -> &str {
    if name.is_empty() { "no module" } else { name }
}

/// The lines below the first one, without indent.
pub(super) fn details(document: &CheckDocument) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(need) = document.need() {
        lines.extend(need.with_room());
        if let Some(at) = &document.at {
            let what = if document.runs_out { "runs out of memory" } else { "peaks" };
            lines.push(format!("{what} at {}", place(at)));
        }
        let LowHigh { low, high } = document.range_bytes;
        let (low, high) = (Bytes(low).to_string(), Bytes(high).to_string());
        if low != high {
            lines.push(format!("may take between {low} and {high}"));
        }
    }
    if document.decision() == Decision::NoVerdict {
        lines.push(match document.withheld.as_slice() {
            [reason] if reason == "incomplete-history" => format!(
                "needs at least {}; record the history from the beginning of the job",
                Bytes(document.range_bytes.low)
            ),
            _ => "`xmem replay` shows what is wrong with the trace; record it again".to_owned(),
        });
    }
    for other in &document.elsewhere {
        let fits = if other.fits { "fits" } else { "does not certainly fit" };
        lines.push(format!("{fits} on {}, on which it may start too", other.device.name));
    }
    lines.extend(document.advice.iter().map(advice));
    let wants_advice = matches!(document.decision(), Decision::DoesNotFit);
    if wants_advice && !document.is_replayed() {
        if document.advice.is_empty() {
            lines.push("`xmem fit` tries changes to the job".to_owned());
        }
    } else if wants_advice && !document.advice.iter().any(|a| a.fits && a.change != "device") {
        lines.push("no change of settings that was replayed makes it fit; `xmem fit` tries changes to the job".to_owned());
    }
    if document.gpus > 1 {
        lines.push(format!("for each of {} GPUs", document.gpus));
    }
    if let Some(growth) = &document.baseline {
        if growth.is_new {
            lines.push("not in the baseline".to_owned());
        } else if growth.allocated_bytes.before != growth.allocated_bytes.now
            || growth.reserved_bytes.before != growth.reserved_bytes.now
        {
            let beyond = if growth.beyond_tolerance { "beyond" } else { "within" };
            lines.push(format!("{beyond} the tolerance of the baseline:"));
            lines.push(format!("  peak allocated {}", grown(growth.allocated_bytes)));
            lines.push(format!("  peak reserved {}", grown(growth.reserved_bytes)));
            let roles = growth.roles.iter().map(|r| (r.name.replace('_', " "), r.bytes));
            let modules = growth.modules.iter().map(|m| (module(&m.name).to_owned(), m.bytes));
            let most = roles.take(3).chain(modules.take(5));
            lines.extend(
                most.map(|(name, bytes)| format!("  {} {}", printable(&name), grown(bytes))),
            );
        }
    }
    lines
}
