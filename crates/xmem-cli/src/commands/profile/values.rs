//! Jobs in which values decide, which a virtual GPU does not compute: where it was taken without being asked for, they are
//! recorded again on the CPU.

use super::args::ProfileArgs;
use super::{progress, range};
use crate::global::Global;
use crate::terminal::say;
use std::fs;
use xmem::Bytes;
use xmem::types::printable;
use xmem_recorder::{
    CutShort, Destination, Engine, RecordError, Recorded, Request, available_memory,
};

/// Exceptions that a wrong value may raise. Others, as that of a missing file, are raised on the CPU, too.
const OF_VALUES: [&str; 9] = [
    "ValueError",
    "RuntimeError",
    "AssertionError",
    "IndexError",
    "KeyError",
    "OverflowError",
    "ZeroDivisionError",
    "FloatingPointError",
    "LinAlgError",
];

type Result = std::result::Result<Recorded, RecordError>;

/// A recording of the same command on the CPU, if values decide about the one on a virtual GPU; else that one. `engine` is
/// the one that was taken.
pub(super) fn computed(
    result: Result,
    engine: Engine,
    request: &Request,
    args: &ProfileArgs,
    global: &Global,
) -> Result {
    if request.engine != Engine::Auto || engine != Engine::VirtualGpu {
        return result;
    }
    let Some(reason) = reason(&result) else { return result };
    let needed = result
        .as_ref()
        .ok()
        .and_then(|recorded| recorded.peaks)
        .map(|peaks| Bytes(peaks.allocated));
    let available = available_memory();
    if let Some(needed) = needed.filter(|needed| *needed > available) {
        say(&format!(
            "note: {reason}; not recorded on the CPU, as that takes about {needed} of memory, and {available} is \
             available (--engine cpu tries it)"
        ));
        return result;
    }
    say(&format!("note: {reason}: recorded again on the CPU"));
    if let Ok(Recorded { cut_short: Some(_), destination, .. }) = &result {
        // What it saved stands for nothing, and would be taken for a file of the user's.
        let _ = fs::remove_file(destination.path());
    }
    let request = Request { engine: Engine::Cpu, ..request.clone() };
    let (on_cpu, _) = progress::record(&request, args, global);
    let failure = match &on_cpu {
        Ok(Recorded { cut_short: None, .. }) => return on_cpu,
        Ok(Recorded { destination, .. }) => {
            if let Destination::Beside { part, .. } = destination {
                let _ = fs::remove_file(part);
            }
            "the recording on the CPU is incomplete".to_owned()
        }
        Err(error) => error.to_string(),
    };
    match result {
        Ok(recorded) if recorded.cut_short.is_none() => {
            say(&format!("note: the recording on the virtual GPU is kept: {failure}"));
            Ok(recorded)
        }
        _ => on_cpu,
    }
}

/// The reason for which a recording on a virtual GPU may be that of another job.
fn reason(result: &Result) -> Option<String> {
    match result {
        Ok(recorded) if !recorded.unbounded.is_empty() => {
            let operators = range::unbounded_operators(recorded);
            Some(format!(
                "sizes depend on values that a virtual GPU does not compute ({operators})"
            ))
        }
        Ok(Recorded { cut_short: Some(CutShort::Raised(text)), .. })
        | Err(RecordError::Raised { text })
            if OF_VALUES.iter().any(|name| text.starts_with(name)) =>
        {
            let text = printable(text);
            Some(format!("the script failed on the virtual GPU, which does not compute ({text})"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;
    use xmem_recorder::CommandEnd;

    #[test]
    fn exceptions_that_values_may_raise_are_no_answer_of_a_virtual_gpu() {
        let raised = |text: &str| reason(&Err(RecordError::Raised { text: text.to_owned() }));
        assert_eq!(
            raised("ValueError at vae.py:33").as_deref(),
            Some(
                "the script failed on the virtual GPU, which does not compute (ValueError at vae.py:33)"
            )
        );
        for text in ["FileNotFoundError at train.py:3", "ModuleNotFoundError", "NameError"] {
            assert_eq!(raised(text), None, "{text}");
        }
        let end = CommandEnd::Ended(ExitStatus::default());
        assert_eq!(reason(&Err(RecordError::NothingRan { end, missing: None })), None);
    }
}
