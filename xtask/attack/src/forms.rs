//! The other forms of an answer: each says how many warnings there are, `--strict` accepts no doubt, and
//! `--lenient` calls a damaged trace damaged.

use crate::intact::arguments;
use crate::judge::{Answer, Finding, Outcome};
use crate::process::Runner;
use std::ffi::OsString;
use std::path::Path;
use xmem_task::Error;

/// Asks for the forms of an answer that was given in JSON, and judges them.
pub(crate) fn run(
    program: &Path,
    runner: &Runner,
    trace: &Path,
    capacity: u64,
    answer: &Answer,
) -> Result<Vec<Finding>, Error> {
    let Some(warnings) = answer.warning_count else { return Ok(Vec::new()) };
    let ask = |options: &[&str]| {
        let all = arguments(trace, capacity).into_iter().filter(|a| a != "--format" && a != "json");
        let all: Vec<OsString> = all.chain(options.iter().map(OsString::from)).collect();
        runner.run(program, &all, None)
    };
    let mut findings = Vec::new();
    let brief = ask(&["--quiet"])?.stdout;
    let csv = ask(&["--quiet", "--format", "csv"])?.stdout;
    if !brief_shows(&brief, warnings) || column(&csv, "warnings") != Some(warnings.to_string()) {
        findings.push(Finding::Silent);
    }
    let is_intact = answer.condition == "intact";
    if Outcome::of(&ask(&["--quiet", "--strict"])?) == Outcome::Fits && !is_intact {
        findings.push(Finding::FalseFit);
    }
    let lenient = ask(&["--quiet", "--lenient"])?.stdout;
    if answer.condition == "damaged" && !calls_it_damaged(&lenient) {
        findings.push(Finding::Silent);
    }
    Ok(findings)
}

fn brief_shows(brief: &str, warnings: u64) -> bool {
    warnings == 0 || brief.contains(&format!("{warnings} warning"))
}

/// True if the line of a damaged trace says so, or gives no verdict for another reason.
fn calls_it_damaged(brief: &str) -> bool {
    brief.contains("DAMAGED") || brief.contains("NO VERDICT")
}

/// The field of the first row below this header, which no field with a comma comes before.
fn column(csv: &str, header: &str) -> Option<String> {
    let mut lines = csv.lines();
    let place = lines.next()?.split(',').position(|name| name == header)?;
    lines.next()?.split(',').nth(place).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_each_form() {
        assert!(brief_shows("NO VERDICT  1 GiB  (2 warnings)", 2));
        assert!(!brief_shows("FITS  1 GiB", 2));
        assert_eq!(
            column("trace,warnings,x\na.json,3,\"y, z\"\n", "warnings").as_deref(),
            Some("3")
        );
        assert_eq!(column("trace\na.json\n", "warnings"), None);
        assert!(calls_it_damaged("WOULD FIT (DAMAGED TRACE)  1 GiB"));
        assert!(!calls_it_damaged("FITS  1 GiB"));
    }
}
