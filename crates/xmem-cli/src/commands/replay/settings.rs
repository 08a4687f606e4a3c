//! The questions about each trace: every combination of device and allocator, each with the options
//! that select it.

use super::args::{AnswerArgs, ReplayArgs, ReplayFormat};
use crate::allocator::{AllocatorArgs, AllocatorRest};
use crate::choice::Choice;
use crate::device::DeviceArgs;
use crate::error::CliError;
use crate::what_if::WhatIfArgs;
use crate::{allocator, cudnn, device, input, what_if};
use clap::builder::PossibleValue;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use xmem::convolutions::ConvolutionSource;
use xmem::orchestrator::parse_cublas_workspace_config;
use xmem::predict::CapacitySearch;
use xmem::{Device, Estimate, EstimateBuilder, IntegrityPolicy};

/// One question.
pub(super) struct Settings {
    pub(super) estimate: Estimate,
    /// The options of the command line that the answer depends on, in a fixed order, so that equal
    /// questions have equal options.
    pub(super) options: String,
}

/// All different questions, in the order of the devices and then of the allocators.
pub(super) fn all(
    args: &ReplayArgs,
    convolutions: &Arc<dyn ConvolutionSource>,
) -> Result<Vec<Settings>, CliError> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let allocators = args.allocator.each();
    for (device, mut line) in devices(args)? {
        let note = std::mem::take(&mut line.note);
        for choice in &allocators {
            let mut line = line.clone();
            line.allocator(choice);
            line.job(&args.what_if, cudnn::explicit_choice(&args.cudnn));
            line.answer(&args.answer);
            let options = line.to_line() + &note;
            if seen.insert(options.clone()) {
                let settings = allocator::settings(choice)?;
                let builder = Estimate::builder(device.clone()).allocator(settings);
                let estimate = finish(builder, args, convolutions)?;
                estimate.check()?;
                all.push(Settings { estimate, options });
            }
        }
    }
    Ok(all)
}

/// Blocks at the peak for each row of text.
const BLOCKS_PER_ROW: usize = 500;

/// Adds the settings that all questions share.
fn finish(
    builder: EstimateBuilder,
    args: &ReplayArgs,
    convolutions: &Arc<dyn ConvolutionSource>,
) -> Result<Estimate, CliError> {
    let builder =
        builder.convolutions(Arc::clone(convolutions)).largest(match args.answer.format {
            // Equal blocks share a row.
            ReplayFormat::Text => args.answer.top.saturating_mul(BLOCKS_PER_ROW),
            _ => args.answer.top,
        });
    let mut builder = what_if::apply(builder, &args.what_if)?.integrity(policy(&args.answer));
    if args.answer.min_capacity {
        builder = builder.capacity_search(CapacitySearch::Run);
    }
    // With --vary, they are the length of a run.
    let iterations = args.answer.iterations.filter(|_| args.vary.vary.is_none());
    if let Some(iterations) = iterations {
        builder = builder.iterations(iterations);
    }
    Ok(builder.build())
}

fn policy(args: &AnswerArgs) -> IntegrityPolicy {
    match (args.strict, args.lenient) {
        (true, _) => IntegrityPolicy::Strict,
        (false, true) => IntegrityPolicy::Lenient,
        (false, false) => IntegrityPolicy::Standard,
    }
}

fn devices(args: &ReplayArgs) -> Result<Vec<(Device, OptionLine)>, CliError> {
    if args.devices.is_empty() {
        let device = device::choose(&args.device)?;
        let line = OptionLine::of_device(&args.device, &device);
        return Ok(vec![(device, line)]);
    }
    let known = args.devices.iter().map(|name| {
        let device = xmem::find(name.trim())?.clone();
        let mut line = OptionLine::default();
        line.option("--device", Some(&device.name));
        Ok((device, line))
    });
    known.collect()
}

