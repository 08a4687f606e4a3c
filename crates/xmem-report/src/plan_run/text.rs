//! Runs that follow a plan.

use crate::style::{Ink, Style, keep_end, wrap};
use crate::table::{Align, Table};
use crate::words::counted;
use xmem_studies::planning::{Arena, FollowedAnswer, FollowedRequests, JobPlan};

/// The complete answer: the memory, and a row for each part of the run.
#[must_use]
pub fn plan_run(
    plan: &str,
    input: &str,
    followed: &JobPlan,
    answer: &FollowedAnswer,
    style: &Style,
) -> String {
    let lines = wrap(&headline(answer), style.columns());
    let heading: String =
        lines.iter().map(|line| format!("{}\n", style.paint(Ink::Heading, line))).collect();
    let about = format!("{input}, by the plan of {plan}");
    let about = keep_end(&about, style.columns().saturating_sub(2)).into_owned();
    let about = style.paint(Ink::Faint, &about);
    format!("{heading}  {about}\n\n{}\n{}", memory(followed, answer, style), runs(answer, style))
}

/// One line, for `--quiet`.
#[must_use]
pub fn plan_run_brief(input: &str, answer: &FollowedAnswer) -> String {
    format!("{}  {}\n", headline(answer), xmem::types::printable(input))
}

fn headline(answer: &FollowedAnswer) -> String {
    let FollowedRequests { requests, planned, .. } = answer.total;
    let replans = match answer.replans {
        0 => String::new(),
        replans => format!("; planned again {}", counted(replans, "time")),
    };
    format!(
        "{planned} of {} at their planned address: {} in place of {}{replans}",
        counted(requests, "request"),
        answer.peak,
        answer.alone,
    )
}

fn memory(followed: &JobPlan, answer: &FollowedAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[("memory", Left), ("size", Right)]);
    for (name, bytes) in [
        ("plan, what iterations make and free", followed.bytes(Arena::Iteration)),
        ("plan, what the job keeps", followed.bytes(Arena::Lasting)),
        ("plan, in pages of 2 MiB", answer.plan_peak),
        ("allocator, for the other requests", answer.allocator_peak),
        ("both at the peak", answer.peak),
        ("allocator alone", answer.alone),
    ] {
        table.row(vec![name.to_owned(), bytes.to_string()]);
    }
    table.render(style)
}

fn runs(answer: &FollowedAnswer, style: &Style) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("run", Left),
        ("requests", Right),
        ("at their address", Right),
        ("not planned", Right),
        ("not in the plan", Right),
        ("occupied", Right),
        ("other stream", Right),
        ("in a gap", Right),
    ]);
    for (at, run) in answer.runs.iter().enumerate() {
        let name = match (at, answer.runs.len()) {
            (_, 1) => "all".to_owned(),
            (0, _) => "to the end of iteration 0".to_owned(),
            _ => format!("iteration {at}"),
        };
        let FollowedRequests { requests, planned, outside, unknown, occupied, .. } = *run;
        let numbers = [requests, planned, outside, unknown, occupied, run.other_stream, run.fitted];
        let mut row = vec![name];
        row.extend(numbers.map(|number| number.to_string()));
        table.row(row);
    }
    table.render(style)
}
