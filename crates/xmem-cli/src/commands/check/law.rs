//! The answer about a law and a value, in place of a trace.

use super::error::CheckFailure;
use super::subject::Subject;
use crate::config::Config;
use crate::error::CliError;
use crate::input::{self, Kind};
use std::path::Path;
use xmem::predict::Confidence;
use xmem::{Bytes, Decision, Device};
use xmem_gate::{KnownNeed, LawValue, Margin};
use xmem_report::check::{CheckDocument, Fits};
use xmem_report::json::{is_law, read_law};
use xmem_studies::law::{LawNeed, LawTable};

/// A law is not longer than this.
const LONGEST: Bytes = Bytes::mib(4);

/// The law of a file; none if it is something else. Standard input is a trace.
pub(super) fn read(path: &Path) -> Result<Option<LawTable>, CliError> {
    let is_small = |found: std::fs::Metadata| found.is_file() && found.len() <= LONGEST.get();
    if !std::fs::metadata(path).is_ok_and(is_small) {
        return Ok(None);
    }
    let (_, head) = input::beginning(path, Kind::Answer, None)?;
    if !is_law(&head) {
        return Ok(None);
    }
    let text = input::read(path, Kind::Answer, None)?;
    let law = read_law(&String::from_utf8_lossy(&text))
        .map_err(|source| CheckFailure::Law { path: path.to_owned(), source })?;
    Ok(Some(law))
}

/// The answer about the value `at`.
pub(super) fn answer(
    law: &LawTable,
    (path, name): (&Path, &str),
    subject: &Subject,
    margin: Margin,
    config: &Config,
) -> Result<CheckDocument, CliError> {
    let at = value(law, path, subject.at.as_ref())?;
    let need = need(law, path, at)?;
    let device = &subject.devices[0];
    if !is_alike(law, device) {
        return Err(CheckFailure::LawOfOtherDevice {
            path: path.to_owned(),
            device: law.subject.device.clone(),
            asked: device.name.clone(),
        }
        .into());
    }
    let devices: Vec<&Device> = subject.devices.iter().filter(|d| is_alike(law, d)).collect();
    let mut site = config.site.devices();
    site.retain(|device| is_alike(law, device));
    let known = known(law, &need);
    let outcome = known.check(&devices, margin, &site);
    let confidence = if need.is_recorded { Confidence::Certain } else { Confidence::Likely };
    let subject_name = format!("{name} ({}={})", at.name, at.value);
    let (gpus, found) = (subject.gpus, (&known, &outcome));
    let mut document = CheckDocument::of_known(&subject_name, gpus, found, confidence);
    if matches!(outcome.decision, Decision::DoesNotFit | Decision::Tight) {
        add_measures(&mut document, law, at, (&outcome.device, margin));
    }
    Ok(document)
}

/// Returns whether the job with the value `at` certainly fits on a device and leaves the margin free. False for a device
/// that computes in another way than that of the law.
pub(super) fn fits(
    law: &LawTable,
    path: &Path,
    (at, margin): (Option<&LawValue>, Margin),
    device: &Device,
) -> Result<bool, CliError> {
    let need = need(law, path, value(law, path, at)?)?;
    let outcome = known(law, &need).check(&[device], margin, &[]);
    Ok(is_alike(law, device) && outcome.decision == Decision::Fits)
}

fn need(law: &LawTable, path: &Path, at: &LawValue) -> Result<LawNeed, CheckFailure> {
    law.at(at.value).ok_or_else(|| CheckFailure::BeyondLaw {
        path: path.to_owned(),
        name: at.name.clone(),
        value: at.value,
        low: law.points[0].value,
        high: law.points[law.points.len() - 1].value,
    })
}

fn known(law: &LawTable, need: &LawNeed) -> KnownNeed {
    KnownNeed {
        allocated: need.point.allocated,
        reserved: need.point.reserved,
        least: need.point.needs,
        range: need.range,
        context: law.subject.context,
    }
}

/// Adds the measures of a law with which the value `at`, or else the greatest smaller one, was recorded to fit on a device.
fn add_measures(
    document: &mut CheckDocument,
    law: &LawTable,
    at: &LawValue,
    (device, margin): (&Device, Margin),
) {
    for with in &law.with {
        let need = |least: Bytes| {
            let context = law.subject.context;
            let known = KnownNeed {
                allocated: least.saturating_sub(context),
                reserved: least.saturating_sub(context),
                least,
                range: (least, least),
                context,
            };
            let outcome = known.check(&[device], margin, &[]);
            (outcome.decision == Decision::Fits).then_some(outcome.need.least)
        };
        let mut fitting =
            with.needs.iter().filter_map(|(value, least)| Some((*value, need(*least)?)));
        let Some((value, need)) = fitting.next_back() else { continue };
        let over = match with.gpus {
            1 => String::new(),
            gpus => format!(" over {gpus} GPUs"),
        };
        let text = format!("{}{over}, recorded with {}={value}", with.measures, at.name);
        let fits = if value >= at.value { Fits::AsAsked } else { Fits::Smaller };
        document.add_measures(text, need, fits);
    }
}

fn value<'a>(
    law: &LawTable,
    path: &Path,
    asked: Option<&'a LawValue>,
) -> Result<&'a LawValue, CheckFailure> {
    let name = &law.subject.name;
    match asked {
        Some(at) if at.name == *name => Ok(at),
        Some(at) => Err(CheckFailure::OtherNumber {
            path: path.to_owned(),
            name: name.clone(),
            asked: at.name.clone(),
        }),
        None => Err(CheckFailure::NoValue {
            path: path.to_owned(),
            name: name.clone(),
            example: law.recorded.last().copied().unwrap_or(1),
        }),
    }
}

/// Returns whether a device computes as the one of a law does, so that memory is the same there: a device of the same compute
/// capability, or one of which only the memory is known.
fn is_alike(law: &LawTable, device: &Device) -> bool {
    let of_law = xmem::find(&law.subject.device);
    device.name == law.subject.device
        || device.is_custom()
        || of_law.is_ok_and(|own| own.compute_capability == device.compute_capability)
}
