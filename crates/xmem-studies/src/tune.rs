//! Settings that lower what a recorded job needs: options of the allocator and what-ifs, alone and together, each replayed.

use rayon::prelude::*;
use xmem::orchestrator::ChosenWhatIf;
use xmem::predict::{AllocatorSettings, CapacitySearch};
use xmem::{Answer, EstimateBuilder, Job};
use xmem_types::Bytes;

/// Options of PyTorch's allocator that may save memory, each with its key.
const OPTIONS: [(&str, &str); 4] = [
    ("expandable_segments", "expandable_segments:True"),
    ("max_split_size_mb", "max_split_size_mb:128"),
    ("garbage_collection_threshold", "garbage_collection_threshold:0.8"),
    ("roundup_power2_divisions", "roundup_power2_divisions:8"),
];

/// What recordings of a CPU can be lowered otherwise by: a name with its values.
const WHAT_IFS: [(&str, [&str; 2]); 2] =
    [("optimizer-impl", ["fused", "for-loop"]), ("zero-grad", ["pos0", "pos1"])];

/// Settings of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// All options of the allocator; none for those that the job has.
    pub conf: Option<String>,
    /// What-ifs, as a name and a value.
    pub what_ifs: Vec<(&'static str, &'static str)>,
}

/// Settings that were replayed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The settings.
    pub setting: Setting,
    /// The least memory of a device like this one with which the job runs.
    pub needs: Bytes,
    /// Peak allocated memory on the device.
    pub allocated: Bytes,
    /// Peak reserved memory on the device.
    pub reserved: Bytes,
    /// Whether it runs on the device.
    pub fits: bool,
}

/// What was found for a job: as it is, and with other settings, those that need least first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuning {
    /// As it is.
    pub base: Tuned,
    /// With other settings that need less.
    pub better: Vec<Tuned>,
    /// The settings that were tried.
    pub tried: usize,
    /// The memory of the device.
    pub room: Bytes,
}

impl Setting {
    /// The options of the command line.
    #[must_use]
    pub fn options(&self) -> String {
        let conf = self.conf.iter().map(|conf| format!("--alloc-conf {conf}"));
        let what_ifs = self.what_ifs.iter().map(|(name, value)| format!("--{name} {value}"));
        conf.chain(what_ifs).collect::<Vec<_>>().join(" ")
    }
}

/// Tries all settings on a job; `usual` makes the estimate of the job as it is, with `allocator`.
///
/// # Errors
/// If the job as it is cannot be estimated.
pub fn tune(
    job: &Job,
    allocator: &AllocatorSettings,
    usual: &EstimateBuilder,
) -> Result<Tuning, xmem::EstimateError> {
    let answer_of = |setting: &Setting| {
        let conf = setting.conf.clone().or_else(|| allocator.conf.clone());
        let mut builder = usual.clone().allocator(AllocatorSettings { conf, ..allocator.clone() });
        for &(name, value) in &setting.what_ifs {
            builder = builder.what_if(ChosenWhatIf::new(name, value).expect("one of the table"));
        }
        builder.capacity_search(CapacitySearch::Run).build().job(job)
    };
    let as_it_is = Setting { conf: None, what_ifs: Vec::new() };
    let answer = answer_of(&as_it_is)?;
    let base = tuned(as_it_is, &answer);
    let grid = grid(&answer, job);
    let tried = grid.len();
    let mut better: Vec<Tuned> = grid
        .into_par_iter()
        // What does not go with the job, such as an option that its release does not know.
        .filter_map(|setting| answer_of(&setting).ok().map(|answer| tuned(setting, &answer)))
        .filter(|tuned| tuned.needs < base.needs)
        .collect();
    better.sort_by_key(|tuned| (tuned.needs, tuned.setting.changes()));
    without_the_needless(&mut better);
    Ok(Tuning { base, better, tried, room: answer.device().memory })
}

impl Setting {
    /// The number of settings that are not those of the job.
    fn changes(&self) -> usize {
        self.conf.iter().flat_map(|conf| conf.split(',')).count() + self.what_ifs.len()
    }
}

fn tuned(setting: Setting, answer: &Answer) -> Tuned {
    let needs = answer.least_capacity();
    Tuned {
        setting,
        needs,
        allocated: answer.memory.peak.allocated,
        reserved: answer.memory.peak.reserved,
        fits: needs <= answer.device().memory,
    }
}

/// All combinations but that of the job itself.
fn grid(usual: &Answer, job: &Job) -> Vec<Setting> {
    let conf = &usual.setup.conf;
    let mut confs = vec![None];
    let with = |option: &str| match conf.is_empty() {
        true => option.to_owned(),
        false => format!("{conf},{option}"),
    };
    let open = || OPTIONS.iter().filter(|(key, _)| !conf.contains(key));
    confs.extend(open().map(|(_, option)| Some(with(option))));
    let mut grid: Vec<Setting> =
        confs.into_iter().map(|conf| Setting { conf, what_ifs: Vec::new() }).collect();
    if job.profile().gpu.is_none() {
        for (name, values) in WHAT_IFS {
            let more = values.into_iter().flat_map(|value| {
                grid.iter().map(move |setting| {
                    let mut setting = setting.clone();
                    setting.what_ifs.push((name, value));
                    setting
                })
            });
            let more: Vec<Setting> = more.collect();
            grid.extend(more);
        }
    }
    grid.remove(0);
    grid
}

/// Leaves out settings that save no more than others with fewer changes.
fn without_the_needless(sorted: &mut Vec<Tuned>) {
    let mut kept: Vec<Tuned> = Vec::new();
    for tuned in sorted.drain(..) {
        let is_worse = |other: &Tuned| {
            other.needs <= tuned.needs && other.setting.changes() <= tuned.setting.changes()
        };
        if !kept.iter().any(is_worse) {
            kept.push(tuned);
        }
    }
    *sorted = kept;
}
