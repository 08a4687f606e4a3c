//! Answers that are kept with a recording: given by a library, and read where there is none.

use crate::library::{Cudnn, plans};
use crate::properties;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use xmem_convolutions::{
    ConvolutionAnswers, ConvolutionQuestion, CudnnRelease, FittedModel, KeptAnswers,
};
use xmem_devices::Device;

/// The processes that ask at the same time. Each loads the library.
const MAX_PROCESSES: usize = 4;

/// Asks the library that `library` makes about the convolutions of a job on several devices, in their order, for
/// at most as long as `limit`. Devices that are not reached have no answers.
pub fn keep(
    library: impl Fn() -> Option<Cudnn> + Sync,
    devices: &[&Device],
    questions: &[ConvolutionQuestion],
    limit: Duration,
) -> Vec<KeptAnswers> {
    let end = Instant::now() + limit;
    let next = AtomicUsize::new(0);
    let ask = || {
        let mut kept = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let left = end.saturating_duration_since(Instant::now());
            let Some(device) = devices.get(index).filter(|_| !left.is_zero()) else { return kept };
            let answers =
                library().and_then(|cudnn| cudnn.with_patience(left).keep(device, questions));
            kept.extend(answers.map(|answers| (index, answers)));
        }
    };
    let processes = thread::available_parallelism().map_or(1, |n| n.get().min(MAX_PROCESSES));
    let mut kept: Vec<(usize, KeptAnswers)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..processes.min(devices.len())).map(|_| scope.spawn(ask)).collect();
        // A thread that panicked has no answers.
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    kept.sort_by_key(|(index, _)| *index);
    kept.into_iter().map(|(_, answers)| answers).collect()
}

impl Cudnn {
    /// Asks about the convolutions of a job, for the answers to be kept. `None` if the library gives none
    /// that can be believed, or not to the end.
    fn keep(&self, device: &Device, questions: &[ConvolutionQuestion]) -> Option<KeptAnswers> {
        let (release, workspaces) = match self.workspaces(device, questions) {
            Ok(found) => found,
            Err(reason) => {
                tracing::debug!(reason, "cuDNN was not asked");
                return None;
            }
        };
        let kept = KeptAnswers { release, device: properties::json(device), workspaces };
        let is_believed = answer(&kept, device, questions).0.release().is_some();
        (is_believed && !kept.workspaces.is_empty()).then_some(kept)
    }
}

/// The answers that were kept for a device, else those for another of its compute capability: hardly anything
/// else of a device matters to cuDNN (see `FittedModel` of xmem-convolutions).
pub(crate) fn of_device<'k>(kept: &'k [KeptAnswers], device: &Device) -> Option<&'k KeptAnswers> {
    let (properties, on) = (properties::json(device), device.compute_capability);
    let same = kept.iter().find(|kept| kept.device == properties);
    same.or_else(|| kept.iter().find(|kept| properties::is_of(&kept.device, on)))
}

/// Answers from kept ones, and the number of those that the fitted model gives instead; the model's alone if
/// the kept ones cannot be cuDNN's.
pub(crate) fn answer(
    kept: &KeptAnswers,
    device: &Device,
    questions: &[ConvolutionQuestion],
) -> (ConvolutionAnswers, usize) {
    let mut missing = BTreeSet::new();
    let plans = plans(questions, device, |query| {
        let line = query.to_line();
        let sizes = kept.workspaces.get(&line).cloned();
        if sizes.is_none() {
            missing.insert(line);
        }
        sizes
    });
    match plans {
        Ok(plans) => {
            let other = properties::name(&kept.device).filter(|name| *name != device.title);
            let about = other.map_or_else(String::new, |name| format!(" about {name}"));
            let source = format!("cuDNN {}, asked{about} when the job was recorded", kept.release);
            let warning = (!missing.is_empty()).then(|| {
                format!(
                    "{} convolutions are not among the answers of cuDNN in the recording; the {} answers \
                     instead",
                    missing.len(),
                    FittedModel::NAME
                )
            });
            let release = CudnnRelease::parse(&kept.release);
            let answers = ConvolutionAnswers::new(source, plans);
            (answers.with_warning(warning).with_release(release), missing.len())
        }
        Err(reason) => {
            let source = "the recording";
            (crate::library::instead_of(source, &reason, device, questions), questions.len())
        }
    }
}
