//! `cargo xtask bench`: runs the benches, keeps the figures that matter with date, commit and
//! machine, and compares with what was kept before.
//!
//! The figures come from Criterion's own files. Nothing here passes or fails: a time depends on the
//! machine, so that people judge it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use xmem_task::run::cargo;
use xmem_task::{Error, TaskError, repo};

/// Where kept figures lie.
const RESULTS: &str = "benches/results";

/// What to do besides running.
pub(crate) struct Options {
    /// Run only benches whose name contains this.
    pub(crate) filter: Option<String>,
    /// Keep the figures under this name.
    pub(crate) save: Option<String>,
    /// Compare with figures that were kept.
    pub(crate) compare: Option<Which>,
}

/// Which of the kept figures.
pub(crate) enum Which {
    /// Those kept last.
    Newest,
    /// Those of this name.
    Named(String),
}

/// There are no kept figures to compare with.
#[derive(Debug, thiserror::Error)]
#[error("nothing is kept in {} yet: cargo xtask bench --save", .folder.display())]
struct NothingKeptError {
    folder: PathBuf,
}

impl TaskError for NothingKeptError {}

/// The name under which figures are kept if none is given.
pub(crate) fn today() -> String {
    repo::said("date", &["-u", "+%F"])
}

/// The figure of one bench.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    median_ns: f64,
    /// Bytes or elements of one run, as Criterion was told.
    work: Option<(String, u64)>,
}

type Figures = BTreeMap<String, Figure>;

/// Runs the benches, then saves and compares as asked.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let before = match &options.compare {
        Some(which) => {
            let record = match which {
                Which::Newest => newest()?,
                Which::Named(name) => record(&kept(name))?,
            };
            println!("compared with {}", record.of);
            Some(record.figures)
        }
        None => None,
    };
    // Before the benches themselves load the machine.
    let facts = facts(&format!("cargo {}", arguments(options).join(" ")));
    let start = SystemTime::now();
    cargo(&arguments(options))?;

    let mut figures = Figures::new();
    collect(&repo::target()?.join("criterion"), start, &mut figures)?;
    if let Some(name) = &options.save {
        let path = repo::root().join(kept(name));
        let folder = repo::root().join(RESULTS);
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        std::fs::write(&path, write(&figures, &facts)).map_err(Error::file(&path))?;
        println!("{}", path.display());
    }
    print!("{}", table(before.as_ref(), &figures));
    Ok(())
}

/// What cargo is started with.
fn arguments(options: &Options) -> Vec<&str> {
    let mut arguments = vec!["bench", "--package", "xmem-benches", "--benches"];
    if let Some(filter) = &options.filter {
        arguments.extend(["--", filter]);
    }
    arguments
}

/// Figures that were kept.
struct Record {
    figures: Figures,
    /// When, of what and where, for people and in this order.
    of: String,
}

fn record(path: &Path) -> Result<Record, Error> {
    parse(&repo::text(path)?).ok_or_else(|| Error::Figures { path: path.to_owned() })
}

/// The figures that were kept last of each bench: a record may have those of some only.
fn newest() -> Result<Record, Error> {
    let folder = PathBuf::from(RESULTS);
    let of_results = |path: &PathBuf| path.parent() == Some(&folder);
    let paths: Vec<PathBuf> = repo::files()?.into_iter().filter(of_results).collect();
    let records = paths.iter().map(|path| record(path)).collect::<Result<Vec<_>, _>>()?;
    together(records).ok_or_else(|| NothingKeptError { folder }.into())
}

fn together(mut records: Vec<Record>) -> Option<Record> {
    records.sort_by(|a, b| a.of.cmp(&b.of));
    records.into_iter().reduce(|mut before, after| {
        before.figures.extend(after.figures);
        Record { figures: before.figures, of: format!("{}; {}", before.of, after.of) }
    })
}

fn kept(name: &str) -> PathBuf {
    Path::new(RESULTS).join(name).with_extension("toml")
}

/// Reads the figures that this run wrote: Criterion leaves those of earlier runs in place.
fn collect(folder: &Path, start: SystemTime, figures: &mut Figures) -> Result<(), Error> {
    let estimates = folder.join("estimates.json");
    if folder.ends_with("new") && estimates.exists() {
        let written = std::fs::metadata(&estimates).and_then(|data| data.modified());
        if written.is_ok_and(|time| time >= start)
            && let Some((name, figure)) =
                figure(&json(&folder.join("benchmark.json"))?, &json(&estimates)?)
        {
            figures.insert(name, figure);
        }
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        collect(&entry.path(), start, figures)?;
    }
    Ok(())
}

fn json(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    serde_json::from_str(&text).map_err(|_| Error::Figures { path: path.to_owned() })
}

fn figure(benchmark: &Value, estimates: &Value) -> Option<(String, Figure)> {
    let median_ns = estimates["median"]["point_estimate"].as_f64()?;
    let work = benchmark["throughput"]
        .as_object()
        .and_then(|t| t.iter().next())
        .and_then(|(unit, amount)| Some((unit.to_lowercase(), amount.as_u64()?)));
    Some((benchmark["full_id"].as_str()?.to_owned(), Figure { median_ns, work }))
}

