//! What cuDNN once answered, without cuDNN.

use crate::cache::{self, Kept};
use crate::plans::answered;
use crate::properties;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xmem_profiles::Device;
use xmem_profiles::cudnn::{ConvPass, ConvShape, ConvolutionPlans, Plans};
use xmem_types::Bytes;

/// A folder of answers that [`Cudnn`](crate::Cudnn) kept, read where there is no library: the same job
/// gets the same answer on every machine. What was never asked is answered by the fitted model.
#[derive(Debug)]
pub struct KeptAnswers {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the device's properties; none where nothing is kept.
    devices: BTreeMap<String, Option<Kept>>,
    /// Releases that gave answers.
    versions: BTreeSet<String>,
    /// Questions that have no answer.
    missing: BTreeSet<String>,
}

impl KeptAnswers {
    /// The answers in a folder; none if it has no files of answers.
    #[must_use]
    pub fn at(folder: &Path) -> Option<Self> {
        let kept = || Self { folder: folder.to_path_buf(), state: Mutex::default() };
        cache::has_answers(folder).then(kept)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panicking thread leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: String, device: &Device) -> Option<Vec<Bytes>> {
        let State { devices, versions, missing } = &mut *self.lock();
        let known = devices
            .entry(properties::json(device))
            .or_insert_with_key(|properties| cache::kept(&self.folder, properties));
        let found = known.as_ref().and_then(|kept| {
            versions.insert(kept.version.clone());
            kept.answers.get(&question).cloned()
        });
        if found.is_none() {
            missing.insert(question);
        }
        found
    }
}

impl ConvolutionPlans for KeptAnswers {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        answered(pass, shape, device, |question| self.answer(question.to_line(), device))
    }

    fn origin(&self) -> String {
        let versions: Vec<String> = self.lock().versions.iter().cloned().collect();
        let release = match versions.as_slice() {
            [] => String::new(),
            versions => format!(" {}", versions.join(", ")),
        };
        format!("answers of cuDNN{release} kept in {}", self.folder.display())
    }

    fn complaint(&self) -> Option<String> {
        let missing = self.lock().missing.len();
        (missing > 0).then(|| {
            format!(
                "{missing} convolutions are not among the answers kept in {}",
                self.folder.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::question::Question;
    use xmem_profiles::cudnn::{Basis, ElementType, FittedPlans, Layout};

    fn shape(channels: u64) -> ConvShape {
        ConvShape {
            input: [8, channels, 32, 32],
            weight: [channels, channels, 3, 3],
            output: [8, channels, 32, 32],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
            volume: None,
            transposed: false,
            groups: 1,
            element: ElementType::F32,
            layout: Layout::Nchw,
        }
    }

    #[test]
    fn what_was_answered_once_is_answered_again_and_the_rest_is_the_models() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(KeptAnswers::at(folder.path()).is_none(), "nothing is kept there yet");
        let device = xmem_profiles::find("rtx3060-12g").expect("a device").clone();
        let mut cache = Cache::open(Some(folder.path()), "9.19.0", &properties::json(&device));
        let question = Question::of(ConvPass::Forward, &shape(64)).expect("a question").to_line();
        let sizes = [123_456_789, 4096, 0].map(Bytes);
        cache.insert(question, sizes.to_vec());
        cache.save().expect("saved");

        let kept = KeptAnswers::at(folder.path()).expect("answers are there now");
        let plans = kept.plans(ConvPass::Forward, &shape(64), &device);
        assert_eq!((plans.sizes.as_slice(), plans.basis), (sizes.as_slice(), Basis::Library));
        assert_eq!((plans.low, plans.high), (sizes[0], sizes[0]));
        assert!(kept.origin().starts_with("answers of cuDNN 9.19.0 kept in "));
        assert_eq!(kept.complaint(), None);

        let other = xmem_profiles::find("a100-40g").expect("a device").clone();
        for (shape, device) in [(shape(32), &device), (shape(64), &other)] {
            let plans = kept.plans(ConvPass::Forward, &shape, device);
            assert_eq!(plans, FittedPlans.plans(ConvPass::Forward, &shape, device));
        }
        let complaint = kept.complaint().expect("two were not there");
        assert!(complaint.starts_with("2 convolutions are not among"), "{complaint}");
    }
}
