//! The answers of cuDNN that are kept with a recording: `xmem.convolutions.1`.

use serde::Serialize;
use std::collections::BTreeMap;
use xmem::convolutions::KeptAnswers;

/// The value of the top-level key `xmem_convolutions` of a trace.
#[derive(Serialize)]
pub struct ConvolutionsDocument<'a> {
    schema: &'static str,
    answers: Vec<AnswersDto<'a>>,
}

#[derive(Serialize)]
struct AnswersDto<'a> {
    release: &'a str,
    device: &'a str,
    workspaces: BTreeMap<&'a str, Vec<u64>>,
}

impl<'a> ConvolutionsDocument<'a> {
    /// The document for the answers about some devices.
    #[must_use]
    pub fn new(kept: &'a [KeptAnswers]) -> Self {
        let answers = kept.iter().map(|kept| AnswersDto {
            release: &kept.release,
            device: &kept.device,
            workspaces: kept
                .workspaces
                .iter()
                .map(|(question, sizes)| {
                    (question.as_str(), sizes.iter().map(|s| s.get()).collect())
                })
                .collect(),
        });
        Self { schema: "xmem.convolutions.1", answers: answers.collect() }
    }
}
