//! Plans beside allocators: what is gained, and by which planner.

use crate::chart::line;
use crate::fields::{Fields, fields};
use crate::findings::findings;
use crate::setup;
use crate::style::{Ink, Style, keep_end, wrap};
use crate::table::{Align, Table};
use crate::words::counted;
use std::time::Duration;
use xmem::Bytes;
use xmem::predict::Finding;
use xmem::types::Severity;
use xmem_studies::planner::{Planned, Proof};
use xmem_studies::planning::{
    AllocatorRun, FragmentationSeries, PlanAnswer, PlanSource, PlannerOutcome,
};

/// The option of PyTorch's allocator that costs nothing, and that the gain of a plan is compared with.
const EXPANDABLE: &str = "expandable_segments:True";

/// The complete answer: what is gained, the planners, the memory outside the plan, the breakdown and fragmentation.
#[must_use]
pub fn plan(input: &str, answer: &PlanAnswer, notes: &[Finding], style: &Style) -> String {
    let mut parts = vec![
        headline(input, answer, style),
        memory(answer, style),
        planners(answer, style),
        interrupted(answer, style),
        outside(answer, style),
        breakdown(answer, style),
        fragmentation(answer, style),
    ];
    let text = findings(notes, Severity::Warning, style);
    if !text.is_empty() {
        parts.push(format!("{}\n{text}", style.paint(Ink::Heading, "Notes")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// One line, for `--quiet`.
#[must_use]
pub fn plan_brief(input: &str, answer: &PlanAnswer) -> String {
    format!("{}  {}\n", gain(answer), xmem::types::printable(input))
}

/// The gain as a sentence: `PyTorch reserves 3.94 GiB for what fits in 2.57 GiB (planned, proven optimal)`.
fn gain(answer: &PlanAnswer) -> String {
    let name = allocator_name(&answer.pytorch);
    let (bound, reserved) = (answer.lower_bound(), answer.pytorch.reserved);
    let Some(best) = answer.best() else {
        return format!("{name} reserves {reserved} for blocks of which {bound} are live at once");
    };
    if let Some(gain) = gain_of_a_part(answer, best) {
        return gain;
    }
    let (fits, how) = match (best.proof, best.plan.peak() == bound) {
        (Some(_), true) => (bound, "planned, proven optimal".to_owned()),
        (Some(_), false) => {
            (best.plan.peak(), format!("planned, proven optimal; {bound} are live at once"))
        }
        (None, _) => {
            let above = 100.0 * (best.ratio() - 1.0);
            (best.plan.peak(), format!("planned, at most {above:.2} % above the optimum"))
        }
    };
    match answer.pytorch.refused {
        0 if reserved < fits => {
            format!("{name} reserves {reserved}, and the best plan found needs {fits} ({how})")
        }
        0 => {
            let better = answer.expandable.as_ref().filter(|run| run.reserved < reserved);
            let better = better
                .map_or_else(String::new, |run| format!(" ({} with {EXPANDABLE})", run.reserved));
            format!("{name} reserves {reserved}{better} for what fits in {fits} ({how})")
        }
        refused => format!(
            "{name} does not serve {} larger than any device; a plan needs {fits} ({how})",
            counted(refused, "block")
        ),
    }
}

/// The same where the plan is interrupted: a part of the blocks is the allocator's.
fn gain_of_a_part(answer: &PlanAnswer, best: &Planned) -> Option<String> {
    let run = answer.interrupted.as_ref()?;
    let name = allocator_name(&answer.pytorch);
    let (all, peak, left_out) = (run.all_reserved, best.plan.peak(), run.reserved);
    let together = answer.with_interrupted()?;
    Some(format!(
        "{name} reserves {all}; with the plan it is {together}, {peak} planned and {left_out} reserved for {} left out",
        counted(run.blocks, "block")
    ))
}

fn headline(input: &str, answer: &PlanAnswer, style: &Style) -> String {
    let blocks = &answer.blocks;
    let count = match &answer.interrupted {
        None => counted(blocks.list.len(), "block"),
        Some(run) => format!("{} of {}", blocks.list.len(), counted(run.all_blocks, "block")),
    };
    let about = match blocks.source {
        PlanSource::Iteration { iteration, of } => {
            let iteration = iteration.0;
            format!(", iteration {iteration} ({of} recorded): {count}")
        }
        PlanSource::Recording => {
            format!(", all of the recording: {count}")
        }
        PlanSource::Operations | PlanSource::Table => {
            format!(": {count}")
        }
    };
    let width = style.columns().saturating_sub(2 + about.chars().count());
    let lines = wrap(&gain(answer), style.columns());
    let heading: String =
        lines.iter().map(|line| format!("{}\n", style.paint(Ink::Heading, line))).collect();
    let mut page =
        format!("{heading}  {}{about}\n", style.paint(Ink::Faint, &keep_end(input, width)));
    if let Some(setup) = &blocks.setup {
        page += &setup::lines(setup, "input", style);
    }
    page
}

fn memory(answer: &PlanAnswer, style: &Style) -> String {
    let bound = answer.lower_bound();
    let mut rows: Vec<(String, Bytes, String)> =
        vec![("live at once (lower bound)".to_owned(), bound, String::new())];
    if let Some(best) = answer.best() {
        let peak = best.plan.peak();
        rows.push((format!("planned by {}", best.planner), peak, above(peak, bound)));
    }
    for run in [&answer.pytorch, &answer.tensorflow] {
        let text = above(run.reserved, bound);
        rows.push((format!("{}, reserved", allocator_name(run)), run.reserved, text));
        if run.allocated > bound {
            let text = above(run.allocated, bound);
            rows.push((format!("{}, allocated", allocator_name(run)), run.allocated, text));
        }
    }
    if let Some(run) = &answer.expandable {
        rows.push((format!("PyTorch, {EXPANDABLE}"), run.reserved, above(run.reserved, bound)));
    }
    let total = answer.blocks.list.total();
    rows.push(("without reuse".to_owned(), total, above(total, bound)));
    let mut page = format!("{}\n", style.paint(Ink::Heading, "Memory of these blocks"));
    for (label, bytes, text) in rows {
        let line = format!("  {label:<36} {bytes:>11}  {text}", bytes = bytes.to_string());
        page += &format!("{}\n", line.trim_end());
    }
    page
}

/// `+ 53.3 %`, or nothing for the bound itself.
fn above(bytes: Bytes, bound: Bytes) -> String {
    if bytes == bound || bound == Bytes::ZERO {
        return String::new();
    }
    let ratio = bytes.get() as f64 / bound.get() as f64;
    match ratio {
        10.0.. => format!("{ratio:.1} times as much"),
        2.0.. => format!("{ratio:.2} times as much"),
        _ => format!("{:+.2} %", 100.0 * (ratio - 1.0)),
    }
}

/// The name of an allocator in sentences.
fn allocator_name(run: &AllocatorRun) -> &'static str {
    use xmem::predict::AllocatorKind;
    match run.kind {
        AllocatorKind::Native => "PyTorch",
        AllocatorKind::Uncached => "PyTorch without caching",
        AllocatorKind::MallocAsync => "PyTorch with cudaMallocAsync",
        AllocatorKind::Bfc => "TensorFlow's BFC",
        AllocatorKind::BfcGrowth => "TensorFlow's BFC (growth)",
    }
}

fn planners(answer: &PlanAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("planner", Left),
        ("peak", Right),
        ("of bound", Right),
        ("optimal", Left),
        ("time", Right),
        ("nodes", Right),
    ]);
    let mut refused = String::new();
    for PlannerOutcome { planner, result } in &answer.planners {
        match result {
            Ok(planned) => table.row(row(planned)),
            Err(reason) => {
                table.row([planner.to_string(), "refused".to_owned()].into_iter().chain(blank(4)));
                for (i, line) in
                    wrap(&reason.to_string(), style.columns().saturating_sub(4)).iter().enumerate()
                {
                    refused += &format!("{}{line}\n", if i == 0 { "  " } else { "    " });
                }
            }
        }
    }
    format!("{}\n{}{refused}", style.paint(Ink::Heading, "Planners"), table.render(style))
}

fn blank(cells: usize) -> impl Iterator<Item = String> {
    std::iter::repeat_n(String::new(), cells)
}

fn row(planned: &Planned) -> [String; 6] {
    let nodes = match planned.nodes {
        0 => String::new(),
        nodes => nodes.to_string(),
    };
    [
        planned.planner.to_string(),
        planned.plan.peak().to_string(),
        // Rounded up: 1.0000 is said of the bound alone.
        format!("{:.4}", (1e4 * planned.ratio()).ceil() / 1e4),
        proof(planned.proof).to_owned(),
        time(planned.time),
        nodes,
    ]
}

fn proof(proof: Option<Proof>) -> &'static str {
    match proof {
        Some(Proof::LowerBound) => "yes: the bound",
        Some(Proof::Search) => "yes: searched",
        None => "not shown",
    }
}

