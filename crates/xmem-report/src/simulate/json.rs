//! `xmem.simulate/1`, `xmem.simulate-step/1`, `xmem.simulate-end/1`: the results of a list of
//! operations, written during the simulation. The entries of `results` and `trace` have the form of
//! recordings of PyTorch's own allocator.

use super::results::{EventDto, ResultDto, SegmentDto, SummaryDto};
use crate::encode;
use crate::findings::FindingDto;
use crate::setup::SetupDto;
use serde::Serialize;
use std::io::{self, Write};
use xmem::Bytes;
use xmem::predict::{Simulation, SimulationStep};
use xmem::simulator::Completion;

/// The layout of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulateForm {
    /// One document, with an operation's result on each line.
    Document,
    /// One document per line: one for each operation, and one at the end.
    Lines,
}

/// The operations after which the segments are listed, block by block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentDetail {
    /// After every operation.
    Every,
    /// After the last operation.
    End,
    /// Never.
    None,
}

/// Writes the results of a simulation step by step.
pub struct SimulateWriter<'a, W> {
    out: W,
    form: SimulateForm,
    segments: SegmentDetail,
    /// The number of operations.
    operations: usize,
    input: &'a str,
    /// The buffer for the entry being written: it collects the serializer's many small writes.
    entry: Vec<u8>,
}

/// The facts that are known before the first operation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HeadDto<'a> {
    /// The list, as given on the command line.
    input: &'a str,
    /// Options in the syntax of PYTORCH_CUDA_ALLOC_CONF; empty if there are none.
    conf: &'a str,
    /// The PyTorch release of the allocator, major and minor.
    torch: String,
    /// Device memory available to the allocator at the beginning; null without a limit.
    capacity: Option<u64>,
    /// The total that the device reports; null if it reports none.
    total: Option<u64>,
    /// The order of the addresses of new segments.
    #[cfg_attr(test, schemars(extend("enum" = ["driver", "ascending", "descending", "recorded"])))]
    address_order: &'static str,
    /// When work on other streams is done: at once, or when the program waits for it.
    #[cfg_attr(test, schemars(extend("enum" = ["immediate", "held"])))]
    events: &'static str,
    allocator: SetupDto<'a>,
    /// Odd or missing content.
    diagnostics: Vec<FindingDto<'a>>,
}

/// The result of one operation, as printed by `xmem simulate --format jsonl`. All sizes are integers in bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StepLine {
    schema: &'static str,
    /// The operation, counted from 0.
    index: usize,
    result: ResultDto,
    /// The events of this operation.
    trace: Vec<EventDto>,
}

/// The last line of `xmem simulate --format jsonl`. All sizes are integers in bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EndLine<'a> {
    schema: &'static str,
    #[serde(flatten)]
    head: HeadDto<'a>,
    summary: SummaryDto,
}

/// The output of `xmem simulate --format json`. All sizes are integers in bytes.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "a document may be large, and is written in parts")]
pub(crate) struct SimulateDocument<'a> {
    schema: &'static str,
    #[schemars(flatten)]
    head: HeadDto<'a>,
    /// The result of each operation, in order.
    results: Vec<ResultDto>,
    /// The allocator's event list.
    trace: Vec<EventDto>,
    summary: SummaryDto,
}

impl<'a, W: Write> SimulateWriter<'a, W> {
    /// Starts a writer for `operations` operations of `input`, as the user named it.
    pub fn new(
        out: W,
        form: SimulateForm,
        segments: SegmentDetail,
        operations: usize,
        input: &'a str,
    ) -> Self {
        Self { out, form, segments, operations, input, entry: Vec::new() }
    }

    /// Writes the start of the document, before the first step.
    ///
    /// # Errors
    /// If the output fails.
    pub fn begin(&mut self, simulation: &Simulation) -> io::Result<()> {
        if self.form == SimulateForm::Lines {
            return Ok(());
        }
        write!(self.out, "{{\n  \"schema\": \"xmem.simulate/1\"")?;
        let head = serde_json::to_value(HeadDto::new(self.input, simulation))?;
        for (key, value) in head.as_object().into_iter().flatten() {
            write!(self.out, ",\n  \"{key}\": {}", json(value))?;
        }
        write!(self.out, ",\n  \"results\": [")
    }

    /// Writes the result of a step. The events of a document are kept until the end; those of lines
    /// are written at once and dropped.
    ///
    /// # Errors
    /// If the output fails.
    pub fn step(&mut self, step: &SimulationStep, simulation: &mut Simulation) -> io::Result<()> {
        let listed = match self.segments {
            SegmentDetail::Every => true,
            SegmentDetail::End => step.index + 1 == self.operations,
            SegmentDetail::None => false,
        };
        let segments = listed.then(|| {
            let segments = simulation.segments();
            segments.iter().map(|segment| SegmentDto::new(simulation, segment)).collect()
        });
        let result = ResultDto::new(step, segments);
        match self.form {
            SimulateForm::Document => {
                self.entry(&result, step.index == 0)?;
            }
            SimulateForm::Lines => {
                let events = simulation.events().iter();
                let trace = events.map(|event| EventDto::new(simulation, event)).collect();
                let schema = "xmem.simulate-step/1";
                let line = StepLine { schema, index: step.index, result, trace };
                self.line(&line)?;
                simulation.clear_events();
            }
        }
        Ok(())
    }

    /// Writes the end of the document, after the last step.
    ///
    /// # Errors
    /// If the output fails.
    pub fn end(&mut self, simulation: &Simulation) -> io::Result<()> {
        let summary = SummaryDto::from(simulation.summary());
        match self.form {
            SimulateForm::Document => {
                write!(self.out, "\n  ],\n  \"trace\": [")?;
                for (i, event) in simulation.events().iter().enumerate() {
                    self.entry(&EventDto::new(simulation, event), i == 0)?;
                }
                writeln!(self.out, "\n  ],\n  \"summary\": {}\n}}", json(&summary))?;
            }
            SimulateForm::Lines => {
                let head = HeadDto::new(self.input, simulation);
                let line = EndLine { schema: "xmem.simulate-end/1", head, summary };
                self.out.write_all(encode::line(&line).as_bytes())?;
            }
        }
        self.out.flush()
    }

    /// An entry of a list in a document, on a line of its own.
    fn entry(&mut self, entry: &impl Serialize, is_first: bool) -> io::Result<()> {
        self.entry.clear();
        self.entry.extend_from_slice(if is_first { b"\n    " } else { b",\n    " });
        serde_json::to_writer(&mut self.entry, entry)?;
        self.out.write_all(&self.entry)
    }

    /// A document on a line of its own.
    fn line(&mut self, document: &impl Serialize) -> io::Result<()> {
        self.entry.clear();
        serde_json::to_writer(&mut self.entry, document)?;
        self.entry.push(b'\n');
        self.out.write_all(&self.entry)
    }
}

impl<'a> HeadDto<'a> {
    fn new(input: &'a str, simulation: &'a Simulation) -> Self {
        let (setup, device) = (simulation.setup(), simulation.device());
        Self {
            input,
            conf: &setup.conf,
            torch: setup.release.to_string(),
            capacity: device.capacity.map(Bytes::get),
            total: device.reported_total.map(Bytes::get),
            address_order: setup.address_order.name(),
            events: match device.completion {
                Completion::Immediate => "immediate",
                Completion::AtSynchronization => "held",
            },
            allocator: SetupDto::from(setup),
            diagnostics: simulation.findings().iter().map(FindingDto::from).collect(),
        }
    }
}

/// A value on one line.
fn json(value: &impl Serialize) -> String {
    encode::line(value).trim_end().to_owned()
}
