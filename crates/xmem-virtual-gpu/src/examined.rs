//! What is found out about an environment once, for every virtual GPU in it.

use crate::environment::{Environment, Requirements};
use crate::error::PrepareError;
use crate::kernels::Kernels;
use crate::native;
use crate::stand_ins::{self, Library};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the libraries of an environment need of CUDA, and the libraries that stand in for it.
#[derive(Debug)]
pub struct Examined {
    pub(crate) requirements: Requirements,
    pub(crate) stand_ins: Vec<Library>,
    /// Libraries whose functions had to be guessed from what torch needs.
    pub(crate) guessed: Vec<String>,
    /// What PyTorch's kernels were compiled for, where that is known.
    pub(crate) kernels: Option<Kernels>,
    /// The package and its version, such as `PyTorch 2.11.0+cu130`.
    pub(crate) torch: String,
}

impl Environment {
    /// Reads the libraries of this environment.
    ///
    /// # Errors
    /// If the system or the environment cannot be used.
    pub fn examine(&self) -> Result<Examined, PrepareError> {
        if native::LIBRARY.is_none() {
            return Err(PrepareError::NotSupported);
        }
        let requirements = self.requirements()?;
        let (stand_ins, guessed) = stand_ins::all(&requirements)
            .map_err(|(library, source)| PrepareError::StandIn { library, source })?;
        let (kernels, torch) = (self.kernels(), self.torch_version());
        Ok(Examined { requirements, stand_ins, guessed, kernels, torch })
    }
}

/// The environments that were examined. Copies share them, so that many runs in one environment examine it once: it must not
/// change while they are in use.
#[derive(Clone, Debug, Default)]
pub struct Environments(Arc<Mutex<BTreeMap<Environment, Arc<Examined>>>>);

impl Environments {
    /// What there is to know about an environment, which is examined if it was not before.
    ///
    /// # Errors
    /// As [`Environment::examine`]; that is not kept.
    pub fn examined(&self, environment: &Environment) -> Result<Arc<Examined>, PrepareError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(examined) = known().get(environment) {
            return Ok(Arc::clone(examined));
        }
        let examined = Arc::new(environment.examine()?);
        known().insert(environment.clone(), Arc::clone(&examined));
        Ok(examined)
    }
}
