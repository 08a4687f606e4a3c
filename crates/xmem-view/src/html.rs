//! One self-contained HTML page for one run or several: the page's program and style (`web/`), and the runs as
//! compressed columns.
//!
//! Nothing from a recording can run as script: all of it is base64 in elements that browsers do not execute, the
//! program puts it on the page as text, and the page's Content-Security-Policy admits one script and one style sheet,
//! by their hashes.
//!
//! Left to others: the answer's JSON, which the caller brings.

mod columns;
mod fit;
mod offload;
mod plan;
mod run;

pub use fit::PageFit;

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
    /// What makes the job fit, if it was looked for.
    pub fit: Option<PageFit<'a>>,
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
        let fit = run.fit.as_ref().map(fit::encode);
        let (head, bytes) = run::encode(run, (plan, offload, fit))?;
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
    use flate2::read::ZlibDecoder;
    use serde_json::Value;
    use std::io::Read as _;
    use xmem::predict::SnapshotEnd;
    use xmem::{Device, Estimate, Job, ReadOptions};

    /// The text of a page of a run without memory, and the head of its data.
    fn page_with(fit: Option<PageFit<'_>>) -> (String, Value) {
        let trace = r#"{"traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 1, "dur": 9}]}"#;
        let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default()).expect("a trace");
        let estimate = Estimate::builder(Device::custom(Bytes::gib(2))).build();
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        let run = PageRun {
            name: "run",
            timeline: &timeline,
            answer: "{}",
            what_ifs: &[],
            smallest: None,
            plan: None,
            offload: None,
            fit,
        };
        let mut out = Vec::new();
        page(&mut out, "run", &[run]).expect("written");
        let text = String::from_utf8(out).expect("text");
        let (_, data) = text.split_once("id=\"data-head\">").expect("the head of the data");
        let (data, _) = data.split_once('<').expect("its end");
        let compressed = STANDARD.decode(data).expect("base64");
        let mut head = String::new();
        ZlibDecoder::new(&*compressed).read_to_string(&mut head).expect("zlib");
        (text, serde_json::from_str(&head).expect("JSON"))
    }

    #[test]
    fn what_makes_the_job_fit_is_on_the_page_and_changes_nothing_else() {
        let answer = fit::tests::answer();
        let (with, mut head) = page_with(Some(PageFit { answer: &answer, devices: &[] }));
        let (without, head_without) = page_with(None);
        let fit = head["runs"][0]["fit"].take();
        assert_eq!(fit["base"]["needs_bytes"], answer.base.needs.get());
        assert_eq!(fit["tried"].as_array().map(Vec::len), Some(5));
        assert_eq!(fit["law"]["points"].as_array().map(Vec::len), Some(6));
        assert_eq!(head, head_without);
        let rest = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains("id=\"data-head\""));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(rest(&with), rest(&without));
    }

    #[test]
    fn script_and_style_end_where_they_are_closed() {
        let script = SCRIPT.to_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
        // A browser hashes the text after it has made one line end of each.
        assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'));
    }
}
