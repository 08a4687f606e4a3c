//! One self-contained HTML page for one run or several: the page's program and style (`web/`), and the runs as
//! compressed columns.
//!
//! Nothing from a recording can run as script: all of it is base64 in elements that browsers do not execute, the
//! program puts it on the page as text, and the page's Content-Security-Policy admits one script and one style sheet,
//! by their hashes.
//!
//! Left to others: the answer's JSON, which the caller brings.

mod columns;
mod offload;
mod plan;
mod run;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use xmem::predict::Timeline;
use xmem::{Answer, Bytes};
use xmem_studies::offloading::OffloadAnswer;
use xmem_studies::planning::PlanAnswer;

/// The schema of the page's data. The program of the page refuses any other.
const SCHEMA: &str = "xmem.page/1";

const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");

/// A run of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageRun<'a> {
    /// Its name: the input as the user named it, and the setting in which it differs from the others.
    pub name: &'a str,
    /// The run, event by event.
    pub timeline: &'a Timeline,
    /// Its JSON answer, with rules: `xmem replay --format json --explain`.
    pub answer: &'a str,
    /// The same recording under other settings.
    pub what_ifs: &'a [PageWhatIf],
    /// The smallest device memory in which the job runs, if it was looked for.
    pub smallest: Option<Bytes>,
    /// A static plan of an iteration, if there is one.
    pub plan: Option<&'a PlanAnswer>,
    /// Offloading policies on the last iteration, if they were simulated.
    pub offload: Option<&'a OffloadAnswer>,
}

/// A setting, and the answer under it.
#[derive(Clone, Debug)]
pub struct PageWhatIf {
    /// The options of the command line.
    pub options: String,
    /// The answer.
    pub answer: Answer,
}

#[derive(Serialize)]
struct Head<'a> {
    schema: &'static str,
    title: &'a str,
    program: &'static str,
    runs: Vec<run::RunHead<'a>>,
}

/// Writes the page.
///
/// # Errors
/// If `out` cannot be written, or an answer is not JSON.
pub fn page(out: &mut dyn Write, title: &str, runs: &[PageRun<'_>]) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>xmem report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript><p>This page needs JavaScript. `xmem replay` prints the same figures as text.</p></noscript>\n\
         <main id=\"page\"></main>\n"
    )?;
    let (mut heads, mut columns) = (Vec::new(), Vec::new());
    for (row, run) in runs.iter().enumerate() {
        let plan = run.plan.map(plan::encode);
        let (plan, plan_columns) = plan.unzip();
        let (offload, offload_columns) = run.offload.map(offload::encode).unzip();
        let (head, bytes) = run::encode(run, plan, offload)?;
        heads.push(head);
        columns.push((format!("data-run-{row}"), bytes));
        columns.extend(plan_columns.map(|bytes| (format!("data-plan-{row}"), bytes)));
        for (policy, bytes) in offload_columns.into_iter().flatten().enumerate() {
            columns.push((format!("data-offload-{row}-{policy}"), bytes));
        }
    }
    let program = concat!("xmem ", env!("CARGO_PKG_VERSION"));
    let head = serde_json::to_vec(&Head { schema: SCHEMA, title, program, runs: heads })?;
    element(out, "data-head", &head)?;
    for (id, bytes) in &columns {
        element(out, id, bytes)?;
    }
    write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Data that a browser keeps as text: base64 of a zlib stream.
fn element(out: &mut dyn Write, id: &str, bytes: &[u8]) -> io::Result<()> {
    write!(out, "<script type=\"application/octet-stream\" id=\"{id}\">")?;
    let mut encoder = ZlibEncoder::new(EncoderWriter::new(out, &STANDARD), Compression::new(6));
    encoder.write_all(bytes)?;
    let out = encoder.finish()?.finish()?;
    writeln!(out, "</script>")
}

/// A hash as a Content-Security-Policy names it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_and_style_end_where_they_are_closed() {
        let script = SCRIPT.to_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
        // A browser hashes the text after it has made one line end of each.
        assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'));
    }
}