/// Where and of what the figures are.
fn facts(command: &str) -> Vec<(&'static str, String)> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    // The average of the last minute.
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        ("schema", "xmem.bench/1".to_owned()),
        ("command", command.to_owned()),
        ("date", repo::said("date", &["-u", "+%FT%RZ"])),
        ("commit", repo::said("git", &["describe", "--always", "--dirty"])),
        ("machine", format!("{}, {cores} cores", model.map_or("unknown CPU", |(_, name)| name))),
        ("rustc", repo::said("rustc", &["--version"])),
        ("load", load.split(' ').next().unwrap_or_default().to_owned()),
    ]
}

fn write(figures: &Figures, facts: &[(&str, String)]) -> String {
    let mut file = toml::Table::new();
    for (key, value) in facts {
        file.insert((*key).to_owned(), value.clone().into());
    }
    let mut results = toml::Table::new();
    for (name, figure) in figures {
        let mut result = toml::Table::new();
        result.insert("median-ns".to_owned(), figure.median_ns.round().into());
        if let Some((unit, amount)) = &figure.work {
            result.insert(unit.clone(), i64::try_from(*amount).unwrap_or(i64::MAX).into());
        }
        results.insert(name.clone(), result.into());
    }
    file.insert("result".to_owned(), results.into());
    file.to_string()
}

fn parse(text: &str) -> Option<Record> {
    let file: toml::Table = text.parse().ok()?;
    let said = |key: &str| file.get(key).and_then(toml::Value::as_str).unwrap_or("not said");
    let [date, commit, machine, load] = ["date", "commit", "machine", "load"].map(said);
    let of = format!("{date}, commit {commit}, {machine}, load {load}");
    let results = file.get("result")?.as_table()?;
    let figures: Option<Figures> = results
        .iter()
        .map(|(name, result)| {
            let result = result.as_table()?;
            let median_ns = result.get("median-ns")?.as_float()?;
            let work = result
                .iter()
                .find(|(key, _)| *key != "median-ns")
                .and_then(|(unit, n)| Some((unit.clone(), u64::try_from(n.as_integer()?).ok()?)));
            Some((name.clone(), Figure { median_ns, work }))
        })
        .collect();
    Some(Record { figures: figures?, of })
}

/// One line for each bench: time, rate, and the change since what was kept.
fn table(before: Option<&Figures>, now: &Figures) -> String {
    let mut text = String::new();
    for (name, figure) in now {
        let rate = figure.work.as_ref().map_or(String::new(), |(unit, amount)| {
            format!("{:.1} M{unit}/s", *amount as f64 * 1e3 / figure.median_ns)
        });
        let change = match before.map(|kept| kept.get(name)) {
            Some(Some(old)) => {
                format!("{:+.1} %", (figure.median_ns / old.median_ns - 1.0) * 100.0)
            }
            Some(None) => "new".to_owned(),
            None => String::new(),
        };
        let milliseconds = figure.median_ns / 1e6;
        let line = format!("{name:<50} {milliseconds:>12.3} ms  {rate:>18}  {change}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for name in before.into_iter().flat_map(BTreeMap::keys).filter(|name| !now.contains_key(*name))
    {
        text.push_str(&format!("{name:<50} not run\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Figures {
        let (name, figure) = figure(
            &json!({ "full_id": "ingest/columns", "throughput": { "Bytes": 600_000_000 } }),
            &json!({ "median": { "point_estimate": 1e9 } }),
        )
        .expect("complete");
        Figures::from([(name, figure), ("b".to_owned(), Figure { median_ns: 2e6, work: None })])
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let facts = [("date", "2026-01-01T00:00Z"), ("machine", "abacus"), ("load", "0.1")];
        let text = write(&sample(), &facts.map(|(key, value)| (key, value.to_owned())));
        let record = parse(&text).expect("what was written");
        assert_eq!(record.figures, sample());
        assert_eq!(record.of, "2026-01-01T00:00Z, commit not said, abacus, load 0.1");
    }

    #[test]
    fn of_several_records_the_newest_figure_of_each_bench_counts() {
        let named = |figures: &[(&str, f64)], of: &str| Record {
            figures: figures
                .iter()
                .map(|&(name, median_ns)| (name.to_owned(), Figure { median_ns, work: None }))
                .collect(),
            of: of.to_owned(),
        };
        let newer = named(&[("b", 3.0)], "2026-01-02, of b alone");
        let older = named(&[("a", 1.0), ("b", 2.0)], "2026-01-01");
        let both = together(vec![newer, older]).expect("two records");
        assert_eq!(both.figures, named(&[("a", 1.0), ("b", 3.0)], "").figures);
        assert_eq!(both.of, "2026-01-01; 2026-01-02, of b alone");
        assert!(together(Vec::new()).is_none());
    }

    #[test]
    fn the_table_shows_rates_and_changes() {
        let mut now = sample();
        now.get_mut("b").expect("there").median_ns = 3e6;
        now.insert("c".to_owned(), Figure { median_ns: 1e6, work: None });
        let mut before = sample();
        before.insert("gone".to_owned(), Figure { median_ns: 1.0, work: None });
        let lines: Vec<String> = table(Some(&before), &now)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "b 3.000 ms +50.0 %",
                "c 1.000 ms new",
                "ingest/columns 1000.000 ms 600.0 Mbytes/s +0.0 %",
                "gone not run"
            ]
        );
    }
}
