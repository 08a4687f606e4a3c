//! Offloading policies side by side: what each saves, and what it costs.

use crate::findings::findings;
use crate::style::{Ink, Style, keep_end, wrap};
use crate::table::{Align, Table};
use xmem::Bytes;
use xmem::predict::Finding;
use xmem::types::{Nanos, Severity};
use xmem_studies::offload::{Duplex, GradientRule, Moves, WorkspaceRule};
use xmem_studies::offloading::{LayerOrder, OffloadAnswer, OffloadRow, PolicyChoice};

/// The complete answer: what offloading buys, the table, the graph and the model.
#[must_use]
pub fn offload(input: &str, answer: &OffloadAnswer, notes: &[Finding], style: &Style) -> String {
    let mut parts =
        vec![headline(input, answer, style), table(answer, style), jitter(answer, style)];
    parts.push(graph(answer, style));
    parts.push(model(answer, style));
    let text = findings(notes, Severity::Warning, style);
    if !text.is_empty() {
        parts.push(format!("{}\n{text}", style.paint(Ink::Heading, "Notes")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// One line, for `--quiet`.
#[must_use]
pub fn offload_brief(input: &str, answer: &OffloadAnswer) -> String {
    let first = gains(answer).into_iter().next().unwrap_or_default();
    format!("{first}  {}\n", xmem::types::printable(input))
}

/// What the policies buy, as sentences.
fn gains(answer: &OffloadAnswer) -> Vec<String> {
    if let Some(capacity) = answer.capacity.filter(|_| answer.rows.iter().any(fails_without)) {
        return vec![limited(answer, capacity)];
    }
    let saves = |row: &&OffloadRow| {
        let before = answer.baseline(row).map_or(Bytes::ZERO, |none| none.peak);
        row.out_of_memory.is_none() && !is_none(row) && row.peak < before
    };
    let saving = || answer.rows.iter().filter(saves);
    let Some(least) = saving().min_by_key(|row| (row.peak, row.step_time)) else {
        return vec!["No policy saves memory".to_owned()];
    };
    let mut sentences = vec![gain(answer, least)];
    let fastest = saving().min_by_key(|row| (row.step_time, row.peak));
    if let Some(fastest) = fastest.filter(|fastest| fastest.step_time < least.step_time) {
        sentences.push(gain(answer, fastest));
    }
    sentences
}

/// True if the step does not run without a policy.
fn fails_without(row: &OffloadRow) -> bool {
    is_none(row) && row.out_of_memory.is_some()
}

/// `dymem (gtbm) runs in 2.00 GiB, where without offloading memory runs out, and takes 835.0 ms`.
fn limited(answer: &OffloadAnswer, capacity: Bytes) -> String {
    let runs = |row: &&OffloadRow| {
        let was_short = answer.baseline(row).is_some_and(fails_without);
        was_short && row.out_of_memory.is_none() && row.peak <= capacity
    };
    match answer.rows.iter().filter(runs).min_by_key(|row| (row.step_time, row.peak)) {
        Some(row) => format!(
            "{} ({}) runs in {capacity}, where without offloading memory runs out, and takes {}",
            row.policy,
            row.placement,
            milliseconds(row.step_time)
        ),
        None => format!(
            "Without offloading, {capacity} are too little, and no policy runs in them: --min-capacity shows what each needs"
        ),
    }
}

/// `dymem (gtbm) needs 102 MiB instead of 189 MiB (-46 %), and takes 2.08 times as long`.
fn gain(answer: &OffloadAnswer, row: &OffloadRow) -> String {
    let none = answer.baseline(row).expect("`none` is in every answer");
    let percent = 100.0 * (row.peak.get() as f64 / none.peak.get().max(1) as f64 - 1.0);
    let time = times(row, none);
    format!(
        "{} ({}) needs {} instead of {} ({percent:+.0} %), and takes {time} as long",
        row.policy, row.placement, row.peak, none.peak
    )
}

fn times(row: &OffloadRow, none: &OffloadRow) -> String {
    let ratio = row.step_time.get() as f64 / none.step_time.get().max(1) as f64;
    format!("{ratio:.2} times")
}

fn is_none(row: &OffloadRow) -> bool {
    row.policy == PolicyChoice::Fixed(xmem_studies::offload::Policy::None)
}

fn headline(input: &str, answer: &OffloadAnswer, style: &Style) -> String {
    let mut page = String::new();
    for sentence in gains(answer) {
        for line in wrap(&sentence, style.columns()) {
            page += &format!("{}\n", style.paint(Ink::Heading, &line));
        }
    }
    let about = format!(
        ", iteration {} on {}: a model, not a measurement",
        answer.step.iteration.0, answer.device.name
    );
    let width = style.columns().saturating_sub(2 + about.chars().count());
    page + &format!("  {}{about}\n", style.paint(Ink::Faint, &keep_end(input, width)))
}

fn table(answer: &OffloadAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("policy", Left),
        ("placement", Left),
        ("step", Right),
        ("times", Right),
        ("overlap", Right),
        ("waits", Right),
        ("to host", Right),
        ("live", Right),
        ("memory", Right),
        ("runs in", Right),
        ("", Left),
    ]);
    let mut remarks = String::new();
    for row in &answer.rows {
        let none = answer.baseline(row).filter(|none| none.out_of_memory.is_none());
        let failed = row.out_of_memory.is_some();
        let unless = |text: String| if failed { String::new() } else { text };
        table.row([
            row.policy.to_string(),
            row.placement.to_string(),
            unless(milliseconds(row.step_time)),
            unless(none.map_or_else(String::new, |none| {
                format!("{:.2}", row.step_time.get() as f64 / none.step_time.get().max(1) as f64)
            })),
            unless(overlap(row)),
            unless(milliseconds_or_blank(row.exposed())),
            unless(bytes_or_blank(row.to_host)),
            row.live.to_string(),
            row.peak.to_string(),
            row.smallest.map_or_else(String::new, |bytes| bytes.to_string()),
            if failed { "out of memory".to_owned() } else { String::new() },
        ]);
        remarks += &remark(answer, row, style);
    }
    remarks += &idle(answer, style);
    let explanation = "times: step time in units of `none`; overlap: share of copying under computation; waits: copying \
                       that nothing hides; live: the most bytes at once, which no placement can beat; memory: what the \
                       placement needs";
    let explanation: String = wrap(explanation, style.columns().saturating_sub(2))
        .iter()
        .map(|line| format!("  {}\n", style.paint(Ink::Faint, line)))
        .collect();
    let heading = match answer.capacity {
        Some(capacity) => format!("Policies in {capacity}"),
        None => "Policies".to_owned(),
    };
    let heading = match answer.workspaces {
        WorkspaceRule::Recorded => heading,
        WorkspaceRule::Without => format!("{heading}, convolutions without workspaces"),
        WorkspaceRule::AtMost(size) => format!("{heading}, workspaces of at most {size}"),
        WorkspaceRule::Grow => format!("{heading}, workspaces as far as they fit"),
    };
    let heading = match answer.gradients {
        GradientRule::Recorded => heading,
        GradientRule::Preallocated => format!("{heading}, gradients preallocated"),
    };
    let heading = match answer.moves {
        Moves::Same => heading,
        Moves::Paper => format!("{heading}, layers as in the papers"),
    };
    format!(
        "{}\n{}{remarks}{explanation}",
        style.paint(Ink::Heading, &heading),
        table.render(style)
    )
}

/// What a row does not say in its cells.
fn remark(answer: &OffloadAnswer, row: &OffloadRow, style: &Style) -> String {
    let mut remarks: Vec<String> = Vec::new();
    if let Some(chosen) = &row.chosen {
        remarks.push(format!("is {}{}", chosen.policy, workspaces(row)));
    } else if answer.workspaces == WorkspaceRule::Grow
        && row.out_of_memory.is_none()
        && !workspaces(row).is_empty()
    {
        remarks.push(format!("runs{}", workspaces(row)));
    }
    if row.recomputed > Nanos::ZERO {
        remarks.push(format!("computes again for {}", milliseconds(row.recomputed)));
    }
    if row.on_host > Bytes::ZERO || row.host_computes > Nanos::ZERO {
        remarks.push(format!(
            "keeps {} of the optimizer's state on the host, which computes for {}",
            row.on_host,
            milliseconds(row.host_computes)
        ));
    }
    if let Some(waiting) = row.waiting.filter(|waiting| waiting.most > waiting.budget) {
        remarks.push(format!(
            "leaves {} of saved tensors on the device, more than its budget of {}: what is left cannot be \
             computed again, or takes as much memory then",
            waiting.most, waiting.budget
        ));
    }
    if let Some(pool) = row.pool.filter(|_| row.jittered.is_some()) {
        remarks.push(format!("takes a pool of {pool} with a margin of {}", OffloadRow::MARGIN));
    }
    if row.blocked > Nanos::ZERO {
        remarks.push(format!("waits for memory for {}", milliseconds(row.blocked)));
    }
    if row.out_of_memory.is_none() && answer.capacity.is_some_and(|capacity| row.peak > capacity) {
        remarks.push("does not fit: the plan needs more than what is live".to_owned());
    }
    if let Some(failed) = row.out_of_memory {
        let layer = answer.layer_at(failed.step).map_or_else(
            || format!("step {}", failed.step.0),
            |layer| format!("step {} ({layer})", failed.step.0),
        );
        remarks.push(format!(
            "runs out of memory in {layer}: {} more than the {} that are live",
            failed.size, failed.live
        ));
    }
    let text = remarks.into_iter().map(|text| format!("{} ({}) {text}", row.policy, row.placement));
    text.flat_map(|text| {
        let lines = wrap(&text, style.columns().saturating_sub(4));
        lines.into_iter().enumerate().collect::<Vec<_>>()
    })
    .map(|(at, line)| format!("{}{line}\n", if at == 0 { "  " } else { "    " }))
    .collect()
}

/// The policies that find nothing to move, with what they look for.
fn idle(answer: &OffloadAnswer, style: &Style) -> String {
    let moves_nothing = |row: &&OffloadRow| {
        row.to_host == Bytes::ZERO && row.chosen.is_none() && row.out_of_memory.is_none()
    };
    let is_for_convolutions = |row: &&OffloadRow| {
        use xmem_studies::offload::Policy::{SuperNeurons, VdnnAll, VdnnConv};
        matches!(row.policy, PolicyChoice::Fixed(VdnnAll(_) | VdnnConv | SuperNeurons(_)))
    };
    let mut names: Vec<&str> = answer
        .rows
        .iter()
        .filter(is_for_convolutions)
        .filter(moves_nothing)
        .map(|row| row.policy.name())
        .collect();
    names.dedup();
    if names.is_empty() || answer.capacity.is_some() {
        return String::new();
    }
    let verb = if names.len() == 1 { "moves" } else { "move" };
    let layers = match (answer.moves, names[..] == ["vdnn-conv"]) {
        (_, true) | (Moves::Paper, _) => "convolutions and pooling layers",
        (Moves::Same, false) => {
            "convolutions, pooling, activation, normalization, attention and MLP"
        }
    };
    let text =
        format!("{} {verb} nothing here: only inputs of {layers} would be moved", names.join(", "));
    let lines = wrap(&text, style.columns().saturating_sub(4));
    lines
        .iter()
        .enumerate()
        .map(|(at, line)| format!("{}{line}\n", if at == 0 { "  " } else { "    " }))
        .collect()
}

/// What became of the workspaces, if they are not as recorded.
fn workspaces(row: &OffloadRow) -> String {
    let counts = row.workspaces;
    let all = counts.whole + counts.smaller + counts.without;
    let passes = counted(all, "pass", "passes");
    match (counts.smaller, counts.without) {
        (0, 0) => String::new(),
        (0, without) if without == all => " without workspaces of convolutions".to_owned(),
        (0, without) => format!(" without the workspaces of {without} of {passes} of convolutions"),
        (smaller, _) => format!(
            " with workspaces of at most {}, less than {smaller} of {passes} of convolutions have",
            counts.largest
        ),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Steps with other sizes.
fn jitter(answer: &OffloadAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let Some(jitter) = answer.jitter else { return String::new() };
    let mut headings = vec![
        ("policy", Left),
        ("placement", Left),
        ("memory", Right),
        ("median", Right),
        ("most", Right),
        ("no margin", Right),
        ("100 MiB", Right),
        ("300 MiB", Right),
        ("500 MiB", Right),
    ];
    headings.extend(answer.capacity.map(|_| ("out of memory", Right)));
    let mut table = Table::new(&headings);
    let share = |runs: usize| format!("{:.0} %", 100.0 * runs as f64 / jitter.runs.max(1) as f64);
    for row in &answer.rows {
        let Some(jittered) = &row.jittered else { continue };
        let mut cells = vec![
            row.policy.to_string(),
            row.placement.to_string(),
            row.peak.to_string(),
            jittered.median().to_string(),
            jittered.most().to_string(),
        ];
        let margins = OffloadRow::MARGINS;
        cells.extend(margins.map(|margin| share(jittered.failures(row.peak + margin))));
        cells.extend(answer.capacity.map(|_| share(jittered.out_of_memory)));
        table.row(cells);
    }
    let heading = format!(
        "Steps whose sizes differ by up to {} %, {} of them",
        100.0 * jitter.share,
        jitter.runs
    );
    let explanation = "the share of them that needs more than the memory above with this margin";
    format!(
        "{}\n{}  {}\n",
        style.paint(Ink::Heading, &heading),
        table.render(style),
        style.paint(Ink::Faint, explanation)
    )
}

fn overlap(row: &OffloadRow) -> String {
    match row.copying {
        Nanos::ZERO => String::new(),
        copying => {
            format!("{:.0} %", 100.0 * row.overlapped.get() as f64 / copying.get() as f64)
        }
    }
}

fn graph(answer: &OffloadAnswer, style: &Style) -> String {
    let (layers, matches) = (&answer.layers, answer.step.matches);
    let kinds: Vec<String> =
        layers.by_kind.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let order = match answer.order {
        LayerOrder::Trace => "",
        LayerOrder::DepthFirst => ", in depth-first order, which is hypothetical",
        LayerOrder::ReferenceCount => {
            ", in depth-first order by reference count, which is hypothetical"
        }
    };
    let known = match matches.kept {
        Bytes::ZERO => 100.0,
        kept => 100.0 * matches.explained.get() as f64 / kept.get() as f64,
    };
    let mut lines = vec![
        format!("layers: {}{order}", kinds.join(", ")),
        format!(
            "{} blocks with several readers, {} layers with several inputs",
            layers.forks, layers.joins
        ),
        format!(
            "tensors found by size, shape and gradients: {} for certain, {} likely, {} not",
            matches.certain, matches.likely, matches.missing
        ),
        format!(
            "kept for the backward pass: {}, of which the uses are known of {known:.1} %",
            matches.kept
        ),
    ];
    if answer.rows.iter().any(|row| row.waiting.is_some()) {
        lines.push(format!(
            "saved tensors that wait for the backward pass: {}, of which a budget of {} stays",
            answer.step.graph.saved(),
            answer.budget
        ));
    }
    section("Graph", &lines, style)
}

fn model(answer: &OffloadAnswer, style: &Style) -> String {
    let mut lines = answer.parameters();
    lines.retain(|line| !line.starts_with("host to device") && !line.contains("network"));
    let streams = match answer.link.duplex {
        Duplex::Half => "one stream for both directions",
        Duplex::Full => "a stream for each direction",
    };
    lines.push(format!(
        "copies: {:.1} GB/s, latency {}, {streams}",
        answer.link.bandwidth.get() as f64 / 1e9,
        answer.link.latency
    ));
    section("Model", &lines, style)
}

fn section(heading: &str, lines: &[String], style: &Style) -> String {
    let mut page = format!("{}\n", style.paint(Ink::Heading, heading));
    for text in lines {
        for (at, line) in wrap(text, style.columns().saturating_sub(4)).iter().enumerate() {
            page += &format!("{}{line}\n", if at == 0 { "  " } else { "    " });
        }
    }
    page
}

fn milliseconds(time: Nanos) -> String {
    format!("{:.1} ms", time.get() as f64 / 1e6)
}

fn milliseconds_or_blank(time: Nanos) -> String {
    if time == Nanos::ZERO { String::new() } else { milliseconds(time) }
}

fn bytes_or_blank(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO { String::new() } else { bytes.to_string() }
}
