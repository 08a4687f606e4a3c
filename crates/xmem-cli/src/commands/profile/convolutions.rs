//! The answers of cuDNN about a job that has been recorded, which are kept with the recording: `replay` has them
//! on a machine without cuDNN.

use crate::cudnn;
use std::sync::Arc;
use std::time::Duration;
use xmem::analyzer::recording::CONVOLUTIONS_KEY;
use xmem::convolutions::FittedModel;
use xmem::predict::CapacitySearch;
use xmem::{Device, Estimate, Job, ReadOptions};
use xmem_recorder::{Engine, Recorded};
use xmem_report::json::{self, ConvolutionsDocument};

/// The longest time that cuDNN is asked.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks the cuDNN of the recorded environment, or one that is found, and adds its answers to the recording. The
/// result is a line about that.
pub(crate) fn keep(recorded: &mut Recorded, named: &Device) -> Option<String> {
    if !recorded.has_convolutions {
        return None;
    }
    let devices = match recorded.engine {
        Engine::Cpu => devices(named),
        // The recording has the workspaces. Plans matter where memory is shorter, on GPUs of this kind.
        Engine::VirtualGpu => vec![named],
        Engine::Auto => return None,
    };
    let settings = cudnn::settings_of_environment();
    let path = recorded.cudnn.clone();
    let library = || settings.library_of_recording(path.as_deref());
    library()?;
    let job = Job::from_path(recorded.destination.path(), &ReadOptions::default()).ok()?;
    let estimate = Estimate::builder(named.clone())
        .convolutions(Arc::new(FittedModel))
        .capacity_search(CapacitySearch::Run)
        .build();
    let questions = estimate.convolution_questions(&job).ok()?;
    let kept = xmem_cudnn::keep(library, &devices, &questions, LIMIT);
    let first = kept.first()?;
    let (release, convolutions, count) = (&first.release, first.workspaces.len(), kept.len());
    let gpus = if count == 1 { "GPU" } else { "GPUs of different kinds" };
    let line = format!(
        "workspaces of {convolutions} convolutions from cuDNN {release}, for {count} {gpus}"
    );
    let value = json::line(&ConvolutionsDocument::new(&kept));
    match xmem_recorder::add_metadata(recorded, CONVOLUTIONS_KEY, value.trim_end()) {
        Ok(()) => Some(line),
        Err(error) => {
            tracing::warn!(%error, "cannot add the answers of cuDNN to the recording");
            None
        }
    }
}

/// The device that was named, and one of each other compute capability: the answers for a device are those for
/// all of its compute capability.
fn devices(named: &Device) -> Vec<&Device> {
    let mut devices = vec![named];
    for device in xmem::devices::devices() {
        if devices.iter().all(|other| other.compute_capability != device.compute_capability) {
            devices.push(device);
        }
    }
    devices
}
