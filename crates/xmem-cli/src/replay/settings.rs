//! What is asked about each trace: every combination of device and allocator, each with the words that
//! ask for it.

use crate::args::{AllocatorArgs, AllocatorRest, AnswerArgs, DeviceArgs, ReplayArgs, WhatIfArgs};
use crate::complaint::Complaint;
use crate::cudnn::{self, Convolutions};
use crate::{allocator, device, what_if};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::collections::BTreeSet;
use std::fmt::Display;
use xmem::{CapacitySearch, Device, Estimate, EstimateBuilder};

/// One question.
pub(super) struct Settings {
    pub(super) estimate: Estimate,
    /// The options of the command line that the answer depends on, in an order of their own. Equal
    /// questions have equal words.
    pub(super) words: String,
}

/// Every question, in the order of the devices and then of the allocators; none twice.
pub(super) fn all(
    args: &ReplayArgs,
    convolutions: &Convolutions,
) -> Result<Vec<Settings>, Complaint> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let allocators = args.allocator.each();
    for (device, mut words) in devices(args)? {
        let note = std::mem::take(&mut words.note);
        for asked in &allocators {
            let mut words = words.clone();
            words.allocator(asked);
            words.job(&args.what_if, cudnn::asked(&args.cudnn));
            words.answer(&args.answer);
            let words = words.line() + &note;
            if seen.insert(words.clone()) {
                let settings = allocator::settings(asked)?;
                let builder = Estimate::builder(device.clone()).allocator(settings);
                let estimate = finish(builder, args, convolutions)?;
                estimate.check()?;
                all.push(Settings { estimate, words });
            }
        }
    }
    Ok(all)
}

/// What all questions have in common.
fn finish(
    builder: EstimateBuilder,
    args: &ReplayArgs,
    convolutions: &Convolutions,
) -> Result<Estimate, Complaint> {
    let builder = builder.convolutions(convolutions.plans()).largest(args.answer.top);
    let mut builder = what_if::apply(builder, &args.what_if)?;
    if args.answer.min_capacity {
        builder = builder.capacity_search(CapacitySearch::Run);
    }
    if let Some(iterations) = args.answer.iterations {
        builder = builder.iterations(iterations);
    }
    Ok(builder.build())
}

fn devices(args: &ReplayArgs) -> Result<Vec<(Device, Words)>, Complaint> {
    if args.devices.is_empty() {
        let device = device::choose(&args.device)?;
        let words = Words::of_device(&args.device, &device);
        return Ok(vec![(device, words)]);
    }
    let known = args.devices.iter().map(|name| {
        let device = xmem::find(name.trim())?.clone();
        let mut words = Words::default();
        words.option("--device", Some(&device.name));
        Ok((device, words))
    });
    known.collect()
}

/// Options as they stand on a command line. Each function takes its arguments apart to the last
/// field, so that a new option cannot be forgotten here.
#[derive(Clone, Default)]
struct Words {
    words: Vec<String>,
    /// What the options do not say; a comment, to a shell.
    note: String,
}

impl Words {
    fn option(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.words.extend([name.to_owned(), value.to_string()]);
        }
    }

    fn choice(&mut self, name: &str, value: Option<impl ValueEnum>) {
        let value = value.as_ref().and_then(ValueEnum::to_possible_value);
        self.option(name, value.as_ref().map(PossibleValue::get_name));
    }

    fn flag(&mut self, name: &str, given: impl Into<bool>) {
        if given.into() {
            self.words.push(name.to_owned());
        }
    }

    fn of_device(args: &DeviceArgs, device: &Device) -> Self {
        let DeviceArgs { device: name, device_file, capacity } = args;
        let mut words = Self::default();
        words.option("--device", name.as_ref().map(|_| &device.name));
        words.option("--device-file", device_file.as_ref().map(|path| path.display()));
        words.option("--capacity", capacity.map(xmem::Bytes::get));
        if device_file.is_some() {
            // The file may be another one the next time.
            words.note = format!(
                " # {}: memory {}, context {}, sm {}, {} SMs of {} threads",
                device.name,
                device.memory.get(),
                device.context.get(),
                device.compute_capability,
                device.sms,
                device.max_threads_per_sm,
            );
        }
        words
    }

    fn allocator(&mut self, args: &AllocatorArgs) {
        let AllocatorArgs { torch, alloc_conf, allocator, rest } = args;
        let AllocatorRest { memory_fraction, address_order } = rest;
        self.option("--torch", *torch);
        self.choice("--allocator", *allocator);
        self.option("--alloc-conf", alloc_conf.as_deref().map(str::trim));
        self.option("--memory-fraction", *memory_fraction);
        self.choice("--address-order", *address_order);
    }

    fn job(&mut self, args: &WhatIfArgs, cudnn: Option<String>) {
        let WhatIfArgs { zero_grad, set_to_none, optimizer_impl, cublas_workspace_config, no_rule } =
            args;
        self.choice("--zero-grad", *zero_grad);
        self.option("--set-to-none", *set_to_none);
        self.choice("--optimizer-impl", *optimizer_impl);
        let kib = cublas_workspace_config.map(|size| size.get() / 1024);
        self.option("--cublas-workspace-config", kib.map(|kib| format!(":{kib}:1")));
        for rule in no_rule.iter().collect::<BTreeSet<_>>() {
            self.option("--no-rule", Some(rule));
        }
        self.option("--cudnn", cudnn);
    }

    fn answer(&mut self, args: &AnswerArgs) {
        let AnswerArgs {
            explain,
            iterations,
            top,
            min_capacity,
            // Where the answer goes, and what becomes of it there.
            format: _,
            output: _,
            snapshot: _,
            snapshot_past_oom: _,
            exit_zero: _,
        } = args;
        self.option("--iterations", *iterations);
        self.option("--top", Some(*top).filter(|top| *top != AnswerArgs::TOP));
        self.flag("--min-capacity", *min_capacity);
        self.flag("--explain", *explain);
    }

    fn line(&self) -> String {
        let words = self.words.iter().map(String::as_str);
        shlex::try_join(words).expect("arguments of a process hold no NUL")
    }
}
