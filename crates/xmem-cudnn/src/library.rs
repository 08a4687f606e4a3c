//! A cuDNN library as a source of plans.

use crate::cache::Cache;
use crate::process::{Worker, WorkerCommand, WorkerError};
use crate::properties;
use crate::query::Query;
use crate::worker::with_causes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use xmem_convolutions::{
    Basis, ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, FittedModel, Plans,
};
use xmem_profiles::Device;
use xmem_types::Bytes;

/// A cuDNN library as a source of plans, loaded in a process of its own.
///
/// The process starts with the first question. Where the library has no plan, cannot be loaded or
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
    /// A worker that has no device yet.
    unassigned: Option<Worker>,
    /// By the device's properties.
    devices: BTreeMap<String, DeviceState>,
    /// The reason why the workers are no longer asked.
    failure: Option<String>,
}

#[derive(Debug)]
struct DeviceState {
    worker: Option<Worker>,
    cache: Cache,
}

impl Cudnn {
    /// The library at that path. Answers are cached in files in the folder `cache`, if one is given.
    #[must_use]
    pub const fn new(library: PathBuf, command: WorkerCommand, cache: Option<PathBuf>) -> Self {
        Self { library, command, cache, opened: OnceLock::new() }
    }

    /// Starts the process and loads the library, unless that has been done.
    ///
    /// # Errors
    /// The reason why the process does not start, or the library cannot be loaded or is too old.
    pub fn open(&self) -> Result<(), String> {
        self.session().map(|_| ())
    }

    /// Writes new answers to the cache.
    fn save(&self) -> io::Result<()> {
        let Some(Ok(session)) = self.opened.get() else { return Ok(()) };
        session.lock().devices.values_mut().try_for_each(|device| device.cache.save())
    }

    fn session(&self) -> Result<&Session, String> {
        let opened = self.opened.get_or_init(|| {
            let worker =
                Worker::start(&self.command, &self.library).map_err(|e| with_causes(&e))?;
            let version = worker.version.clone();
            let state = Mutex::new(State { unassigned: Some(worker), ..State::default() });
            Ok(Session { version, state })
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// The sizes from the cache or from a worker; `None` if cuDNN has no plan.
    ///
    /// # Errors
    /// The reason why the library cannot be queried.
    fn sizes(&self, query: &Query, device: &Device) -> Result<Option<Vec<Bytes>>, String> {
        let session = self.session()?;
        let State { unassigned, devices, failure } = &mut *session.lock();
        let state = devices.entry(properties::json(device)).or_insert_with_key(|properties| {
            let cache = Cache::open(self.cache.as_deref(), &session.version, properties);
            DeviceState { worker: None, cache }
        });
        let line = query.to_line();
        if let Some(sizes) = state.cache.get(&line) {
            return Ok(Some(sizes.to_vec()));
        }
        if let Some(failure) = failure {
            return Err(failure.clone());
        }
        let worker = self.worker(state, unassigned, device);
        match worker.and_then(|worker| worker.ask(query)) {
            Ok(None) => Ok(None),
            Ok(Some(sizes)) => {
                state.cache.insert(line, sizes.clone());
                Ok(Some(sizes))
            }
            Err(error) => {
                let reason = format!("{}, at the question `{line}`", with_causes(&error));
                state.worker = None;
                Err(failure.insert(reason).clone())
            }
        }
    }

    fn worker<'s>(
        &self,
        state: &'s mut DeviceState,
        unassigned: &mut Option<Worker>,
        device: &Device,
    ) -> Result<&'s mut Worker, WorkerError> {
        if state.worker.is_none() {
            let mut worker = match unassigned.take() {
                Some(worker) => worker,
                None => Worker::start(&self.command, &self.library)?,
            };
            worker.send_device(device)?;
            state.worker = Some(worker);
        }
        Ok(state.worker.as_mut().expect("set above"))
    }

    fn source(&self) -> String {
        let library = self.library.display();
        match self.opened.get() {
            Some(Ok(session)) => format!("cuDNN {} at {library}", session.version),
            Some(Err(_)) => FittedModel::NAME.to_owned(),
            None => format!("cuDNN at {library}"),
        }
    }

    fn warning(&self, reason: &str) -> String {
        format!(
            "cannot query cuDNN at {}: {reason}; the {} answers instead",
            self.library.display(),
            FittedModel::NAME
        )
    }
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves at worst a worker that is out of step, which is an error.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The plans with the sizes that `sizes` finds for a convolution; the fitted model's if it finds none.
pub(crate) fn plans(
    question: &ConvolutionQuestion,
    device: &Device,
    sizes: impl FnOnce(&Query) -> Option<Vec<Bytes>>,
) -> Plans {
    if !question.shape.uses_cudnn(device.compute_capability) {
        return Plans::none();
    }
    let Some(sizes) = Query::new(question).and_then(|query| sizes(&query)) else {
        return FittedModel.predict(question, device.compute_capability);
    };
    let first = sizes.first().copied().unwrap_or(Bytes::ZERO);
    Plans { sizes, low: first, high: first, basis: Basis::Library }
}

impl ConvolutionSource for Cudnn {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let mut failure = None;
        let mut sizes = |query: &Query| match self.sizes(query, device) {
            Ok(sizes) => sizes,
            Err(reason) => {
                failure.get_or_insert(reason);
                None
            }
        };
        let plans: Vec<_> = questions
            .iter()
            .map(|question| (*question, plans(question, device, &mut sizes)))
            .collect();
        if let Err(error) = self.save() {
            tracing::warn!(%error, "cannot write the cache of cuDNN's answers");
        }
        let warning = failure.map(|reason| self.warning(&reason));
        ConvolutionAnswers::new(self.source(), plans).with_warning(warning)
    }
}
