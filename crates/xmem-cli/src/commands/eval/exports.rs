//! Graphs that `xmem export` writes of the commands of jobs, each once.

use super::rounds::Missing;
use super::store::{Key, Round};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use xmem::Device;
use xmem_recorder::{Engine, ExportedGraph, Purpose, RecordError, Request, Stacks};

/// The iteration that is exported.
const FIRST_STEP: NonZeroU32 = NonZeroU32::MIN;

/// Exports that are made, or under way.
#[derive(Debug, Default)]
pub(super) struct Exports(Mutex<BTreeMap<Key, Arc<Mutex<()>>>>);

impl Exports {
    /// Finds or makes an export. Others that want the same wait for it.
    pub(super) fn once(
        &self,
        key: &Key,
        find: impl FnOnce() -> Result<Round, Missing>,
    ) -> Result<Round, Missing> {
        let one = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(key.clone()).or_default())
        };
        let _held = one.lock().unwrap_or_else(PoisonError::into_inner);
        find()
    }
}

/// Exports the graph of a command to a file.
pub(super) fn export(
    command: &[OsString],
    file: &Path,
    device: &Device,
) -> Result<ExportedGraph, Missing> {
    let mut words = command.iter().cloned();
    let command = (words.next().unwrap_or_default(), words.collect());
    let request = Request {
        purpose: Purpose::ExportGraph,
        steps: FIRST_STEP,
        stacks: Stacks::Omitted,
        engine: Engine::Cpu,
        helper: std::env::current_exe().ok(),
        printed: Some(file.with_extension("log")),
        ..Request::new(command, file.to_owned(), device.clone())
    };
    let exported = xmem_recorder::export_graph(&request, &mut |_| {});
    exported.map_err(|error: RecordError| match error.is_interrupted() {
        true => Missing::Interrupted,
        false => Missing::Failed(format!("its graph cannot be exported: {error}")),
    })
}
