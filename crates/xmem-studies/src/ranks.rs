//! The answer for a distributed job of which several ranks were recorded: that of its worst rank.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;
use xmem::Answer;
use xmem::Verdict;
use xmem_analyzer::recording::{Rank, Strategy};
use xmem_predict::Confidence;
use xmem_types::Bytes;

/// What an answer says about one rank of a job. It is small, as a job may have thousands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankAnswer {
    /// The recording, as the user named it.
    pub trace: String,
    /// Its place in the job; none if the recording does not name it.
    pub rank: Option<Rank>,
    /// The release of PyTorch that it was recorded with, as far as the recording says so.
    pub torch: Option<String>,
    /// The strategies by which its job is distributed, as far as the recording says so.
    pub strategies: Vec<Strategy>,
    /// The memory that this rank needs.
    pub figures: RankFigures,
}

/// The memory that a rank needs, and the verdict on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankFigures {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it holds over the whole range.
    pub confidence: Confidence,
    /// Peak of allocated memory.
    pub allocated: Bytes,
    /// Peak of reserved memory.
    pub reserved: Bytes,
    /// The figure of nvidia-smi.
    pub device: Bytes,
    /// The least and the most of the figure of nvidia-smi.
    pub device_bounds: (Bytes, Bytes),
    /// Memory that stays free, if the job fits.
    pub headroom: Option<Bytes>,
    /// Memory that is missing, if it does not.
    pub shortfall: Option<Bytes>,
}

/// Ranks of one job on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRanks {
    /// The number of ranks of the job.
    pub world_size: u32,
    /// The recorded ones, in order of rank; at least one.
    pub ranks: Vec<RankAnswer>,
    /// The ranks of the job that were not recorded: the first and the last of each run.
    pub missing: Vec<(u32, u32)>,
    worst: usize,
}

/// The reason why several answers are not about one job.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SeveralJobs {
    /// Not all recordings name a rank.
    #[error("`{with}` is a rank of a distributed job, and `{without}` names none")]
    NoRank {
        /// A recording with a rank.
        with: String,
        /// One without.
        without: String,
    },
    /// They differ in what all ranks of a job have in common.
    #[error("`{}` has {} {}, and `{}` has {}", .first.0, .what, .first.1, .second.0, .second.1)]
    Differ {
        /// The property.
        what: &'static str,
        /// A recording and its value.
        first: (String, String),
        /// Another one.
        second: (String, String),
    },
    /// A rank was recorded more than once.
    #[error("rank {rank} was recorded twice: `{first}` and `{second}`")]
    Twice {
        /// The rank.
        rank: u32,
        /// A recording of it.
        first: String,
        /// Another one.
        second: String,
    },
}

impl RankAnswer {
    /// The answer about `trace`, as the user named it.
    #[must_use]
    pub fn new(trace: &str, answer: &Answer) -> Self {
        let (least, most) = answer.device().context_bounds();
        let reserved = answer.memory.range.reserved;
        Self {
            trace: trace.to_owned(),
            rank: answer.rank.clone(),
            torch: answer.trace.recording.as_ref().and_then(|recording| recording.torch.clone()),
            strategies: answer
                .trace
                .recording
                .as_ref()
                .map(|recording| recording.strategies.clone())
                .unwrap_or_default(),
            figures: RankFigures {
                verdict: answer.verdict,
                confidence: answer.memory.range.confidence,
                allocated: answer.memory.peak.allocated,
                reserved: answer.memory.peak.reserved,
                device: answer.memory.peak.device,
                device_bounds: (reserved.low + least, reserved.high + most),
                headroom: answer.headroom(),
                shortfall: answer.shortfall(),
            },
        }
    }

    /// Its number in the job.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.rank.as_ref().map_or(0, |rank| rank.rank)
    }
}

