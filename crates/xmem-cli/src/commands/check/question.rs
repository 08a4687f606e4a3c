//! The answer about one trace: a kept one, or a new one that is then kept.

use super::args::{CheckArgs, CheckFormat};
use super::cache::{Cache, Key};
use super::error::CheckFailure;
use super::law;
use super::subject::Subject;
use crate::allocator::AllocatorArgs;
use crate::config::Config;
use crate::cudnn::CudnnArgs;
use crate::error::CliError;
use crate::estimate;
use crate::global::Global;
use crate::guard::InternalError;
use crate::progress::Progress;
use crate::reading::read_options;
use crate::{allocator, cudnn, guard, input, pool, what_if};
use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::ConvolutionSource;
use xmem::cudnn::SourceChoice;
use xmem::predict::AllocatorSettings;
use xmem::{Device, Estimate, EstimateBuilder, EstimateError, IntegrityPolicy, Job};
use xmem_gate::{Accelerator, Margin, Question};
use xmem_report::check::CheckDocument;

/// The question about every trace of a command.
pub(super) struct Questions<'a> {
    args: &'a CheckArgs,
    config: &'a Config,
    subject: &'a Subject,
    margin: Margin,
    allocator: AllocatorSettings,
    convolutions: Arc<dyn ConvolutionSource>,
    cache: Option<Cache>,
    /// What else an answer depends on.
    settings: String,
}

impl<'a> Questions<'a> {
    pub(super) fn new(
        args: &'a CheckArgs,
        config: &'a Config,
        subject: &'a Subject,
    ) -> Result<Self, CliError> {
        let allocator_args = AllocatorArgs {
            torch: args.estimate.allocator.torch.or_else(|| config.get("torch")),
            alloc_conf: args
                .estimate
                .allocator
                .alloc_conf
                .clone()
                .or_else(|| config.get("alloc-conf")),
            ..args.estimate.allocator.clone()
        };
        let cudnn_args = CudnnArgs {
            cudnn: args.estimate.cudnn.cudnn.clone().or_else(|| source(args, config)),
            cudnn_cache: args.estimate.cudnn.cudnn_cache.clone(),
        };
        let margin = margin(args, config, subject);
        let settings = format!(
            "{:?} {:?} {margin:?} {allocator_args:?} {:?} {} {} {:?} {:?}",
            subject.devices,
            subject.gpus,
            args.estimate.what_if,
            args.decision.strict,
            args.decision.require_coverage,
            cudnn::identity(&cudnn_args),
            config.site.devices(),
        );
        let wanted = !args.cache.no_cache && config.get("cache") != Some(false);
        let questions = Self {
            args,
            config,
            subject,
            margin,
            allocator: allocator::settings(&allocator_args)?,
            convolutions: cudnn::source(&cudnn_args)?,
            cache: wanted.then(Cache::of_environment).flatten(),
            settings,
        };
        for device in &subject.devices {
            questions.builder(device.clone())?.build().check()?;
        }
        Ok(questions)
    }

