//! Runs that end early: signals, and a reader that goes away. Named pipes hold a run up where the
//! test wants it.

use crate::job::{self, Folder};
use crate::shell::{command, xmem};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Traces, in the order in which they are done; some of them do not come before the test wants it.
struct Held {
    folder: Folder,
    traces: Vec<String>,
}

impl Held {
    /// `a`, a pipe for each job, `y` and `z`.
    fn new(jobs: usize) -> Self {
        let folder = Folder::empty();
        let mut traces = vec![folder.path("a.json")];
        for pipe in 0..jobs {
            let path = folder.path(&format!("pipe{pipe}.json"));
            assert!(Command::new("mkfifo").arg(&path).status().expect("runs").success());
            traces.push(path);
        }
        traces.extend(["y.json", "z.json"].map(|name| folder.path(name)));
        for name in ["a.json", "y.json", "z.json"] {
            folder.put(name, &job::trace());
        }
        Self { folder, traces }
    }

    fn args(&self, format: &str, jobs: usize) -> Vec<String> {
        let words = ["replay", "--capacity", "4GiB", "-f", format, "--skip-done"];
        let rest = ["-o".to_owned(), self.folder.path("out"), format!("--jobs={jobs}")];
        let words = words.into_iter().map(str::to_owned).chain(rest);
        words.chain(self.traces.iter().cloned()).collect()
    }

    /// Starts the run, and signals it once it waits at all pipes.
    fn signalled(&self, format: &str, jobs: usize, signal: &str) -> Running {
        let mut child = command(self.args(format, jobs))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let pipes = self.traces[1..=jobs].iter().map(|path| begun(path)).collect();
        let running = Running { child, stderr, pipes };
        running.signal(signal);
        running
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path("out")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Puts plain files in the place of the pipes.
    fn settle(&self, jobs: usize) {
        for path in &self.traces[1..=jobs] {
            std::fs::remove_file(path).expect("removed");
            std::fs::write(path, job::trace()).expect("written");
        }
    }
}

/// The end of a pipe to write to, as soon as somebody reads it.
fn opening(pipe: &str) -> Receiver<io::Result<File>> {
    let (sender, receiver) = channel();
    let path = pipe.to_owned();
    thread::spawn(move || sender.send(File::options().write(true).open(path)));
    receiver
}

/// The same, of a run that must come to it.
fn begun(pipe: &str) -> File {
    let opened = opening(pipe).recv_timeout(Duration::from_secs(120));
    opened.expect("the run comes to the pipe").expect("a pipe")
}

/// A run that waits for what comes through pipes.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pipes: Vec<File>,
}

impl Running {
    /// Lets the run go on.
    fn feed(&mut self) {
        for mut pipe in self.pipes.drain(..) {
            pipe.write_all(&job::trace()).expect("read");
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("runs").success());
    }

    /// Waits for the note about the signal.
    fn is_heard(&mut self) {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("read");
        assert!(line.contains("interrupt again to stop immediately"), "{line}");
    }

    fn code(mut self) -> Option<i32> {
        self.child.wait().expect("ends").code()
    }
}

#[test]
fn a_signal_leaves_whole_lines_and_the_rest_can_be_done_later() {
    for (format, jobs, signal, code) in
        [("jsonl", 1, "INT", 130), ("csv", 1, "TERM", 143), ("jsonl", 2, "TERM", 143)]
    {
        let held = Held::new(jobs);
        let mut running = held.signalled(format, jobs, signal);
        running.is_heard();
        running.feed();
        assert_eq!(running.code(), Some(code), "{format}");
        let text = held.folder.read("out");
        assert!(text.ends_with('\n'));
        let rows = held.lines();
        let answers = rows.len() - usize::from(format == "csv");
        assert_eq!(answers, 1 + jobs, "what was at work is finished, and no other begun");

        held.settle(jobs);
        let resumed = xmem(held.args(format, jobs));
        assert_eq!(resumed.code, 0, "{}", resumed.stderr);
        let all: BTreeSet<String> = held.lines().into_iter().collect();
        assert_eq!(held.lines().len(), all.len(), "none twice");
        let fresh = ["replay", "--capacity", "4GiB", "-f", format];
        let fresh = xmem(fresh.into_iter().chain(held.traces.iter().map(String::as_str)));
        assert_eq!(all, fresh.stdout.lines().map(str::to_owned).collect(), "{format}");
        assert!(text.lines().all(|line| all.contains(line)), "what was written stayed");
    }
}

#[test]
fn a_second_signal_ends_the_run_at_once() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let held = Held::new(1);
        let mut running = held.signalled("jsonl", 1, "INT");
        running.is_heard();
        running.signal(signal);
        assert_eq!(running.code(), Some(code));
        let lines = held.lines();
        assert_eq!(lines.len(), 1);
        let line: Value = serde_json::from_str(&lines[0]).expect("a whole line");
        assert_eq!(line["trace"], held.traces[0]);
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_long_run_quietly() {
    let held = Held::new(20);
    let mut args = held.args("jsonl", 1);
    args.retain(|word| word != "--skip-done" && word != "-o" && !word.ends_with("/out"));
    let mut child =
        command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    // A process that another test starts at this moment may keep the reader's end for a while, so
    // that more than one line goes somewhere.
    let mut begun = 0;
    for pipe in &held.traces[1..=20] {
        let receiver = opening(pipe);
        let opened = loop {
            if let Ok(opened) = receiver.recv_timeout(Duration::from_millis(20)) {
                break Some(opened.expect("a pipe"));
            }
            if child.try_wait().expect("waits").is_some() {
                break None;
            }
        };
        let Some(mut pipe) = opened else { break };
        begun += 1;
        pipe.write_all(&job::trace()).expect("read");
    }
    assert!(begun < 20, "it goes on and on");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let first: Value = serde_json::from_str(&first).expect("a whole line");
    assert_eq!(first["trace"], held.traces[0]);
}