impl JobRanks {
    /// The job of which all answers are ranks; none if none or only one of them is about a rank.
    ///
    /// # Errors
    /// If several are ranks, and not all of one job.
    pub fn of(answers: &[RankAnswer]) -> Result<Option<Self>, SeveralJobs> {
        let ranked = || answers.iter().filter_map(|answer| Some((answer, answer.rank.as_ref()?)));
        let mut all = ranked();
        let (Some((first, _)), Some(_)) = (all.next(), all.next()) else { return Ok(None) };
        if let Some(without) = answers.iter().find(|answer| answer.rank.is_none()) {
            let (with, without) = (first.trace.clone(), without.trace.clone());
            return Err(SeveralJobs::NoRank { with, without });
        }
        for (other, _) in ranked() {
            agree("world size", first, other, |answer| {
                answer.rank.as_ref().map(|rank| rank.world_size.to_string())
            })?;
            agree("the backend", first, other, |answer| answer.rank.as_ref()?.backend.clone())?;
            agree("PyTorch", first, other, |answer| answer.torch.clone())?;
            agree("the strategy", first, other, |answer| {
                (!answer.strategies.is_empty()).then(|| named(&answer.strategies))
            })?;
        }
        let mut ranks: BTreeMap<u32, &RankAnswer> = BTreeMap::new();
        for (answer, rank) in ranked() {
            if let Some(before) = ranks.insert(rank.rank, answer) {
                return Err(SeveralJobs::Twice {
                    rank: rank.rank,
                    first: before.trace.clone(),
                    second: answer.trace.clone(),
                });
            }
        }
        Ok(Self::of_ranks(ranks))
    }

    /// The job of which these are ranks; none without any.
    pub(crate) fn of_ranks(ranks: BTreeMap<u32, &RankAnswer>) -> Option<Self> {
        let world_size = ranks.values().next()?.rank.as_ref()?.world_size;
        let missing = gaps(ranks.keys().copied(), world_size);
        let ranks: Vec<RankAnswer> = ranks.into_values().cloned().collect();
        // Of equal ones the first.
        let order = |at: &usize| (severity(&ranks[*at].figures), Reverse(*at));
        let worst = (0..ranks.len()).max_by_key(order).unwrap_or(0);
        Some(Self { world_size, ranks, missing, worst })
    }

    /// The rank that decides: the one with the worst verdict, of these the one that needs most.
    #[must_use]
    pub fn worst(&self) -> &RankAnswer {
        &self.ranks[self.worst]
    }

    /// The verdict of the job, as far as it was recorded: that of its worst rank.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.worst().figures.verdict
    }

    /// Ranks with equal figures, in order of their first rank.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&RankAnswer>> {
        let mut groups: Vec<Vec<&RankAnswer>> = Vec::new();
        for rank in &self.ranks {
            match groups.iter_mut().find(|group| group[0].figures == rank.figures) {
                Some(group) => group.push(rank),
                None => groups.push(vec![rank]),
            }
        }
        groups
    }

    /// The least and the most of a figure over the recorded ranks.
    #[must_use]
    pub fn spread(&self, figure: fn(&RankFigures) -> Bytes) -> (Bytes, Bytes) {
        let figures: BTreeSet<Bytes> =
            self.ranks.iter().map(|rank| figure(&rank.figures)).collect();
        let ends = figures.first().copied().zip(figures.last().copied());
        ends.unwrap_or_default()
    }
}

/// Strategies in one line.
fn named(strategies: &[Strategy]) -> String {
    strategies.iter().map(Strategy::to_string).collect::<Vec<_>>().join(" + ")
}

/// The runs of numbers below `end` that are not among `present`, which is in order.
fn gaps(present: impl Iterator<Item = u32>, end: u32) -> Vec<(u32, u32)> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for number in present.chain([end]) {
        if next < number {
            gaps.push((next, number - 1));
        }
        next = number.saturating_add(1);
    }
    gaps
}

/// Refuses another value of a property that both recordings name.
fn agree(
    what: &'static str,
    first: &RankAnswer,
    second: &RankAnswer,
    property: impl Fn(&RankAnswer) -> Option<String>,
) -> Result<(), SeveralJobs> {
    match (property(first), property(second)) {
        (Some(one), Some(other)) if one != other => Err(SeveralJobs::Differ {
            what,
            first: (first.trace.clone(), one),
            second: (second.trace.clone(), other),
        }),
        _ => Ok(()),
    }
}

