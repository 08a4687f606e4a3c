//! `cargo xtask accuracy`: predicted against recorded peaks, trace by trace.
//!
//! Drives the released binary as a user would, so that what is measured is what is shipped.

use crate::error::Error;
use crate::{repo, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes below which an error is judged in MiB, not in per cent.
const SMALL: f64 = 150.0;

/// How the table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns.
    Text,
    /// A Markdown table, for the book.
    Markdown,
}

/// What the estimate must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Highest median of the absolute error of peak reserved, in per cent.
    pub(crate) median: Option<f64>,
    /// Highest absolute error of peak reserved of any trace, in per cent; traces below 150 MiB
    /// may be 20 MiB off.
    pub(crate) worst: Option<f64>,
}

/// One trace's figures, in MiB.
struct Row {
    name: String,
    allocated: Pair,
    reserved: Pair,
}

#[derive(Clone, Copy)]
struct Pair {
    predicted: f64,
    recorded: f64,
}

impl Pair {
    /// Signed error in per cent of the recorded value.
    fn error(self) -> f64 {
        100.0 * (self.predicted - self.recorded) / self.recorded
    }
}

/// Prints the table and fails if it breaks the limits.
pub(crate) fn run(folders: Vec<PathBuf>, format: Format, limits: Limits) -> Result<(), Error> {
    run::cargo(&["build", "--release", "--quiet", "--package", "xmem-cli"])?;
    let binary = repo::target()?.join("release").join("xmem");
    let folders = if folders.is_empty() { recorded()? } else { folders };
    let rows = folders.iter().map(|f| row(&binary, f)).collect::<Result<Vec<_>, _>>()?;
    let reserved: Vec<f64> = rows.iter().map(|r| r.reserved.error()).collect();
    let allocated: Vec<f64> = rows.iter().map(|r| r.allocated.error()).collect();
    print(&rows, format);
    println!();
    println!("{} traces", rows.len());
    println!("peak allocated: {}", summary(&allocated));
    println!("peak reserved:  {}", summary(&reserved));
    judge(&rows, limits)
}

/// Every folder of `traces/` with a recording of the CUDA side.
fn recorded() -> Result<Vec<PathBuf>, Error> {
    let mut folders: Vec<PathBuf> = repo::files()?
        .into_iter()
        .filter(|path| path.starts_with("traces") && path.ends_with("expected.toml"))
        .filter_map(|path| path.parent().map(|folder| repo::root().join(folder)))
        .collect();
    folders.sort();
    Ok(folders)
}

fn row(binary: &Path, folder: &Path) -> Result<Row, Error> {
    let expected = folder.join("expected.toml");
    let text = std::fs::read_to_string(&expected).map_err(Error::file(&expected))?;
    let unclear = || Error::Figures { path: expected.clone() };
    let recorded: toml::Table = text.parse().map_err(|_| unclear())?;
    let device = recorded.get("device").and_then(|d| d.get("name")).and_then(toml::Value::as_str);
    let peak = |key: &str| -> Option<f64> {
        Some(mib(recorded.get("peak")?.get(key)?.as_integer()? as f64))
    };
    let answer = estimate(binary, folder, device.ok_or_else(unclear)?)?;
    let predicted = |key: &str| answer["peak"][key].as_f64().map(mib).ok_or_else(unclear);
    Ok(Row {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        allocated: Pair {
            predicted: predicted("allocated_bytes")?,
            recorded: peak("allocated-bytes").ok_or_else(unclear)?,
        },
        reserved: Pair {
            predicted: predicted("reserved_bytes")?,
            recorded: peak("reserved-bytes").ok_or_else(unclear)?,
        },
    })
}

fn estimate(binary: &Path, folder: &Path, device: &str) -> Result<Value, Error> {
    let mut command = Command::new(binary);
    command.arg("replay").arg(trace(folder)).args(["--device", device]);
    command.args(["--format", "json", "--exit-zero", "-q"]);
    let spelled = format!("{command:?}");
    let done =
        command.output().map_err(|source| Error::Start { command: spelled.clone(), source })?;
    if !done.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&done.stderr));
        return Err(Error::Failed { command: spelled });
    }
    serde_json::from_slice(&done.stdout).map_err(Error::Metadata)
}

/// The trace of a folder, compressed or not.
fn trace(folder: &Path) -> PathBuf {
    let packed = folder.join("trace.json.zst");
    if packed.is_file() { packed } else { folder.join("trace.json") }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn print(rows: &[Row], format: Format) {
    let head = ["trace", "allocated", "recorded", "error", "reserved", "recorded", "error"];
    match format {
        Format::Markdown => {
            println!("| {} |\n|---|--:|--:|--:|--:|--:|--:|", head.join(" | "));
        }
        Format::Text => {
            let [a, b, c, d, e, f, g] = head;
            println!("{a:32} {b:>10} {c:>10} {d:>8}  {e:>10} {f:>10} {g:>8}   (MiB)");
        }
    }
    for row in rows {
        let cells = [row.allocated, row.reserved].map(|pair| {
            (
                format!("{:.1}", pair.predicted),
                format!("{:.1}", pair.recorded),
                format!("{:+.2} %", pair.error()),
            )
        });
        let [(a, b, c), (d, e, f)] = cells;
        match format {
            Format::Markdown => println!("| `{}` | {a} | {b} | {c} | {d} | {e} | {f} |", row.name),
            Format::Text => {
                println!("{:32} {a:>10} {b:>10} {c:>8}  {d:>10} {e:>10} {f:>8}", row.name);
            }
        }
    }
}

fn summary(errors: &[f64]) -> String {
    let mut sorted: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    let worst = sorted.last().copied().unwrap_or_default();
    format!("median |error| {:.2} %, worst {worst:.2} %", median(&sorted))
}

/// The middle of sorted values; the mean of the two middle ones.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

fn judge(rows: &[Row], limits: Limits) -> Result<(), Error> {
    let mut errors: Vec<f64> = rows.iter().map(|r| r.reserved.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let mut broken = 0;
    if let Some(limit) = limits.median.filter(|limit| median(&errors) > *limit) {
        println!("the median is above {limit} %");
        broken += 1;
    }
    for row in rows {
        let pair = row.reserved;
        let off = (pair.predicted - pair.recorded).abs();
        let Some(limit) = limits.worst else { continue };
        let bad = if pair.recorded < SMALL { off > 20.0 } else { pair.error().abs() > limit };
        if bad {
            println!("{} is off by {:+.2} % ({off:.0} MiB)", row.name, pair.error());
            broken += 1;
        }
    }
    if broken == 0 { Ok(()) } else { Err(Error::Untidy { count: broken }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_counts_is_the_mean_of_the_middle() {
        assert!((median(&[1.0, 2.0, 4.0, 8.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 4.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn small_jobs_are_judged_in_mib() {
        let row = |recorded: f64, predicted: f64| Row {
            name: String::new(),
            allocated: Pair { predicted, recorded },
            reserved: Pair { predicted, recorded },
        };
        let limits = Limits { median: None, worst: Some(15.0) };
        assert!(judge(&[row(100.0, 119.0)], limits).is_ok());
        assert!(judge(&[row(200.0, 231.0)], limits).is_err());
    }
}
