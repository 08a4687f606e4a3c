//! The settings of the page, as JSON.

use crate::error::SessionError;
use serde::Deserialize;
use xmem_estimate::{JobSettings, LossChoice, Purpose};

/// The settings. What is left out is as it was noted beside the graph.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageSettings {
    /// The device's name.
    pub(crate) device: String,
    training: Option<bool>,
    optimizer: Option<String>,
    loss: Option<String>,
    accumulation: Option<u32>,
    autocast: Option<String>,
    dtype: Option<String>,
    #[serde(default)]
    checkpoints: Vec<String>,
    batch: Option<u32>,
    length: Option<u32>,
}

impl PageSettings {
    /// The settings of the job.
    pub(crate) fn job(self) -> Result<JobSettings, SessionError> {
        let known = |name: String| LossChoice::named(&name).ok_or(SessionError::Loss { name });
        Ok(JobSettings {
            purpose: self.training.map(|training| match training {
                true => Purpose::Training,
                false => Purpose::Inference,
            }),
            optimizer: self.optimizer,
            loss: self.loss.map(known).transpose()?,
            accumulation: self.accumulation,
            autocast: self.autocast,
            dtype: self.dtype,
            checkpoints: self.checkpoints,
            frozen: Vec::new(),
            batch: self.batch,
            length: self.length,
            ranks: None,
        })
    }
}
