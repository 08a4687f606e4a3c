//! `xmem report --format html`: the page, with the answers that `xmem replay` gives.

use super::args::PictureArgs;
use super::names;
use super::picture::Loaded;
use super::settings::Setting;
use super::what_ifs::WhatIfs;
use crate::error::CliError;
use crate::global::Verbosity;
use crate::output;
use crate::terminal::{say, shown};
use std::path::Path;
use std::process::{Command, Stdio};
use xmem::Answer;
use xmem_report::json::{self, ReplayDocument, Rules};
use xmem_view::{PageRun, page};

/// Programs that open a file in the browser that the desktop prefers.
const OPENERS: [&str; 4] = ["xdg-open", "open", "wslview", "sensible-browser"];

/// Writes the page of all recordings under all settings.
pub(super) fn write(
    all: &[Loaded],
    settings: &[Setting],
    picture: &PictureArgs,
    verbosity: Verbosity,
) -> Result<(), CliError> {
    let pairs = || {
        all.iter().flat_map(|loaded| {
            settings.iter().zip(&loaded.pictured).map(move |pair| (loaded, pair))
        })
    };
    let answers: Vec<String> = pairs()
        .map(|(loaded, (setting, of))| answer(&loaded.name, &setting.options, &of.answer))
        .collect();
    let names = names::all(all, settings);
    let usual = WhatIfs::default();
    let runs: Vec<PageRun<'_>> = pairs()
        .zip(names.iter().zip(&answers))
        .map(|((loaded, (_, pictured)), (name, answer))| {
            // What is said beyond the run is about the first setting.
            let is_first = std::ptr::eq(pictured, &loaded.pictured[0]);
            let WhatIfs { tried, smallest } = if is_first { &loaded.what_ifs } else { &usual };
            PageRun {
                name,
                timeline: &pictured.timeline,
                answer,
                what_ifs: tried,
                smallest: *smallest,
                plan: loaded.plan.as_ref().and_then(known).filter(|_| is_first),
                offload: loaded.offload.as_ref().and_then(known).filter(|_| is_first),
                fit: None,
            }
        })
        .collect();
    let file = picture.output.as_deref();
    output::bytes(file, |out| Ok(page(out, &names[0], &runs)?))?;
    if let Some(file) = file.filter(|_| picture.open) {
        open(file, verbosity);
    }
    Ok(())
}

/// A part of the page that this recording may not have.
fn known<T>(part: &Result<T, CliError>) -> Option<&T> {
    part.as_ref().ok()
}

fn answer(name: &str, options: &str, answer: &Answer) -> String {
    json::line(&ReplayDocument::new(name, options, answer, Rules::Explain))
}

/// Opens the file with the first program that there is. The file is there either way.
fn open(file: &Path, verbosity: Verbosity) {
    let start = |program: &&str| {
        let mut command = Command::new(program);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.arg(file).spawn().is_ok()
    };
    if !OPENERS.iter().any(start) && verbosity != Verbosity::Quiet {
        let name = shown(file);
        say(&format!(
            "note: no program here opens a browser ({}); open {name} yourself",
            OPENERS.join(", ")
        ));
    }
}
