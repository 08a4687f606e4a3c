//! The engine of each process of the command: chosen when it imports PyTorch.
//!
//! The hook sends the folder of the PyTorch that the process found, and waits for the answer, which lists the
//! libraries of a virtual GPU.

use crate::message::FoundTorch;
use crate::request::{Engine, Request, Timing};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use xmem_tempfiles::PrivateFolder;
use xmem_virtual_gpu::{Completion, Environment, PrepareError, VirtualGpu};

/// Folders of PyTorch for which libraries are made. A command has one, or a few; a script can name any number.
const MAX_FOLDERS: usize = 16;

/// The answers so far, by the folder of PyTorch.
#[derive(Debug, Default)]
pub(crate) struct Engines(BTreeMap<PathBuf, (Option<PrivateFolder>, Answer)>);

/// What the hook reads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    engine: &'static str,
    /// Libraries to load before PyTorch, in this order.
    libraries: Vec<PathBuf>,
    /// Variables to set before that.
    variables: BTreeMap<String, String>,
    /// Variables to remove before that.
    removed: Vec<String>,
    /// Notes for the user.
    notes: Vec<String>,
    /// The file with what the libraries could not do.
    log: Option<PathBuf>,
    /// The reason why the requested engine cannot be had.
    error: Option<String>,
    /// Whether the reason is that PyTorch has no kernels for the device.
    no_kernels: bool,
}

impl Engines {
    /// The answer to a process that found PyTorch.
    pub(crate) fn answer(&mut self, request: &Request, found: &FoundTorch) -> Answer {
        if let Some((_, answer)) = self.0.get(&found.path) {
            return answer.clone();
        }
        if self.0.len() >= MAX_FOLDERS {
            return Answer::impossible(
                "the command imports PyTorch from too many folders".to_owned(),
            );
        }
        let (folder, answer) = choose(request, found);
        self.0.insert(found.path.clone(), (folder, answer.clone()));
        answer
    }
}

/// The engine, and the folder of its files.
fn choose(request: &Request, found: &FoundTorch) -> (Option<PrivateFolder>, Answer) {
    if request.engine == Engine::Cpu {
        return (None, Answer::cpu(None));
    }
    match prepare(request, found) {
        Ok((folder, mut answer)) => {
            if request.engine == Engine::Auto {
                answer.notes.push(format!(
                    "recorded on a virtual {} (--engine cpu computes on the CPU instead)",
                    request.device.title
                ));
            }
            (Some(folder), answer)
        }
        Err(error) if request.engine == Engine::Auto => {
            (None, Answer::cpu(Some(format!("recorded on the CPU, not on a virtual GPU: {error}"))))
        }
        Err(error) => {
            let no_kernels = matches!(error.downcast_ref(), Some(PrepareError::NoKernels { .. }));
            (None, Answer { no_kernels, ..Answer::impossible(error.to_string()) })
        }
    }
}

fn prepare(
    request: &Request,
    found: &FoundTorch,
) -> Result<(PrivateFolder, Answer), Box<dyn std::error::Error>> {
    // Programs can often not be run from shared memory, as in containers of Docker.
    let folder = PrivateFolder::for_programs()?;
    let environment = Environment::new(found.path.clone(), found.packages.clone())
        .with_libraries(found.libraries.iter().cloned());
    let gpu = VirtualGpu {
        capacity: request.capacity,
        devices: request.gpus.get() as usize,
        completion: if request.timing == Timing::RunAhead {
            Completion::HostWaits
        } else {
            Completion::AtOnce
        },
        ..VirtualGpu::new(request.device.clone())
    };
    let prepared = gpu.prepare(&*request.environments.examined(&environment)?, folder.path())?;
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let answer = Answer {
        engine: Engine::VirtualGpu.name(),
        libraries: prepared.libraries,
        variables: prepared.variables.into_iter().map(|(n, v)| (text(n), text(v))).collect(),
        removed: prepared.removed.into_iter().map(text).collect(),
        log: Some(prepared.log.path().to_owned()),
        notes: prepared.notes.iter().map(ToString::to_string).collect(),
        error: None,
        no_kernels: false,
    };
    Ok((folder, answer))
}

impl Answer {
    fn cpu(note: Option<String>) -> Self {
        Self {
            engine: Engine::Cpu.name(),
            libraries: Vec::new(),
            variables: BTreeMap::new(),
            removed: Vec::new(),
            notes: note.into_iter().collect(),
            log: None,
            error: None,
            no_kernels: false,
        }
    }

    fn impossible(error: String) -> Self {
        Self { error: Some(error), ..Self::cpu(None) }
    }
}
