//! Running a program under callgrind, and reading what it counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use xmem_task::{Error, TaskError, repo};

/// The programs that count instructions are not there.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}: install valgrind (apt-get install valgrind)")]
struct ValgrindError {
    program: &'static str,
}

impl TaskError for ValgrindError {}

/// Functions that are told.
const FUNCTIONS: usize = 12;

/// What one run took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) total: u64,
    /// The functions that took most, without what they call.
    pub(super) functions: BTreeMap<String, u64>,
}

impl Count {
    /// The functions that take most beyond `expected` times what they took before, one a line.
    pub(super) fn growth(&self, before: &BTreeMap<String, u64>, expected: f64) -> String {
        let more = |(name, &now): (&String, &u64)| {
            let before = before.get(name).copied();
            (now as f64 - expected * before.unwrap_or(0) as f64, now, before, name.clone())
        };
        let mut rows: Vec<_> = self.functions.iter().map(more).collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut text = String::new();
        for (_, now, before, name) in rows.into_iter().take(5) {
            let before = before.map_or("not among the first".to_owned(), millions);
            let _ = writeln!(text, "  {:>10}, before {before}: {name}", millions(now));
        }
        text
    }
}

fn millions(count: u64) -> String {
    format!("{:.1} M", count as f64 / 1e6)
}

/// Fails with what to install if callgrind is not there.
pub(super) fn is_there() -> Result<(), Error> {
    for program in ["valgrind", "callgrind_annotate"] {
        let mut command = bare(program);
        let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        // Perl scripts that tell their version say that they failed.
        if status.is_err() {
            return Err(ValgrindError { program }.into());
        }
    }
    Ok(())
}

/// Counts the instructions of `xmem replay` on a trace.
pub(super) fn count(program: &Path, trace: &Path, out: &Path) -> Result<Count, Error> {
    let mut command = bare("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(program).arg("replay").arg(trace);
    command.args(["--threads", "1", "--cudnn", "model", "--device", "h200-141g"]);
    command.args(["--exit-zero", "--format", "json"]);
    said(&mut command)?;
    let mut command = bare("callgrind_annotate");
    let text = said(command.arg("--auto=no").arg(out))?;
    read(&text).ok_or_else(|| Error::Figures { path: out.to_owned() })
}

/// A command whose environment is the same everywhere: its length is among what is counted.
fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(repo::root());
    command
}

/// What a command prints, if it succeeds.
fn said(command: &mut Command) -> Result<String, Error> {
    let spelled = format!("{command:?}");
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(Error::start(&spelled))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    eprint!("{}", String::from_utf8_lossy(&done.stderr));
    Err(Error::Failed { command: spelled })
}

/// Reads lines like `19,010,021 (20.81%)  pull.rs:xmem_trace::pull::next [/path/to/xmem]`.
fn read(text: &str) -> Option<Count> {
    let mut total = None;
    let mut functions = BTreeMap::new();
    for line in text.lines() {
        let Some((count, rest)) = line.trim_start().split_once(' ') else { continue };
        let Ok(count) = count.replace(',', "").parse::<u64>() else { continue };
        let rest = rest.trim_start();
        let rest = if rest.starts_with('(') { rest.split_once(')')?.1.trim_start() } else { rest };
        if rest == "PROGRAM TOTALS" {
            total = Some(count);
            continue;
        }
        let Some((_, name)) = rest.split_once(':') else { continue };
        let name = name.rsplit_once(" [").map_or(name, |(name, _)| name);
        if functions.len() < FUNCTIONS {
            *functions.entry(name.to_owned()).or_default() += count;
        }
    }
    Some(Count { total: total?, functions })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
--------------------------------------------------------------------------------
Profile data file '/x/1.callgrind' (creator: callgrind-3.19.0)
--------------------------------------------------------------------------------
Timerange: Basic block 0 - 20148346
Profiled target:  xmem replay t.json (PID 23801, part 1)
--------------------------------------------------------------------------------
Ir
--------------------------------------------------------------------------------
91,329,394 (100.0%)  PROGRAM TOTALS

--------------------------------------------------------------------------------
Ir                   file:function
--------------------------------------------------------------------------------
19,010,021 (20.81%)  ???:xmem_trace::pull::Events::next [/target/xmem]
   591,736 ( 5.03%)  ./string/memmove.S:__memcpy_avx [/usr/lib/libc.so.6]
";

    fn functions(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn totals_and_functions_are_read_from_what_callgrind_prints() {
        let found = read(PRINTED).expect("a total");
        assert_eq!(found.total, 91_329_394);
        let expected = [("xmem_trace::pull::Events::next", 19_010_021), ("__memcpy_avx", 591_736)];
        assert_eq!(found.functions, functions(&expected));
        assert_eq!(read("no counts"), None);
    }

    #[test]
    fn what_grew_most_comes_first() {
        let count = Count { total: 0, functions: functions(&[("a", 9_000_000), ("b", 5_000_000)]) };
        let before = functions(&[("a", 8_000_000), ("b", 1_000_000)]);
        assert_eq!(
            count.growth(&before, 1.0),
            "       5.0 M, before 1.0 M: b\n       9.0 M, before 8.0 M: a\n"
        );
        assert!(
            count.growth(&before, 4.0).starts_with("       5.0 M"),
            "{}",
            count.growth(&before, 4.0)
        );
    }
}
