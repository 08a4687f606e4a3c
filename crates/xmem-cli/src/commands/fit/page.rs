//! The report page of the job as it is, with what makes it fit.

use crate::allocator::{self, AllocatorArgs};
use crate::commands::report::what_ifs::{self, WhatIfs};
use crate::error::CliError;
use crate::global::Global;
use crate::terminal::{note, shown};
use crate::{estimate, output, pool};
use std::path::Path;
use xmem::predict::{SnapshotEnd, Timeline};
use xmem::types::printable;
use xmem::{Answer, Device, Estimate, EstimateBuilder, Job, ReadOptions};
use xmem_report::json::{self, ReplayDocument, Rules};
use xmem_studies::fit::FitAnswer;
use xmem_view::{PageFit, PageRun, page};

/// Cards whose memory is drawn beside that of the device, where it is near what the job needs and the site's are not known: one for
/// each common size.
const COMMON: [&str; 10] = [
    "rtx4060-8g",
    "rtx3060-12g",
    "t4-16g",
    "rtx4090-24g",
    "rtx5090-32g",
    "a100-40g",
    "l40s-48g",
    "h100-80g",
    "h200-141g",
    "b200-180g",
];

/// What the page shows of the job as it is.
struct Base {
    answer: Answer,
    timeline: Timeline,
    what_ifs: WhatIfs,
}

/// Writes the page. `recording` is that of the job as it is, `devices` are those of the command, the answer's first, and `site` has
/// those of the site, if they are known.
pub(super) fn write(
    file: &Path,
    answer: &FitAnswer,
    recording: &Path,
    (devices, site): (&[&Device], &[&Device]),
    global: &Global,
) -> Result<(), CliError> {
    let base = pool::run(None, |_| base(recording, devices[0], &answer.command))?;
    let name = printable(&answer.command);
    let options = format!("--device {}", answer.device.name);
    let replayed = json::line(&ReplayDocument::new(&name, &options, &base.answer, Rules::Explain));
    let devices = beside(devices, site);
    let run = PageRun {
        name: &name,
        timeline: &base.timeline,
        answer: &replayed,
        what_ifs: &base.what_ifs.tried,
        smallest: base.what_ifs.smallest,
        plan: None,
        offload: None,
        fit: Some(PageFit { answer, devices: &devices }),
    };
    output::bytes(Some(file), |out| Ok(page(out, &name, &[run])?))?;
    let text = format!("{} shows the job as it is, and under Fit what was found", shown(file));
    note(&text, global.verbosity());
    Ok(())
}

/// The devices that are drawn beside the first of the command: its others, and those of the site, else common ones.
fn beside<'d>(named: &[&'d Device], site: &[&'d Device]) -> Vec<&'d Device> {
    let others = named[1..].iter().copied();
    match site {
        [] => others.chain(common()).collect(),
        _ => others.chain(site.iter().copied()).collect(),
    }
}

fn common<'d>() -> impl Iterator<Item = &'d Device> {
    COMMON.into_iter().filter_map(|name| xmem::find(name).ok())
}

fn base(recording: &Path, device: &Device, name: &str) -> Result<Base, CliError> {
    let job = Job::from_path(recording, &ReadOptions::default())?;
    let builder = |choice: &AllocatorArgs| -> Result<EstimateBuilder, CliError> {
        Ok(Estimate::builder(device.clone()).allocator(allocator::settings(choice)?))
    };
    let usual = AllocatorArgs::default();
    let failed = |error| estimate::failure(name, error);
    let estimate = builder(&usual)?.build();
    let predicted = estimate.predict(&job).map_err(failed)?;
    let answer = predicted.answer();
    let timeline = predicted.timeline(SnapshotEnd::Job);
    let what_ifs = what_ifs::of(&job, &answer, &usual, builder)?;
    Ok(Base { answer, timeline, what_ifs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_the_site_are_drawn_instead_of_common_ones() {
        let find = |name: &str| xmem::find(name).expect("known");
        let (t4, a100, l4) = (find("t4-16g"), find("a100-40g"), find("l4-24g"));
        assert_eq!(beside(&[t4, a100], &[l4]), [a100, l4]);
        assert_eq!(beside(&[t4], &[]).len(), COMMON.len());
    }

    #[test]
    fn common_cards_are_in_the_catalogue_the_smallest_first() {
        let cards: Vec<&Device> = common().collect();
        assert_eq!(cards.len(), COMMON.len());
        assert!(cards.is_sorted_by_key(|card| card.memory));
        assert!(cards.iter().all(|card| xmem::devices::cards().contains(card)));
    }
}
