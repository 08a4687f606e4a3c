//! The cases of a task: a line for each, and what became of all.

use crate::Error;
use std::process::Output;
use std::time::Instant;

/// What became of the cases.
#[derive(Debug)]
pub struct Tally {
    task: &'static str,
    start: Instant,
    cases: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// No cases yet, of this task.
    pub fn new(task: &'static str) -> Self {
        Self { task, start: Instant::now(), cases: 0, failed: 0, skipped: 0 }
    }

    /// Runs a case, and prints what is not as it should be.
    pub fn check(
        &mut self,
        name: &str,
        case: impl FnOnce() -> Result<Vec<String>, Error>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let complaints = case()?;
        let word = if complaints.is_empty() { "ok" } else { "FAILED" };
        println!("{word:7} {name:72} {:5.1} s", start.elapsed().as_secs_f64());
        for complaint in &complaints {
            println!("  {}", complaint.trim_end().replace('\n', "\n  "));
        }
        self.cases += 1;
        self.failed += usize::from(!complaints.is_empty());
        Ok(())
    }

    /// Notes a case that cannot be run.
    pub fn skip(&mut self, name: &str, why: &str) {
        println!("{:7} {name}: {why}", "skipped");
        self.skipped += 1;
    }

    /// Notes failures that have been printed.
    pub fn add_failed(&mut self, count: usize) {
        self.failed += count;
    }

    /// Prints the sums.
    pub fn finish(&self) -> Result<(), Error> {
        let skipped = match self.skipped {
            0 => String::new(),
            count => format!(", {count} skipped"),
        };
        let seconds = self.start.elapsed().as_secs_f64();
        println!("\n{} cases, {} failed{skipped}, {seconds:.0} s", self.cases, self.failed);
        match self.failed {
            0 => Ok(()),
            count => Err(Error::Cases { task: self.task, count }),
        }
    }
}

/// Standard output and standard error.
pub fn text_of(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}
