//! `xmem.simulate/1`, `xmem.simulate-step/1`, `xmem.simulate-end/1`: the results of a list of
//! operations, written during the simulation. The entries of `results` and `trace` have the form of
//! recordings of PyTorch's own allocator.

use super::results::{EventDto, ResultDto, SegmentDto, SummaryDto};
use crate::encode::escaped;
use crate::findings::FindingDto;
use crate::setup::{SetupDto, address_order};
use serde::Serialize;
use std::io::{self, Write};
use xmem::Bytes;
use xmem::predict::{Simulation, Step};
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

#[derive(Serialize)]
struct StepLine {
    schema: &'static str,
    index: usize,
    result: ResultDto,
    trace: Vec<EventDto>,
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
        for (key, value) in self.head(simulation) {
            write!(self.out, ",\n  \"{key}\": {value}")?;
        }
        write!(self.out, ",\n  \"results\": [")
    }

    /// Writes the result of a step. The events of a document are kept until the end; those of lines
    /// are written at once and dropped.
    ///
    /// # Errors
    /// If the output fails.
    pub fn step(&mut self, step: &Step, simulation: &mut Simulation) -> io::Result<()> {
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
                write!(self.out, "{{\"schema\":\"xmem.simulate-end/1\"")?;
                for (key, value) in self.head(simulation) {
                    write!(self.out, ",\"{key}\":{value}")?;
                }
                writeln!(self.out, ",\"summary\":{}}}", json(&summary))?;
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

    /// The facts that are known before the first operation: keys with their values as JSON.
    fn head(&self, simulation: &Simulation) -> [(&'static str, String); 9] {
        let (setup, device) = (simulation.setup(), simulation.device());
        let findings: Vec<_> = simulation.findings().iter().map(FindingDto::from).collect();
        let events = match device.completion {
            Completion::Immediate => "immediate",
            Completion::AtSynchronization => "held",
        };
        [
            ("input", json(&self.input)),
            ("conf", json(&setup.conf)),
            ("torch", json(&setup.release.to_string())),
            ("capacity", json(&device.capacity.map(Bytes::get))),
            ("total", json(&device.reported_total.map(Bytes::get))),
            ("address_order", json(&address_order(setup.address_order))),
            ("events", json(&events)),
            ("allocator", json(&SetupDto::from(setup))),
            ("diagnostics", json(&findings)),
        ]
    }
}

fn json(value: &impl Serialize) -> String {
    escaped(
        serde_json::to_string(value).expect("documents have string keys and finite numbers only"),
    )
}
