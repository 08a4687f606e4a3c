//! Answers that cuDNN gave before, without cuDNN.

use crate::cache::{self, AnswerFile};
use crate::library::plans;
use crate::properties;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xmem_convolutions::{
    ConvPass, ConvShape, ConvolutionAnswers, ConvolutionPlans, ConvolutionQuestion,
    ConvolutionSource, Plans,
};
use xmem_profiles::Device;

/// A folder of answers that [`Cudnn`](crate::Cudnn) cached, read where there is no library: the same
/// job gets the same answer on every machine. The fitted model answers what is not in the folder.
#[derive(Debug)]
pub struct CachedAnswers {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the device's properties; `None` where the folder has no file for the device.
    files: BTreeMap<String, Option<Arc<AnswerFile>>>,
    /// Releases that gave answers.
    versions: BTreeSet<String>,
    /// Questions that have no answer.
    missing: BTreeSet<String>,
}

impl CachedAnswers {
    /// The answers in a folder; `None` if it has no files of answers.
    #[must_use]
    pub fn at(folder: &Path) -> Option<Self> {
        let cached = || Self { folder: folder.to_path_buf(), state: Mutex::default() };
        cache::has_answers(folder).then(cached)
    }

    /// The answers for that device; `None` if the folder has none.
    fn file(&self, device: &Device) -> Option<Arc<AnswerFile>> {
        let files = &mut self.lock().files;
        let file = files.entry(properties::json(device)).or_insert_with_key(|properties| {
            AnswerFile::newest(&self.folder, properties).map(Arc::new)
        });
        file.clone()
    }

    fn source(&self, version: &str) -> String {
        let release = if version.is_empty() { String::new() } else { format!(" {version}") };
        format!("cached answers of cuDNN{release} in {}", self.folder.display())
    }

    fn warning(&self, missing: usize) -> Option<String> {
        let folder = self.folder.display();
        (missing > 0)
            .then(|| format!("{missing} convolutions are not among the cached answers in {folder}"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConvolutionSource for CachedAnswers {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let file = self.file(device);
        let mut missing = BTreeSet::new();
        let plans: Vec<_> = questions
            .iter()
            .map(|question| {
                let plans = plans(question, device, |query| {
                    let line = query.to_line();
                    let sizes = file.as_ref().and_then(|file| file.answers.get(&line).cloned());
                    if sizes.is_none() {
                        missing.insert(line);
                    }
                    sizes
                });
                (*question, plans)
            })
            .collect();
        let version = file.as_ref().map_or("", |file| file.version.as_str());
        ConvolutionAnswers::new(self.source(version), plans)
            .with_warning(self.warning(missing.len()))
    }
}

impl ConvolutionPlans for CachedAnswers {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        let question = ConvolutionQuestion { pass, shape: *shape };
        plans(&question, device, |query| {
            let line = query.to_line();
            let file = self.file(device);
            let mut state = self.lock();
            state.versions.extend(file.as_ref().map(|file| file.version.clone()));
            let sizes = file.and_then(|file| file.answers.get(&line).cloned());
            if sizes.is_none() {
                state.missing.insert(line);
            }
            sizes
        })
    }

    fn origin(&self) -> String {
        let versions: Vec<String> = self.lock().versions.iter().cloned().collect();
        self.source(&versions.join(", "))
    }

    fn complaint(&self) -> Option<String> {
        self.warning(self.lock().missing.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::query::Query;
    use xmem_convolutions::{Basis, ElementType, FittedModel, Layout};
    use xmem_types::Bytes;

    fn forward(channels: u64) -> ConvolutionQuestion {
        let shape = ConvShape {
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
        };
        ConvolutionQuestion { pass: ConvPass::Forward, shape }
    }

    #[test]
    fn cached_questions_get_the_cached_answer_and_others_the_models() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(CachedAnswers::at(folder.path()).is_none(), "no files of answers yet");
        let device = xmem_profiles::find("rtx3060-12g").expect("a device").clone();
        let mut cache = Cache::open(Some(folder.path()), "9.19.0", &properties::json(&device));
        let question = Query::new(&forward(64)).expect("small numbers").to_line();
        let sizes = [123_456_789, 4096, 0].map(Bytes);
        cache.insert(question, sizes.to_vec());
        cache.save().expect("saved");

        let cached = CachedAnswers::at(folder.path()).expect("a file of answers");
        let asked = |channels, device| {
            let question = forward(channels);
            (question, cached.answer(device, &[question]))
        };
        let (question, answers) = asked(64, &device);
        let plans = answers.get(&question).expect("an answer");
        assert_eq!((plans.sizes.as_slice(), plans.basis), (sizes.as_slice(), Basis::Library));
        assert_eq!((plans.low, plans.high), (sizes[0], sizes[0]));
        assert!(answers.source().starts_with("cached answers of cuDNN 9.19.0 in "));
        assert_eq!(answers.warning(), None);

        let other = xmem_profiles::find("a100-40g").expect("a device").clone();
        for (channels, device) in [(32, &device), (64, &other)] {
            let (question, answers) = asked(channels, device);
            let fitted = FittedModel.answer(device, &[question]);
            assert_eq!(answers.get(&question), fitted.get(&question));
            let warning = answers.warning().expect("an answer is missing");
            assert!(warning.starts_with("1 convolutions are not among"), "{warning}");
        }
    }
}
