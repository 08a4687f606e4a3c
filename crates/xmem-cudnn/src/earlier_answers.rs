//! Answers that cuDNN gave before, without cuDNN.

use crate::cache::{self, AnswerFile};
use crate::library::{instead_of, plans};
use crate::properties;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xmem_convolutions::{
    ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, CudnnRelease, FittedModel,
};
use xmem_devices::Device;

/// A folder of answers that [`Cudnn`](crate::Cudnn) cached, read where there is no library: the same
/// job gets the same answer on every machine. The fitted model answers what is not in the folder.
#[derive(Debug)]
pub struct CachedAnswers {
    folder: PathBuf,
    files: Mutex<Files>,
    doubt: Option<String>,
}

/// By the device's properties; `None` where the folder has no file for the device.
type Files = BTreeMap<String, Option<Arc<AnswerFile>>>;

impl CachedAnswers {
    /// The answers in a folder; `None` if it has no files of answers.
    #[must_use]
    pub fn at(folder: &Path) -> Option<Self> {
        let cached = || Self { folder: folder.to_path_buf(), files: Mutex::default(), doubt: None };
        cache::has_answers(folder).then(cached)
    }

    /// Adds the reason why the answers may not be believed.
    pub(crate) fn with_doubt(self, doubt: Option<String>) -> Self {
        Self { doubt, ..self }
    }

    /// The answers for that device; `None` if the folder has none.
    fn file(&self, device: &Device) -> Option<Arc<AnswerFile>> {
        let mut files = self.lock();
        let file = files.entry(properties::json(device)).or_insert_with_key(|properties| {
            AnswerFile::newest(&self.folder, properties).map(Arc::new)
        });
        file.clone()
    }

    fn source(&self, file: Option<&AnswerFile>) -> String {
        let release = file.map_or_else(String::new, |file| format!(" {}", file.version));
        format!("cached answers of cuDNN{release} in {}", self.folder.display())
    }

    fn warning(&self, missing: usize) -> Option<String> {
        (missing > 0).then(|| {
            format!(
                "{missing} convolutions are not among the cached answers in {}; the {} answers instead",
                self.folder.display(),
                FittedModel::NAME
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        // A panic of another thread leaves nothing half done here.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConvolutionSource for CachedAnswers {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let file = self.file(device);
        let mut missing = BTreeSet::new();
        let plans = plans(questions, device, |query| {
            let line = query.to_line();
            let sizes = file.as_ref().and_then(|file| file.answers.get(&line).cloned());
            if sizes.is_none() {
                missing.insert(line);
            }
            sizes
        });
        let source = self.source(file.as_deref());
        match plans {
            Ok(plans) => ConvolutionAnswers::new(source, plans)
                .with_warning(self.warning(missing.len()))
                .with_doubt(self.doubt.clone())
                .with_release(file.and_then(|file| CudnnRelease::parse(&file.version))),
            Err(reason) => instead_of(&source, &reason, device, questions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::query::Query;
    use xmem_convolutions::{Basis, ConvPass, ConvShape, ElementType, Layout, Volume};
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
        ConvolutionQuestion::new(ConvPass::Forward, shape)
    }

    /// The convolution that a line of cached answers is about.
    fn question_of(line: &str) -> ConvolutionQuestion {
        let query = Query::parse(line).expect("a question");
        let sizes = |list: &[i64]| -> Vec<u64> { list.iter().map(|&n| n as u64).collect() };
        let [input, weight, output] =
            [&query.input, &query.weight, &query.output].map(|l| sizes(l));
        let [stride, padding, dilation] =
            [&query.stride, &query.padding, &query.dilation].map(|l| sizes(l));
        let volume = (input.len() == 5).then(|| Volume {
            input: input[2],
            kernel: weight[2],
            output: output[2],
            stride: stride[0],
            padding: padding[0],
            dilation: dilation[0],
        });
        let four = |l: &[u64]| [l[0], l[1], l[l.len() - 2], l[l.len() - 1]];
        let two = |l: &[u64]| [l[l.len() - 2], l[l.len() - 1]];
        let shape = ConvShape {
            input: four(&input),
            weight: four(&weight),
            output: four(&output),
            stride: two(&stride),
            padding: two(&padding),
            dilation: two(&dilation),
            volume,
            transposed: false,
            groups: input[1] / weight[1],
            element: query.element,
            layout: query.layout,
        };
        ConvolutionQuestion::new(query.pass, shape)
    }

    #[test]
    fn the_answers_of_cudnn_for_the_recorded_jobs_are_believed() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/cudnn"));
        let device = xmem_devices::find("rtx3060-12g").expect("a device");
        let file = AnswerFile::newest(folder, &properties::json(device)).expect("answers");
        let questions: Vec<_> = file.answers.keys().map(|line| question_of(line)).collect();
        assert!(questions.len() > 1000, "{} questions", questions.len());
        let answers = CachedAnswers::at(folder).expect("answers").answer(device, &questions);
        assert!(answers.source().starts_with("cached answers of cuDNN"), "{}", answers.source());
        assert_eq!(answers.warning(), None);
        let wider = answers.iter().filter(|(_, plans)| plans.high > plans.first()).count();
        assert!(wider * 10 < questions.len(), "{wider} of {}", questions.len());
    }

    #[test]
    fn cached_questions_get_the_cached_answer_and_others_the_models() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(CachedAnswers::at(folder.path()).is_none(), "no files of answers yet");
        let device = xmem_devices::find("rtx3060-12g").expect("a device").clone();
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

        let other = xmem_devices::find("a100-40g").expect("a device").clone();
        for (channels, device) in [(32, &device), (64, &other)] {
            let (question, answers) = asked(channels, device);
            let fitted = FittedModel.answer(device, &[question]);
            assert_eq!(answers.get(&question), fitted.get(&question));
            let warning = answers.warning().expect("an answer is missing");
            assert!(warning.starts_with("1 convolutions are not among"), "{warning}");
        }
    }
}