/// Options in the form of a command line. Each function destructures its arguments completely, so
/// that a new option cannot be forgotten here.
#[derive(Clone, Default)]
struct OptionLine {
    words: Vec<String>,
    /// Further content of a device file, as a shell comment.
    note: String,
}

impl OptionLine {
    fn option(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.words.extend([name.to_owned(), value.to_string()]);
        }
    }

    fn named(&mut self, name: &str, value: Option<impl Choice>) {
        let value = value.map(Choice::possible_value);
        self.option(name, value.as_ref().map(PossibleValue::get_name));
    }

    fn flag(&mut self, name: &str, given: impl Into<bool>) {
        if given.into() {
            self.words.push(name.to_owned());
        }
    }

    fn of_device(args: &DeviceArgs, device: &Device) -> Self {
        let DeviceArgs { device: name, device_file, capacity } = args;
        let mut line = Self::default();
        line.option("--device", name.as_ref().map(|_| &device.name));
        line.option("--device-file", device_file.as_ref().map(|path| input::name(path)));
        line.option("--capacity", capacity.map(xmem::Bytes::get));
        if device_file.is_some() {
            // The file may have changed by the next run.
            line.note = format!(
                " # {}: memory {}, context {}, sm {}, {} SMs of {} threads",
                device.name,
                device.memory.get(),
                device.context.get(),
                device.compute_capability,
                device.sms,
                device.max_threads_per_sm,
            );
        }
        line
    }

    fn allocator(&mut self, args: &AllocatorArgs) {
        let AllocatorArgs { torch, alloc_conf, allocator, rest } = args;
        let AllocatorRest { memory_fraction, address_order } = rest;
        self.option("--torch", *torch);
        self.named("--allocator", *allocator);
        self.option("--alloc-conf", alloc_conf.as_deref().map(str::trim));
        self.option("--memory-fraction", *memory_fraction);
        self.named("--address-order", *address_order);
    }

    fn job(&mut self, args: &WhatIfArgs, cudnn: Option<String>) {
        for what_if in args.chosen() {
            let value = what_if.value();
            match what_if.name() {
                "zero-grad" => self.option("--zero-grad", Some(value)),
                "set-to-none" => self.option("--set-to-none", Some(value)),
                "optimizer-impl" => self.option("--optimizer-impl", Some(value)),
                "cublas-workspace" => {
                    let size = parse_cublas_workspace_config(value);
                    let kib = size.map(|size| size.get() / 1024);
                    self.option("--cublas-workspace-config", kib.map(|kib| format!(":{kib}:1")));
                }
                // As without it.
                "collectives" if value == "at-once" => {}
                "collectives" => self.option("--collectives", Some(value)),
                _ => self.option("--what-if", Some(what_if)),
            }
        }
        let WhatIfArgs { rates, no_rule, .. } = args;
        for (rate, value) in rates {
            let name = format!("{rate:?}").to_lowercase();
            self.option("--rates", Some(format!("{name}={value}")));
        }
        for rule in no_rule.iter().collect::<BTreeSet<_>>() {
            self.option("--no-rule", Some(rule));
        }
        self.option("--cudnn", cudnn);
    }

    fn answer(&mut self, args: &AnswerArgs) {
        let AnswerArgs {
            strict,
            lenient,
            explain,
            iterations,
            top,
            min_capacity,
            // Format, extent and destination do not change the answer.
            format: _,
            full: _,
            notes: _,
            output: _,
            snapshot: _,
            snapshot_past_oom: _,
            exit_zero: _,
        } = args;
        self.option("--iterations", *iterations);
        self.option("--top", Some(*top).filter(|top| *top != AnswerArgs::TOP));
        self.flag("--min-capacity", *min_capacity);
        self.flag("--strict", *strict);
        self.flag("--lenient", *lenient);
        self.flag("--explain", *explain);
    }

    fn to_line(&self) -> String {
        let words = self.words.iter().map(String::as_str);
        shlex::try_join(words).expect("arguments of a process hold no NUL")
    }
}
