//! The answer for a distributed job, where the traces are of its ranks.

use super::batch::{Batch, Question};
use crate::args::Verbosity;
use crate::terminal::say;
use std::collections::BTreeMap;
use xmem::{JobRanks, RankAnswer};
use xmem_report::json::{Document, RanksDocument};
use xmem_report::text::{self, Style};

/// The job of which the traces are ranks, under each of the settings; empty if they are not of one job.
#[derive(Default)]
pub(super) struct Jobs(Vec<(usize, JobRanks)>);

impl Jobs {
    /// Finds the job among the answers to all questions, and tells the user if there are several.
    pub(super) fn find(
        answers: impl IntoIterator<Item = (Question, RankAnswer)>,
        verbosity: Verbosity,
    ) -> Self {
        let mut by_settings: BTreeMap<usize, Vec<(usize, RankAnswer)>> = BTreeMap::new();
        for (about, answer) in answers {
            if let Some(settings) = about.settings {
                by_settings.entry(settings).or_default().push((about.trace, answer));
            }
        }
        let mut jobs = Vec::new();
        for (settings, mut answers) in by_settings {
            answers.sort_by_key(|(trace, _)| *trace);
            let answers: Vec<RankAnswer> = answers.into_iter().map(|(_, answer)| answer).collect();
            match JobRanks::of(&answers) {
                Ok(job) => jobs.extend(job.map(|job| (settings, job))),
                Err(reason) => {
                    if verbosity != Verbosity::Quiet {
                        say(&text::several_jobs(&reason));
                    }
                    // It is the same under the other settings.
                    return Self::default();
                }
            }
        }
        Self(jobs)
    }

    /// One text for each of the settings; empty without a job.
    pub(super) fn to_text(&self, batch: &Batch<'_>, style: &Style) -> String {
        let text = |(settings, job): &(usize, JobRanks)| {
            let device = &batch.settings[*settings].estimate.target().device;
            text::ranks(device, job, style) + "\n"
        };
        self.0.iter().map(text).collect()
    }

    /// One document for each of the settings.
    pub(super) fn documents<'d>(
        &'d self,
        batch: &'d Batch<'_>,
    ) -> impl Iterator<Item = Document<'d>> {
        self.0.iter().map(|(settings, job)| {
            let settings = &batch.settings[*settings];
            let device = &settings.estimate.target().device;
            Document::Ranks(Box::new(RanksDocument::new(&settings.options, device, job)))
        })
    }
}
