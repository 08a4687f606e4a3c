//! The engine of each process of the command: chosen when it imports PyTorch.
//!
//! The hook sends the folder of the PyTorch that the process found, and waits for the answer, which lists the
//! libraries of a virtual GPU.

use crate::request::{Engine, Request};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xmem_virtual_gpu::{PrepareError, VirtualGpu};

/// Folders of PyTorch for which libraries are made. A command has one, or a few; a script can name any number.
const MAX_FOLDERS: usize = 16;

/// The answers so far, by the folder of PyTorch.
#[derive(Debug, Default)]
pub(crate) struct Engines(BTreeMap<PathBuf, Answer>);

/// What the hook reads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    engine: &'static str,
    /// Libraries to load before PyTorch, in this order.
    libraries: Vec<PathBuf>,
    /// Variables to set before that.
    variables: BTreeMap<String, String>,
    /// Notes for the user.
    notes: Vec<String>,
    /// The reason why the requested engine cannot be had.
    error: Option<String>,
}

impl Engines {
    /// The answer to a process that found PyTorch in the folder `torch`; files go to `session`.
    pub(crate) fn answer(&mut self, request: &Request, torch: &Path, session: &Path) -> Answer {
        if let Some(answer) = self.0.get(torch) {
            return answer.clone();
        }
        if self.0.len() >= MAX_FOLDERS {
            return Answer::impossible("the command imports PyTorch from too many folders".to_owned());
        }
        let folder = session.join(format!("virtual-gpu-{}", self.0.len()));
        let answer = choose(request, torch, &folder);
        self.0.insert(torch.to_owned(), answer.clone());
        answer
    }
}

fn choose(request: &Request, torch: &Path, folder: &Path) -> Answer {
    match (request.engine, prepare(request, torch, folder)) {
        (Engine::Cpu, _) => Answer::cpu(None),
        (_, Ok(answer)) => answer,
        (Engine::VirtualGpu, Err(error)) => Answer::impossible(error.to_string()),
        (Engine::Auto, Err(error)) => {
            Answer::cpu(Some(format!("recorded on the CPU: no virtual GPU, because {error}")))
        }
    }
}

fn prepare(request: &Request, torch: &Path, folder: &Path) -> Result<Answer, PrepareError> {
    let prepared = VirtualGpu::new(request.device.clone()).prepare(torch, folder)?;
    Ok(Answer {
        engine: Engine::VirtualGpu.name(),
        libraries: prepared.libraries,
        variables: prepared.variables.into_iter().collect(),
        notes: prepared.notes,
        error: None,
    })
}

impl Answer {
    fn cpu(note: Option<String>) -> Self {
        Self {
            engine: Engine::Cpu.name(),
            libraries: Vec::new(),
            variables: BTreeMap::new(),
            notes: note.into_iter().collect(),
            error: None,
        }
    }

    fn impossible(error: String) -> Self {
        Self { error: Some(error), ..Self::cpu(None) }
    }
}
