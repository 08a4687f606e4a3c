//! A cuDNN library as a source of plans.

use crate::cache::Cache;
use crate::process::{Patience, Worker, WorkerCommand, WorkerError};
use crate::properties;
use crate::query::Query;
use crate::worker::with_causes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use xmem_convolutions::{
    ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, CudnnRelease, FittedModel,
    Implausible, LibraryPlans, Plans,
};
use xmem_devices::Device;
use xmem_types::Bytes;

/// A cuDNN library as a source of plans, loaded in a process of its own.
///
/// The process starts with the first question. Where the library has no plan, cannot be loaded or
/// its process has died, the fitted model answers. If the answers about a job cannot be those of cuDNN, the
/// model answers all questions of that job.
#[derive(Debug)]
pub struct Cudnn {
    library: PathBuf,
    command: WorkerCommand,
    cache: Option<PathBuf>,
    patience: Duration,
    doubt: Option<String>,
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
        let patience = Patience::JOB;
        Self { library, command, cache, patience, doubt: None, opened: OnceLock::new() }
    }

    /// Sets the time that all questions of one job may take together, with the start of the process; one
    /// minute otherwise. After that, the process is ended and the library asked no more.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Adds the reason why the answers may not be believed.
    pub(crate) fn with_doubt(self, doubt: Option<String>) -> Self {
        Self { doubt, ..self }
    }

    /// Starts the process and loads the library, unless that has been done.
    ///
    /// # Errors
    /// The reason why the process does not start, or the library cannot be loaded or is too old.
    pub fn open(&self) -> Result<(), String> {
        self.session(&mut Patience::new(self.patience)).map(|_| ())
    }

    /// The library's release, and the workspaces that it names for the convolutions that reach cuDNN, in the
    /// order of their plans.
    ///
    /// # Errors
    /// The reason why the library cannot be queried, or not to the end.
    pub(crate) fn workspaces(
        &self,
        device: &Device,
        questions: &[ConvolutionQuestion],
    ) -> Result<(String, BTreeMap<String, Vec<Bytes>>), String> {
        let mut patience = Patience::new(self.patience);
        let (mut found, mut new) = (BTreeMap::new(), Vec::new());
        let on = device.compute_capability;
        let asked = questions.iter().filter(|question| question.shape.uses_cudnn(on));
        for query in asked.filter_map(Query::new) {
            if let Some(sizes) = self.sizes(&query, device, &mut patience, &mut new)? {
                found.insert(query.to_line(), sizes);
            }
        }
        if let Err(error) = self.save(device, new) {
            tracing::warn!(%error, "cannot write the cache of cuDNN's answers");
        }
        Ok((self.session(&mut patience)?.version.clone(), found))
    }

    /// Writes new answers about a device to the cache.
    fn save(&self, device: &Device, new: Vec<(String, Vec<Bytes>)>) -> io::Result<()> {
        let Some(Ok(session)) = self.opened.get() else { return Ok(()) };
        let mut state = session.lock();
        let Some(state) = state.devices.get_mut(&properties::json(device)) else { return Ok(()) };
        for (question, sizes) in new {
            state.cache.insert(question, sizes);
        }
        state.cache.save()
    }

    fn session(&self, patience: &mut Patience) -> Result<&Session, String> {
        let opened = self.opened.get_or_init(|| {
            let worker = Worker::start(&self.command, &self.library, patience)
                .map_err(|e| with_causes(&e))?;
            let version = worker.version.clone();
            let state = Mutex::new(State { unassigned: Some(worker), ..State::default() });
            Ok(Session { version, state })
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// The sizes from the cache or from a worker, which are added to the `new` ones; `None` if cuDNN has
    /// no plan.
    ///
    /// # Errors
    /// The reason why the library cannot be queried.
    fn sizes(
        &self,
        query: &Query,
        device: &Device,
        patience: &mut Patience,
        new: &mut Vec<(String, Vec<Bytes>)>,
    ) -> Result<Option<Vec<Bytes>>, String> {
        let session = self.session(patience)?;
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
        let worker = self.worker(state, unassigned, device, patience);
        match worker.and_then(|worker| worker.ask(query, patience)) {
            Ok(None) => Ok(None),
            Ok(Some(sizes)) => {
                new.push((line, sizes.clone()));
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
        patience: &mut Patience,
    ) -> Result<&'s mut Worker, WorkerError> {
        if state.worker.is_none() {
            let mut worker = match unassigned.take() {
                Some(worker) => worker,
                None => Worker::start(&self.command, &self.library, patience)?,
            };
            worker.send_device(device)?;
            state.worker = Some(worker);
        }
        Ok(state.worker.as_mut().expect("set above"))
    }

    /// The release, once the library was loaded.
    fn release(&self) -> Option<CudnnRelease> {
        CudnnRelease::parse(&self.opened.get()?.as_ref().ok()?.version)
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

/// The plans with the sizes that `sizes` finds for the convolutions of a job; the fitted model's for those
/// that it finds none for.
///
/// # Errors
/// If the sizes cannot be those of cuDNN.
pub(crate) fn plans(
    questions: &[ConvolutionQuestion],
    device: &Device,
    mut sizes: impl FnMut(&Query) -> Option<Vec<Bytes>>,
) -> Result<Vec<(ConvolutionQuestion, Plans)>, Implausible> {
    let on = device.compute_capability;
    let mut library = LibraryPlans::new(on);
    let mut plans = |question: &ConvolutionQuestion| {
        if !question.shape.uses_cudnn(on) {
            return Ok(Plans::none());
        }
        match Query::new(question).and_then(|query| sizes(&query)) {
            Some(sizes) => library.plans(question, sizes),
            None => Ok(FittedModel.predict(question, on)),
        }
    };
    let plans: Result<Vec<_>, _> =
        questions.iter().map(|question| Ok((*question, plans(question)?))).collect();
    library.check()?;
    plans
}

/// The fitted model's answers, where those of a source cannot be cuDNN's.
pub(crate) fn instead_of(
    source: &str,
    reason: &Implausible,
    device: &Device,
    questions: &[ConvolutionQuestion],
) -> ConvolutionAnswers {
    let warning = format!(
        "{source} gave answers that cuDNN does not give: {reason}; the {} answers instead",
        FittedModel::NAME
    );
    FittedModel.answer(device, questions).with_warning(Some(warning))
}

impl ConvolutionSource for Cudnn {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let (mut failure, mut new) = (None, Vec::new());
        let mut patience = Patience::new(self.patience);
        let plans = plans(questions, device, |query| {
            self.sizes(query, device, &mut patience, &mut new).unwrap_or_else(|reason| {
                failure.get_or_insert(reason);
                None
            })
        });
        let plans = match plans {
            Ok(plans) => plans,
            Err(reason) => return instead_of(&self.source(), &reason, device, questions),
        };
        if let Err(error) = self.save(device, new) {
            tracing::warn!(%error, "cannot write the cache of cuDNN's answers");
        }
        let warning = failure.map(|reason| self.warning(&reason));
        ConvolutionAnswers::new(self.source(), plans)
            .with_warning(warning)
            .with_doubt(self.doubt.clone())
            .with_release(self.release())
    }
}
