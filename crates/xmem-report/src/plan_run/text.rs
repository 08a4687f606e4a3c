//! Runs that follow a plan.

use crate::style::{Ink, Style, keep_end, wrap};
use crate::table::{Align, Table};
use crate::words::counted;
use xmem_studies::planning::HintedAnswer;

/// The complete answer: the memory, and a row for each run.
#[must_use]
pub fn plan_run(plan: &str, input: &str, answer: &HintedAnswer, style: &Style) -> String {
    let followed = answer.runs.iter().filter(|run| run.followed.is_ok()).count();
    let headline = format!(
        "{} of {} follow the plan of {}; {}",
        followed,
        counted(answer.runs.len(), "run"),
        answer.planned,
        match answer.replans() {
            0 => "it is never made again".to_owned(),
            replans => format!("{} make it {}", counted(replans, "replan"), answer.planned_at_end),
        },
    );
    let lines = wrap(&headline, style.columns());
    let heading: String =
        lines.iter().map(|line| format!("{}\n", style.paint(Ink::Heading, line))).collect();
    let about = format!("{input}, by the plan of {plan}");
    let about = keep_end(&about, style.columns().saturating_sub(2)).into_owned();
    format!(
        "{heading}  {}\n\n{}{}",
        style.paint(Ink::Faint, &about),
        runs(answer, style),
        refused(answer, style)
    )
}

/// One line, for `--quiet`.
#[must_use]
pub fn plan_run_brief(input: &str, answer: &HintedAnswer) -> String {
    format!(
        "planned {}, at most {} with the allocator's part, {}  {}\n",
        answer.planned,
        answer.peak(),
        counted(answer.replans(), "replan"),
        xmem::types::printable(input),
    )
}

fn runs(answer: &HintedAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let is_interrupted = answer.runs.iter().any(|run| run.left_out > 0);
    let mut headings = vec![
        ("run", Left),
        ("requests", Right),
        ("at their address", Right),
        ("larger", Right),
        ("occupied", Right),
        ("plan", Right),
        ("+ allocator", Right),
        ("allocator alone", Right),
        ("replans", Right),
    ];
    if is_interrupted {
        headings.insert(2, ("left out", Right));
    }
    let mut table = Table::new(&headings);
    for (at, run) in answer.runs.iter().enumerate() {
        let name = match run.iteration {
            Some(iteration) => format!("iteration {}", iteration.0),
            None => (at + 1).to_string(),
        };
        let mut row = vec![name, run.requests.to_string()];
        row.extend(is_interrupted.then(|| run.left_out.to_string()));
        row.extend(match &run.followed {
            Ok(figures) => [
                figures.planned.to_string(),
                figures.larger.to_string(),
                figures.occupied.to_string(),
                figures.plan_bytes.to_string(),
                figures.allocator_bytes.to_string(),
                run.allocator_reserved.to_string(),
                figures.replans.to_string(),
            ],
            Err(_) => {
                let alone = run.allocator_reserved.to_string();
                let none = String::new;
                [none(), none(), none(), "not hot".to_owned(), none(), alone, none()]
            }
        });
        table.row(row);
    }
    table.render(style)
}

/// The reason why the first run that does not follow the plan does not.
fn refused(answer: &HintedAnswer, style: &Style) -> String {
    let Some(reason) = answer.runs.iter().find_map(|run| run.followed.as_ref().err()) else {
        return String::new();
    };
    let lines = wrap(&reason.to_string(), style.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}