/// Orders ranks: a greater one is worse.
fn severity(figures: &RankFigures) -> impl Ord + use<> {
    let verdict = match figures.verdict {
        Verdict::Fits => 0,
        Verdict::DamagedFits => 1,
        Verdict::Withheld => 2,
        Verdict::DamagedDoesNotFit => 3,
        Verdict::DoesNotFit => 4,
    };
    (verdict, figures.shortfall, figures.device, figures.reserved, figures.allocated)
}

#[cfg(test)]
mod tests {
    use super::{JobRanks, RankAnswer, RankFigures};
    use xmem::Verdict;
    use xmem_analyzer::recording::Rank;
    use xmem_predict::Confidence;
    use xmem_types::Bytes;

    fn answer(rank: Option<(u32, u32)>, mib: u64, verdict: Verdict) -> RankAnswer {
        let size = Bytes::mib(mib);
        RankAnswer {
            trace: rank.map_or_else(|| "plain".to_owned(), |(rank, of)| format!("{rank}of{of}")),
            rank: rank.map(|(rank, world_size)| Rank::of(rank, world_size)),
            torch: None,
            strategies: Vec::new(),
            figures: RankFigures {
                verdict,
                confidence: Confidence::Certain,
                allocated: size,
                reserved: size,
                device: size,
                device_bounds: (size, size),
                headroom: None,
                shortfall: None,
            },
        }
    }

    fn fits(rank: u32, world: u32, mib: u64) -> RankAnswer {
        answer(Some((rank, world)), mib, Verdict::Fits)
    }

    #[test]
    fn the_worst_rank_decides() {
        let answers = [
            fits(7, 8, 90),
            fits(0, 8, 100),
            answer(Some((3, 8)), 80, Verdict::Withheld),
            fits(2, 8, 100),
        ];
        let job = JobRanks::of(&answers).expect("one job").expect("several ranks");
        assert_eq!((job.worst().number(), job.verdict()), (3, Verdict::Withheld));
        assert_eq!(job.missing, [(1, 1), (4, 6)]);
        let groups: Vec<Vec<u32>> = job
            .groups()
            .iter()
            .map(|group| group.iter().map(|rank| rank.number()).collect())
            .collect();
        assert_eq!(groups, [vec![0, 2], vec![3], vec![7]]);
        assert_eq!(job.spread(|figures| figures.reserved), (Bytes::mib(80), Bytes::mib(100)));
        let job = JobRanks::of(&answers[..2]).expect("one job").expect("several ranks");
        assert_eq!(job.worst().number(), 0);
    }

    #[test]
    fn a_job_may_have_any_number_of_ranks() {
        let most = u32::MAX;
        let job = JobRanks::of(&[fits(1, most, 1), fits(most - 1, most, 1)]);
        let job = job.expect("one job").expect("several ranks");
        assert_eq!(job.missing, [(0, 0), (2, most - 2)]);
    }

    #[test]
    fn answers_of_several_jobs_are_refused() {
        let plain = || answer(None, 1, Verdict::Fits);
        for (answers, expected) in [
            (vec![plain(), plain()], "none"),
            (vec![fits(0, 2, 1), plain()], "none"),
            (vec![fits(0, 2, 1), fits(1, 2, 1)], "job"),
            (
                vec![fits(0, 2, 1), fits(1, 2, 1), plain()],
                "`0of2` is a rank of a distributed job, and `plain` names none",
            ),
            (vec![fits(0, 2, 1), fits(1, 4, 1)], "`0of2` has world size 2, and `1of4` has 4"),
            (
                vec![fits(1, 2, 1), fits(0, 2, 1), fits(1, 2, 1)],
                "rank 1 was recorded twice: `1of2` and `1of2`",
            ),
        ] {
            let found = match JobRanks::of(&answers) {
                Ok(Some(_)) => "job".to_owned(),
                Ok(None) => "none".to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected);
        }
    }
}
