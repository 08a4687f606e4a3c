//! The answers for several jobs that were recorded to be compared: variants of one job that differ in strategy, options,
//! number of ranks or anything else, of which the same ranks were recorded.

use crate::ranks::{JobRanks, RankAnswer, RankFigures};
use std::collections::BTreeMap;
use xmem_analyzer::recording::Strategy;
use xmem_types::Bytes;

/// Variants of a job on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobVariants {
    /// The variants, in the order of their first recording; at least two.
    pub variants: Vec<JobVariant>,
}

/// One variant of a job, with the same recorded ranks as the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobVariant {
    /// Its recorded ranks.
    pub job: JobRanks,
}

/// What a variant needs beyond another one; less than zero if it needs less. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureDifference {
    /// Difference of the peaks of allocated memory.
    pub allocated: i64,
    /// Difference of the peaks of reserved memory.
    pub reserved: i64,
    /// Difference of the figures of nvidia-smi.
    pub device: i64,
}

impl JobVariants {
    /// The variants of which `answers` are the ranks; none if the recordings cannot be divided into jobs of which the
    /// same ranks were recorded, or are all of one job.
    ///
    /// Recordings belong to one variant if their notes agree and, where `xmem profile` has named them (`ddp.rank0.json.zst`),
    /// their names. Recordings that agree in all of that and are of the same rank are variants of their own.
    #[must_use]
    pub fn of(answers: &[RankAnswer]) -> Option<Self> {
        let mut groups: Vec<(Kind<'_>, Vec<(usize, &RankAnswer)>)> = Vec::new();
        for (place, answer) in answers.iter().enumerate() {
            let kind = Kind::of(answer)?;
            match groups.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, group)) => group.push((place, answer)),
                None => groups.push((kind, vec![(place, answer)])),
            }
        }
        // Each by the place of its first recording.
        let mut variants: BTreeMap<usize, BTreeMap<u32, &RankAnswer>> = BTreeMap::new();
        for (_, group) in groups {
            let by_rank: BTreeMap<u32, &RankAnswer> =
                group.iter().map(|(_, answer)| (answer.number(), *answer)).collect();
            if by_rank.len() == group.len() {
                variants.insert(group[0].0, by_rank);
            } else if by_rank.len() == 1 {
                for (place, one) in group {
                    variants.insert(place, [(one.number(), one)].into());
                }
            } else {
                return None;
            }
        }
        let first = variants.values().next()?;
        let are_alike = variants.values().all(|other| other.keys().eq(first.keys()));
        let job = |ranks| Some(JobVariant { job: JobRanks::of_ranks(ranks)? });
        let variants: Option<Vec<JobVariant>> = variants.into_values().map(job).collect();
        variants
            .filter(|variants| are_alike && variants.len() > 1)
            .map(|variants| Self { variants })
    }

    /// The difference of a variant from the first one.
    #[must_use]
    pub fn difference(&self, variant: &JobVariant) -> FigureDifference {
        let (first, other) = (self.variants[0].figures(), variant.figures());
        FigureDifference {
            allocated: signed(other.allocated) - signed(first.allocated),
            reserved: signed(other.reserved) - signed(first.reserved),
            device: signed(other.device) - signed(first.device),
        }
    }
}

impl JobVariant {
    /// The memory that its worst rank needs.
    #[must_use]
    pub fn figures(&self) -> &RankFigures {
        &self.job.worst().figures
    }

    /// The strategies of the job, where they were noted.
    #[must_use]
    pub fn strategies(&self) -> &[Strategy] {
        &self.job.worst().strategies
    }

    /// The release of PyTorch, where it was noted.
    #[must_use]
    pub fn torch(&self) -> Option<&str> {
        self.job.worst().torch.as_deref()
    }
}

/// What the recordings of one variant have in common.
#[derive(PartialEq, Eq)]
struct Kind<'a> {
    world_size: u32,
    backend: Option<&'a str>,
    torch: Option<&'a str>,
    strategies: &'a [Strategy],
    name: Option<String>,
}

impl<'a> Kind<'a> {
    fn of(answer: &'a RankAnswer) -> Option<Self> {
        let rank = answer.rank.as_ref()?;
        Some(Self {
            world_size: rank.world_size,
            backend: rank.backend.as_deref(),
            torch: answer.torch.as_deref(),
            strategies: &answer.strategies,
            name: name_of_job(&answer.trace, rank.rank),
        })
    }
}

/// A size that can be subtracted from another one.
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

/// The name that `xmem profile` made that of the rank's file of: `ddp.json.zst` of `ddp.rank0.json.zst`.
fn name_of_job(trace: &str, rank: u32) -> Option<String> {
    let (before, after) = trace.rsplit_once(&format!(".rank{rank}."))?;
    (!after.contains('/')).then(|| format!("{before}.{after}"))
}
