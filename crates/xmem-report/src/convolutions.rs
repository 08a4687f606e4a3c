//! The answers of cuDNN that are kept with a recording: `xmem.convolutions.1`.

use serde::Serialize;
use std::collections::BTreeMap;
use xmem::convolutions::KeptAnswers;

/// The answers of cuDNN about the convolutions of a job, which xmem profile keeps with its recording: the value of the
/// top-level key xmem_convolutions of a trace. Readers ignore unknown keys.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = true)))]
pub struct ConvolutionsDocument<'a> {
    schema: &'static str,
    /// One entry for each device that the library was asked about.
    answers: Vec<AnswersDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = true)))]
struct AnswersDto<'a> {
    /// The release of the library (9.19.0).
    release: &'a str,
    /// The properties by which the device was described to the library: JSON, as text.
    device: &'a str,
    /// For each convolution, the workspaces of its plans in bytes, in the order in which PyTorch tries them. The name
    /// of a convolution has the pass (forward, backward-data, backward-weight), element type, memory format, the sizes
    /// of input, weight and output, then stride, padding and dilation; with torch.backends.cudnn.benchmark it begins
    /// with all.
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
