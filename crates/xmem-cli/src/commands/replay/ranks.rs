//! The answer for a distributed job, where the traces are of its ranks, or for variants of a job.

use super::batch::{Batch, Question};
use crate::global::Verbosity;
use crate::terminal::say;
use std::collections::BTreeMap;
use xmem_report::json::{Document, RanksDocument, VariantsDocument};
use xmem_report::text::{self, Style};
use xmem_studies::ranks::{JobRanks, RankAnswer};
use xmem_studies::variants::JobVariants;

/// What the traces are of together, under each of the settings; empty if they are not of one job or its variants.
#[derive(Default)]
pub(super) struct Jobs(Vec<(usize, Together)>);

enum Together {
    /// Ranks of one job.
    Ranks(JobRanks),
    /// The same ranks of several jobs.
    Variants(JobVariants),
}

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
                Ok(job) => jobs.extend(job.map(|job| (settings, Together::Ranks(job)))),
                Err(reason) => {
                    if let Some(variants) = JobVariants::of(&answers) {
                        jobs.push((settings, Together::Variants(variants)));
                        continue;
                    }
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
        let text = |(settings, together): &(usize, Together)| {
            let device = &batch.settings[*settings].estimate.target().device;
            let page = match together {
                Together::Ranks(job) => text::ranks(device, job, style),
                Together::Variants(variants) => text::variants(device, variants, style),
            };
            page + "\n"
        };
        self.0.iter().map(text).collect()
    }

    /// One document for each of the settings.
    pub(super) fn documents<'d>(
        &'d self,
        batch: &'d Batch<'_>,
    ) -> impl Iterator<Item = Document<'d>> {
        self.0.iter().map(|(settings, together)| {
            let settings = &batch.settings[*settings];
            let device = &settings.estimate.target().device;
            let options = &settings.options;
            match together {
                Together::Ranks(job) => {
                    Document::Ranks(Box::new(RanksDocument::new(options, device, job)))
                }
                Together::Variants(variants) => {
                    Document::Variants(VariantsDocument::new(options, device, variants))
                }
            }
        })
    }
}
