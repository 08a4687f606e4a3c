//! The answer for a job of which several ranks were recorded.

use crate::style::{Ink, Style, wrap};
use crate::words::{confidence_in, verdict};
use xmem::types::printable;
use xmem::{Device, Verdict};
use xmem_studies::ranks::{JobRanks, RankAnswer, SeveralJobs};

/// The answer for a job on one device: its worst rank, the figures of each group of equal ranks, and the ranks that
/// were not recorded.
#[must_use]
pub fn ranks(device: &Device, job: &JobRanks, style: &Style) -> String {
    let worst = job.worst();
    let mut page = format!(
        "{}{}  on {} each, a job of {} ranks\n",
        verdict(job.verdict(), worst.figures.confidence, style),
        doubt(job, style),
        style.paint(Ink::Heading, &device.name),
        job.world_size,
    );
    let groups = job.groups();
    let width = style.columns().saturating_sub(4);
    let mut text = |indent: &str, line: String| {
        for part in wrap(&line, width) {
            page += &format!("{indent}{part}\n");
        }
    };
    let figures = &worst.figures;
    let needs = format!(
        "{} in nvidia-smi, {} reserved, {} allocated",
        figures.device, figures.reserved, figures.allocated,
    );
    let (low, high) = job.spread(|figures| figures.reserved);
    match (job.verdict(), groups.len()) {
        (Verdict::Withheld, _) => {}
        (_, 1) => text("  ", format!("all recorded ranks need the same: {needs}")),
        _ => {
            text("  ", format!("rank {} needs most: {needs}", worst.number()));
            let spread = high.saturating_sub(low);
            text("  ", format!("peak reserved differs by {spread} among the recorded ranks:"));
        }
    }
    if groups.len() > 1 {
        groups.iter().for_each(|group| text("    ", of_group(group)));
    }
    if !job.missing.is_empty() {
        let missing = named(&job.missing);
        text("  ", format!("not recorded: {missing}; what they need is not in this answer"));
    }
    page
}

/// The reason why there is no answer for a job, and what to do.
#[must_use]
pub fn several_jobs(reason: &SeveralJobs) -> String {
    let advice = match reason {
        SeveralJobs::Twice { .. } => {
            "give one recording of each rank, or the same ranks of each variant"
        }
        _ => "give the recordings of one job",
    };
    format!("note: no answer for a whole job: {}; {advice}", printable(&reason.to_string()))
}

/// The confidence in the verdict, if it is not the usual one.
fn doubt(job: &JobRanks, style: &Style) -> String {
    let figures = &job.worst().figures;
    match confidence_in(figures.verdict, figures.confidence) {
        "" => String::new(),
        word => format!("  {}", style.paint(Ink::Warning, &format!("({word})"))),
    }
}

fn of_group(group: &[&RankAnswer]) -> String {
    let figures = &group[0].figures;
    let all: Vec<u32> = group.iter().map(|rank| rank.number()).collect();
    let needs = match figures.verdict {
        Verdict::Withheld => "no verdict".to_owned(),
        _ => format!("{} in nvidia-smi, {} reserved", figures.device, figures.reserved),
    };
    format!("{}: {needs}", numbers(&all))
}

/// The names of ranks in order.
pub(crate) fn numbers(ranks: &[u32]) -> String {
    let runs = ranks.chunk_by(|one, next| one + 1 == *next);
    let ends = |run: &[u32]| Some((*run.first()?, *run.last()?));
    named(&runs.filter_map(ends).collect::<Vec<_>>())
}

/// `rank 3`, `ranks 0, 2–5`: each run by its first and its last rank.
fn named(runs: &[(u32, u32)]) -> String {
    let run = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    };
    let is_one = matches!(runs, [(first, last)] if first == last);
    let word = if is_one { "rank" } else { "ranks" };
    format!("{word} {}", runs.iter().map(run).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn ranks_in_a_row_are_a_range() {
        for (ranks, expected) in [
            (&[3][..], "rank 3"),
            (&[3, 4], "ranks 3, 4"),
            (&[0, 2, 3, 4, 5, 7], "ranks 0, 2–5, 7"),
        ] {
            assert_eq!(numbers(ranks), expected);
        }
    }
}
