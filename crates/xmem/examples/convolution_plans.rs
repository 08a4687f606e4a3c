//! Convolution plans from a source of one's own: the workspaces of cuDNN, as measured elsewhere.
//!
//! `cargo run -p xmem --example convolution_plans`
//!
//! The lowering asks about all convolutions of a job at once. A source answers with plain data, which
//! the answer keeps: it can be inspected, and given to another estimate as its source.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;
use xmem::convolutions::{
    Basis, ConvPass, ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, FittedModel, Plans,
};
use xmem::{Bytes, Device, Estimate, Job, ReadOptions};

const TRACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/resnet18_sgdm/trace.json.zst");

/// The plans of a machine on which the gradients of weights took 256 MiB, and where memory is short
/// nothing. All other convolutions are left to the model that comes with xmem.
#[derive(Debug)]
struct Measured;

impl ConvolutionSource for Measured {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let model = FittedModel.answer(device, questions);
        let measured = Plans {
            sizes: vec![Bytes::mib(256), Bytes::ZERO],
            low: Bytes::mib(256),
            high: Bytes::mib(256),
            basis: Basis::Library,
            trial: None,
        };
        let plans = questions.iter().map(|question| {
            let own = (question.pass == ConvPass::BackwardWeight).then(|| measured.clone());
            let others = || model.get(question).cloned().unwrap_or_else(Plans::none);
            (*question, own.unwrap_or_else(others))
        });
        ConvolutionAnswers::new("measured on my machine", plans)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::from_path(TRACE, &ReadOptions::default())?;
    let device = xmem::find("rtx3060-12g")?;
    let with = |source: Arc<dyn ConvolutionSource>| {
        Estimate::builder(device.clone()).convolutions(source).build().job(&job)
    };

    let model = with(Arc::new(FittedModel))?;
    let measured = with(Arc::new(Measured))?;
    for answer in [&model, &measured] {
        let (source, count) = (answer.convolutions.source(), answer.convolutions.iter().count());
        println!("{count} convolutions, {source}: {}", answer.memory.peak.reserved);
    }
    if measured.memory.peak.reserved <= model.memory.peak.reserved {
        return Err("larger workspaces need more memory".into());
    }

    // The answers of one estimate are a source for others.
    let again = with(Arc::new(measured.convolutions.clone()))?;
    if again.memory.peak != measured.memory.peak {
        return Err("the same plans give the same peak".into());
    }
    Ok(())
}