    /// The answer about a trace.
    pub(super) fn answer(&self, trace: &Path, global: &Global) -> Result<CheckDocument, CliError> {
        let name = input::name(trace);
        if let Some(law) = law::read(trace)? {
            return law::answer(&law, (trace, &name), self.subject, self.margin, self.config);
        }
        if self.subject.at.is_some() {
            return Err(CheckFailure::NotALaw { path: trace.to_owned() }.into());
        }
        let key = self.cache.as_ref().and_then(|cache| {
            let key = Key::of(trace, self.args.cache.trust_mtime, &self.settings)?;
            Some((cache, key))
        });
        if let Some((cache, key)) = &key
            && let Some(mut kept) = cache.find(key)
            && kept.is_coherent(&self.subject.devices, self.margin)
        {
            kept.trace = name;
            return Ok(kept);
        }
        let decide = |job: &Job, question: &Question<'_>| {
            let outcome = xmem_gate::check(job, question)?;
            Ok(CheckDocument::new(&name, self.subject.gpus, &outcome))
        };
        let document = self.ask(trace, &name, &decide, global)?;
        if let Some((cache, key)) = &key {
            cache.keep(key, &document);
        }
        Ok(document)
    }

    /// For each of these GPUs, whether the job of a trace certainly fits on it and leaves the margin free.
    pub(super) fn holds(
        &self,
        trace: &Path,
        gpus: &[Accelerator],
        global: &Global,
    ) -> Result<Vec<bool>, CliError> {
        let name = input::name(trace);
        if let Some(law) = law::read(trace)? {
            let fits = |device: &Device| {
                law::fits(&law, trace, (self.subject.at.as_ref(), self.margin), device)
            };
            return gpus
                .iter()
                .map(|gpu| {
                    gpu.devices.iter().try_fold(true, |all, device| Ok(all && fits(device)?))
                })
                .collect();
        }
        if self.subject.at.is_some() {
            return Err(CheckFailure::NotALaw { path: trace.to_owned() }.into());
        }
        let decide = |job: &Job, question: &Question<'_>| {
            gpus.iter().map(|gpu| gpu.holds(job, question)).collect()
        };
        self.ask(trace, &name, &decide, global)
    }

    /// Reads a trace, and decides something about its job.
    fn ask<T: Send>(
        &self,
        trace: &Path,
        name: &str,
        decide: &(dyn Fn(&Job, &Question<'_>) -> Result<T, EstimateError> + Sync),
        global: &Global,
    ) -> Result<T, CliError> {
        let progress = Progress::over([trace], global.verbosity());
        let decided = guard::catch(|| {
            pool::run(self.args.reading.threads, |threads| {
                let read = read_options(&self.args.reading, threads);
                let job = Job::observed(trace, &read, &|stage| progress.stage(name, stage))?;
                self.decide(&job, name, decide)
            })
        });
        drop(progress);
        decided.unwrap_or_else(|panicked| Err(InternalError::new(Some(name), panicked).into()))
    }

    fn decide<T>(
        &self,
        job: &Job,
        name: &str,
        decide: &dyn Fn(&Job, &Question<'_>) -> Result<T, EstimateError>,
    ) -> Result<T, CliError> {
        let devices: Vec<&Device> = self.subject.devices.iter().collect();
        let site = self.config.site.devices();
        // Checked for a device before any trace was read.
        let estimate = |device: Device| {
            self.builder(device.clone()).unwrap_or_else(|_| Estimate::builder(device))
        };
        let question = Question {
            devices: &devices,
            margin: self.margin,
            site: &site,
            allocator: self.allocator.clone(),
            estimate: &estimate,
        };
        decide(job, &question).map_err(|error| estimate::failure(name, error))
    }

    fn builder(&self, device: Device) -> Result<EstimateBuilder, CliError> {
        let integrity = match self.args.decision.strict {
            true => IntegrityPolicy::Strict,
            false => IntegrityPolicy::Standard,
        };
        let builder = Estimate::builder(device)
            .allocator(self.allocator.clone())
            .convolutions(Arc::clone(&self.convolutions))
            .integrity(integrity)
            .require_coverage(self.args.decision.require_coverage);
        what_if::apply(builder, &self.args.estimate.what_if)
    }
}

/// The margin: the option, else the settings, else the rules of the site. Before Slurm, a user's settings do
/// not replace the rules.
pub(super) fn margin(args: &CheckArgs, config: &Config, subject: &Subject) -> Margin {
    let set = || config.margin("margin");
    let of_site = subject.rules.margin;
    let rest = match args.decision.format {
        CheckFormat::Slurm => of_site.or_else(set),
        _ => set().or(of_site),
    };
    args.decision.margin.or(rest).unwrap_or_default()
}

/// The source of convolutions' workspaces that the settings name. Without settings, the environment is not
/// searched for a library either.
fn source(args: &CheckArgs, config: &Config) -> Option<SourceChoice> {
    let named = config.get::<String>("cudnn").map(|text| SourceChoice::from(text.as_str()));
    named.or_else(|| args.settings.no_config.then_some(SourceChoice::Model))
}
