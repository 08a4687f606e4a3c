//! cuDNN as a source of plans.

use crate::cache::Cache;
use crate::process::{Worker, WorkerCommand, WorkerError};
use crate::properties;
use crate::question::Question;
use crate::worker::told;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionAnswers, ConvolutionPlans, ConvolutionQuestion,
    ConvolutionSource, FittedModel, Plans,
};
use xmem_profiles::Device;
use xmem_types::Bytes;

/// A cuDNN library that is asked for plans, in a process of its own.
///
/// Nothing is started before the first question. Where the library has no plan, cannot be loaded or
/// its process has died, the fitted model answers.
#[derive(Debug)]
pub struct Cudnn {
    library: PathBuf,
    command: WorkerCommand,
    cache: Option<PathBuf>,
    opened: OnceLock<Result<Session, String>>,
}

#[derive(Debug)]
struct Session {
    version: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A worker that has not been told of a device.
    spare: Option<Worker>,
    /// By the device's properties.
    devices: BTreeMap<String, Known>,
    /// Why there is no worker any more.
    lost: Option<String>,
}

#[derive(Debug)]
struct Known {
    worker: Option<Worker>,
    cache: Cache,
}

impl Cudnn {
    /// The library of that path. Answers are kept in files in the folder `cache`, if there is one.
    #[must_use]
    pub const fn new(library: PathBuf, command: WorkerCommand, cache: Option<PathBuf>) -> Self {
        Self { library, command, cache, opened: OnceLock::new() }
    }

    /// Loads the library, if that is not done yet.
    ///
    /// # Errors
    /// Why its process does not start, or the library cannot be loaded or is too old.
    pub fn open(&self) -> Result<(), String> {
        self.session().map(|_| ())
    }

    /// Writes new answers to the cache.
    ///
    /// # Errors
    /// If a file cannot be written; nothing is lost but time.
    pub fn save(&self) -> io::Result<()> {
        let Some(Ok(session)) = self.opened.get() else { return Ok(()) };
        session.lock().devices.values_mut().try_for_each(|known| known.cache.save())
    }

    fn session(&self) -> Result<&Session, String> {
        let opened = self.opened.get_or_init(|| {
            let worker = Worker::start(&self.command, &self.library).map_err(|e| told(&e))?;
            let version = worker.version.clone();
            let state = Mutex::new(State { spare: Some(worker), ..State::default() });
            Ok(Session { version, state })
        });
        opened.as_ref().map_err(Clone::clone)
    }

    fn ask(&self, question: &Question, device: &Device) -> Option<Vec<Bytes>> {
        let session = self.session().ok()?;
        let State { spare, devices, lost } = &mut *session.lock();
        let known = devices.entry(properties::json(device)).or_insert_with_key(|properties| {
            let cache = Cache::open(self.cache.as_deref(), &session.version, properties);
            Known { worker: None, cache }
        });
        let line = question.to_line();
        if let Some(sizes) = known.cache.get(&line) {
            return Some(sizes.to_vec());
        }
        if lost.is_some() {
            return None;
        }
        let asked = self.worker(known, spare, device).and_then(|worker| worker.ask(question));
        match asked {
            Ok(sizes) => {
                let sizes = sizes?;
                known.cache.insert(line, sizes.clone());
                Some(sizes)
            }
            Err(error) => {
                *lost = Some(format!("{} when asked about `{line}`", told(&error)));
                known.worker = None;
                None
            }
        }
    }

    fn worker<'k>(
        &self,
        known: &'k mut Known,
        spare: &mut Option<Worker>,
        device: &Device,
    ) -> Result<&'k mut Worker, WorkerError> {
        if known.worker.is_none() {
            let mut worker = match spare.take() {
                Some(worker) => worker,
                None => Worker::start(&self.command, &self.library)?,
            };
            worker.introduce(device)?;
            known.worker = Some(worker);
        }
        Ok(known.worker.as_mut().expect("just put there"))
    }
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left is at worst a worker that is out of step, and that shows.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The plans of a convolution as `ask` answers about them; the fitted model's where it does not.
pub(crate) fn answered(
    question: &ConvolutionQuestion,
    device: &Device,
    ask: impl FnOnce(&Question) -> Option<Vec<Bytes>>,
) -> Plans {
    if !question.shape.uses_cudnn(device.compute_capability) {
        return Plans::none();
    }
    let sizes = Question::of(question.pass, &question.shape).and_then(|question| ask(&question));
    let Some(sizes) = sizes else {
        return FittedModel.predict(question, device.compute_capability);
    };
    let first = sizes.first().copied().unwrap_or(Bytes::ZERO);
    Plans { sizes, low: first, high: first, basis: Basis::Library }
}

impl ConvolutionSource for Cudnn {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let plans: Vec<_> = questions
            .iter()
            .map(|q| (*q, answered(q, device, |question| self.ask(question, device))))
            .collect();
        ConvolutionAnswers::new(self.origin(), plans).with_warning(self.complaint())
    }
}

impl ConvolutionPlans for Cudnn {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        let question = ConvolutionQuestion { pass, shape: *shape };
        answered(&question, device, |question| self.ask(question, device))
    }

    fn origin(&self) -> String {
        let library = self.library.display();
        match self.opened.get() {
            Some(Ok(session)) => format!("cuDNN {} at {library}", session.version),
            Some(Err(_)) => FittedModel::NAME.to_owned(),
            None => format!("cuDNN at {library}"),
        }
    }

    fn complaint(&self) -> Option<String> {
        let about = |text| format!("cuDNN at {} cannot be asked: {text}", self.library.display());
        match self.opened.get()? {
            Ok(session) => session.lock().lost.clone().map(about),
            Err(text) => Some(about(text.clone())),
        }
    }
}
