//! The check for SkyPilot, which chooses among GPUs by their price: those on which the job fits.

use super::args::CheckArgs;
use super::question::{self, Questions};
use super::subject::Subject;
use super::{answers, error::CheckFailure};
use crate::commands::Outcome;
use crate::config::Config;
use crate::exit::Exit;
use crate::global::Global;
use crate::output;
use xmem::Device;
use xmem_gate::Decision;
use xmem_report::check;
use xmem_report::text::{Color, Style};

/// Prints the GPUs as the resources of a task.
pub(super) fn run(args: &CheckArgs, global: &Global) -> Outcome {
    let config = Config::load(&args.settings)?;
    let mut subject = Subject::of(args, &config)?;
    let mut gpus = xmem_gate::accelerators();
    let is_asked = |device: &Device| subject.devices.iter().any(|asked| asked.name == device.name);
    gpus.retain(|gpu| gpu.devices.iter().any(|device| is_asked(device)));
    if gpus.is_empty() {
        let device = subject.devices[0].name.clone();
        return Err(CheckFailure::NotOfSkypilot { device }.into());
    }
    let traces = answers::traces(args, &subject, global)?;
    let questions = Questions::new(args, &config, &subject)?;
    let mut holding = gpus.clone();
    for trace in &traces {
        let holds = questions.holds(trace, &holding, global)?;
        let mut holds = holds.into_iter();
        holding.retain(|_| holds.next() == Some(true));
    }
    let count = subject.gpus.max(u32::try_from(traces.len()).unwrap_or(u32::MAX));
    let names: Vec<&str> = holding.iter().map(|gpu| gpu.name).collect();
    let margin = question::margin(args, &config, &subject);
    let style = Style { color: Color::Plain, width: 120 };
    let mut lines = Vec::new();
    if holding.is_empty() {
        // Why not, of the largest.
        let largest = gpus.iter().filter_map(|gpu| gpu.devices.last()).max_by_key(|gpu| gpu.memory);
        subject.devices.clear();
        subject.devices.extend(largest.map(|&device| device.clone()));
        let questions = Questions::new(args, &config, &subject)?;
        for trace in &traces {
            let document = questions.answer(trace, global)?;
            if document.decision() == Decision::NoVerdict {
                return Err(CheckFailure::NoNumber.into());
            }
            lines.push(check::text_brief(&document, &style));
        }
    }
    let page = check::skypilot(&names, count, &margin.to_string(), &lines.concat());
    output::write(page.as_bytes(), args.decision.output.as_deref())?;
    Ok(if holding.is_empty() { Exit::DoesNotFit } else { Exit::Fits })
}