/// A time in the unit that it is of the order of.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        1.0.. => format!("{seconds:.2} s"),
        0.001.. => format!("{:.1} ms", 1e3 * seconds),
        _ => format!("{:.0} µs", 1e6 * seconds),
    }
}

fn interrupted(answer: &PlanAnswer, style: &Style) -> String {
    let Some(run) = &answer.interrupted else { return String::new() };
    let by: Vec<String> = run.by.iter().map(ToString::to_string).collect();
    let name = allocator_name(&answer.pytorch);
    let (blocks, live) = (counted(run.blocks, "block"), run.live);
    let mut lines: Fields = vec![
        ("left out by", xmem::types::printable(&by.join(", ")).into_owned()),
        ("left out", format!("{blocks}, {live} live at once; {name} reserves {}", run.reserved)),
    ];
    if let Some(together) = answer.with_interrupted() {
        lines.push(("with the plan", together.to_string()));
    }
    let (all, reserved) = (counted(run.all_blocks, "block"), run.all_reserved);
    lines.push((
        "all blocks",
        format!("{all}, {} live at once; {name} reserves {reserved}", run.all_live),
    ));
    format!("{}\n{}", style.paint(Ink::Heading, "Interrupted"), fields(lines, style))
}

fn outside(answer: &PlanAnswer, style: &Style) -> String {
    let Some(outside) = &answer.blocks.outside else { return String::new() };
    let shares = outside.by_role.iter();
    let shares: Vec<String> = shares
        .map(|share| format!("{} {}", share.role.name().replace('_', " "), share.bytes))
        .collect();
    let mut lines: Fields =
        vec![("outlives it", format!("{}: {}", outside.bytes, shares.join(", ")))];
    if outside.by_role.is_empty() {
        lines = vec![("outlives it", "nothing".to_owned())];
    }
    lines.push(("with the blocks", format!("{} live at once", outside.together)));
    if let Some(job) = answer.blocks.job {
        lines
            .push(("whole job", format!("{} allocated, {} reserved", job.allocated, job.reserved)));
    }
    format!("{}\n{}", style.paint(Ink::Heading, "Outside the plan"), fields(lines, style))
}

