//! What cuDNN once answered, without cuDNN.

use crate::cache::{self, Kept};
use crate::plans::answered;
use crate::properties;
use crate::question::Question;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xmem_convolutions::{
    ConvPass, ConvShape, ConvolutionAnswers, ConvolutionPlans, ConvolutionQuestion,
    ConvolutionSource, Plans,
};
use xmem_profiles::Device;
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

    fn name(&self, versions: &BTreeSet<String>) -> String {
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        let release = match versions.as_slice() {
            [] => String::new(),
            versions => format!(" {}", versions.join(", ")),
        };
        format!("answers of cuDNN{release} kept in {}", self.folder.display())
    }

    fn warning(&self, missing: usize) -> Option<String> {
        (missing > 0).then(|| {
            format!(
                "{missing} convolutions are not among the answers kept in {}",
                self.folder.display()
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panicking thread leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The release that answered for this device, and its answer; none where nothing is kept.
    fn look_up(&self, question: &str, device: &Device) -> Option<(String, Option<Vec<Bytes>>)> {
        let known = &mut self.lock().devices;
        let known = known
            .entry(properties::json(device))
            .or_insert_with_key(|properties| cache::kept(&self.folder, properties));
        let kept = known.as_ref()?;
        Some((kept.version.clone(), kept.answers.get(question).cloned()))
    }
}

impl ConvolutionSource for KeptAnswers {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let (mut versions, mut missing) = (BTreeSet::new(), BTreeSet::new());
        let mut look_up = |question: &Question| {
            let line = question.to_line();
            let (version, sizes) = self.look_up(&line, device).unzip();
            versions.extend(version);
            let sizes = sizes.flatten();
            if sizes.is_none() {
                missing.insert(line);
            }
            sizes
        };
        let plans: Vec<_> =
            questions.iter().map(|q| (*q, answered(q, device, &mut look_up))).collect();
        ConvolutionAnswers::new(self.name(&versions), plans)
            .with_warning(self.warning(missing.len()))
    }
}

impl ConvolutionPlans for KeptAnswers {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        let question = ConvolutionQuestion { pass, shape: *shape };
        answered(&question, device, |question| {
            let line = question.to_line();
            let (version, sizes) = self.look_up(&line, device).unzip();
            let mut state = self.lock();
            state.versions.extend(version);
            let sizes = sizes.flatten();
            if sizes.is_none() {
                state.missing.insert(line);
            }
            sizes
        })
    }

    fn origin(&self) -> String {
        self.name(&self.lock().versions)
    }

    fn complaint(&self) -> Option<String> {
        self.warning(self.lock().missing.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use xmem_convolutions::{Basis, ElementType, FittedModel, Layout};

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
        let asked = |channels, device| {
            let question = ConvolutionQuestion { pass: ConvPass::Forward, shape: shape(channels) };
            (question, kept.answer(device, &[question]))
        };
        let (question, answers) = asked(64, &device);
        let plans = answers.get(&question).expect("an answer");
        assert_eq!((plans.sizes.as_slice(), plans.basis), (sizes.as_slice(), Basis::Library));
        assert_eq!((plans.low, plans.high), (sizes[0], sizes[0]));
        assert!(answers.source().starts_with("answers of cuDNN 9.19.0 kept in "));
        assert_eq!(answers.warning(), None);

        let other = xmem_profiles::find("a100-40g").expect("a device").clone();
        for (channels, device) in [(32, &device), (64, &other)] {
            let (question, answers) = asked(channels, device);
            let fitted = FittedModel.answer(device, &[question]);
            assert_eq!(answers.get(&question), fitted.get(&question));
            let warning = answers.warning().expect("it was not kept");
            assert!(warning.starts_with("1 convolutions are not among"), "{warning}");
        }
    }
}