fn breakdown(answer: &PlanAnswer, style: &Style) -> String {
    let Some(breakdown) = &answer.blocks.breakdown else { return String::new() };
    let mut table =
        Table::new(&[("category", Align::Left), ("size", Align::Right), ("", Align::Left)]);
    for share in &breakdown.shares {
        let note = if share.category.is_of_dnnmem() { "" } else { "no counterpart in DNNMem" };
        let name = share.category.name().replace('_', " ");
        table.row([name, share.bytes.to_string(), note.to_owned()]);
    }
    table.row(["all".to_owned(), breakdown.total().to_string(), String::new()]);
    let mut of_dnnmem = |name: &str, bytes: Bytes, note: &str| {
        table.row([name.to_owned(), bytes.to_string(), note.to_owned()]);
    };
    if let Some(estimate) = &answer.dnnmem {
        let note = "its estimate: one pass without optimizer state, the job's allocator";
        of_dnnmem("DNNMem", estimate.with_job_allocator, note);
        of_dnnmem("", estimate.with_bfc, "the same with TensorFlow's BFC (growth)");
    }
    let inferred = breakdown.shape_inference;
    let note = "its baseline: weights, input, outputs that backward needs";
    of_dnnmem("shape inference", inferred.saved_outputs, note);
    of_dnnmem("", inferred.all_outputs, "the same with all outputs of forward");
    let heading = style.paint(Ink::Heading, "The job at its peak, by DNNMem's categories");
    format!("{heading}\n{}", table.render(style))
}

fn fragmentation(answer: &PlanAnswer, style: &Style) -> String {
    let bound = answer.lower_bound();
    if bound == Bytes::ZERO {
        return String::new();
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("external", Align::Right),
        ("waste", Align::Right),
        ("request that raised the peak", Align::Right),
        ("free then", Align::Right),
        ("unusable", Align::Right),
    ]);
    let best = answer.best().zip(answer.fragmentation.as_ref());
    if let Some((best, series)) = best {
        table.row(fragmentation_row("planned", best.plan.peak(), bound, series));
    }
    for run in [&answer.pytorch, &answer.tensorflow] {
        let series = &run.fragmentation;
        table.row(fragmentation_row(allocator_name(run), run.reserved, bound, series));
    }
    format!(
        "{}\n{}{}",
        style.paint(Ink::Heading, "Fragmentation"),
        table.render(style),
        unusable_over_time(answer, style)
    )
}

/// The columns of a line over time.
const SPANS: usize = 16;

/// The classes of requests from one row to the next: each 16 times as large.
const CLASSES: usize = 4;

/// The share of unusable memory that is shown as 0 %.
const LEAST: f64 = 0.005;

/// The unusable free memory by size of request and over time, without requests that can always use all of it.
fn unusable_over_time(answer: &PlanAnswer, style: &Style) -> String {
    let mut placements: Vec<(&'static str, &FragmentationSeries)> = Vec::new();
    placements.extend(answer.fragmentation.as_ref().map(|series| ("planned", series)));
    for run in [&answer.pytorch, &answer.tensorflow] {
        placements.push((allocator_name(run), &run.fragmentation));
    }
    let names = placements.iter().map(|&(name, _)| (name, Align::Left));
    let columns: Vec<(&'static str, Align)> =
        [("request", Align::Right)].into_iter().chain(names).collect();
    let (mut table, mut is_empty) = (Table::new(&columns), true);
    for class in FragmentationSeries::classes(&answer.blocks).step_by(CLASSES) {
        let request = Bytes(1 << class);
        let averages: Vec<f64> =
            placements.iter().map(|(_, series)| series.average_for(request)).collect();
        if averages.iter().all(|&average| average < LEAST) {
            continue;
        }
        is_empty = false;
        let cells = placements.iter().zip(averages).map(|((_, series), average)| {
            let line = line(&series.over_time(SPANS, |free| free.unusable(request)));
            format!("{:3.0} % {line}", 100.0 * average)
        });
        table.row([request.to_string()].into_iter().chain(cells));
    }
    if is_empty {
        return String::new();
    }
    let heading = "unusable free memory by size of request: on average, and from the first to the last request";
    let lines: String = wrap(heading, style.columns().saturating_sub(2))
        .iter()
        .map(|line| format!("  {}\n", style.paint(Ink::Faint, line)))
        .collect();
    format!("\n{lines}{}", table.render(style))
}

fn fragmentation_row(
    name: &str,
    peak: Bytes,
    bound: Bytes,
    series: &FragmentationSeries,
) -> [String; 6] {
    let external = peak.get() as f64 / bound.get() as f64 - 1.0;
    let at_peak = series.at_peak.as_ref();
    let of_peak = |text: &dyn Fn(&xmem_studies::planning::PeakRequest) -> String| {
        at_peak.map(text).unwrap_or_default()
    };
    [
        name.to_owned(),
        format!("{:.2} %", 100.0 * external),
        series.largest_waste().to_string(),
        of_peak(&|peak| peak.size.to_string()),
        of_peak(&|peak| peak.free.total().to_string()),
        of_peak(&|peak| format!("{:.0} %", 100.0 * peak.free.unusable(peak.size))),
    ]
}
