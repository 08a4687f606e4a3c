//! One text file per case in `filetests/`: a script, and below each step the state that it must
//! lead to. `UPDATE_EXPECT=1 cargo test -p xmem-simulator --test filetests` writes the states anew.
//!
//! A file starts with `#` lines that say what is shown and which function of PyTorch or TensorFlow
//! decides it. Then, one a line:
//!
//! | line | |
//! |---|---|
//! | `allocator tf-bfc`, `allocator uncached` | optional, first: TensorFlow's allocator, or none |
//! | `torch RELEASE` | optional, before the options |
//! | `device capacity=SIZE taken=SIZE total=SIZE order=driver\|ascending\|descending events=held` | optional |
//! | `conf STRING` | optional: options in PyTorch's own syntax |
//! | `option NAME=VALUE` | optional: see `pytorch_option` and `bfc_option` |
//! | `alloc NAME SIZE [stream=N]` | |
//! | `free NAME...` | |
//! | `record NAME stream=N` | `Tensor.record_stream` |
//! | `synchronize` | `torch.cuda.synchronize` |
//! | `release` | gives everything cached back (`torch.cuda.empty_cache`) |
//! | `fraction NUMBER` | `torch.cuda.set_per_process_memory_fraction` |
//! | `reset_peaks` | `torch.cuda.reset_peak_memory_stats`; tells the peaks |
//! | `capacity SIZE` | the device has this much from here on |
//! | `enter POOL [no_split] [use_on_oom]` | `torch.cuda.use_mem_pool`, pools are numbers |
//! | `capture POOL stream=N` | a graph capture begins |
//! | `leave POOL`, `drop POOL` | the scope or capture ends; the `MemPool` or graph is deleted |
//! | `replay` | sends all requests so far through `replay` and `min_capacity` |
//!
//! Lines that start with `>` are the expectation. Addresses count from the first segment's start.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

mod case;
mod output;
mod settings;

use case::Case;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
#[test]
fn every_file_leads_to_the_states_it_tells() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut files = 0;
    let mut failures = String::new();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|e| e != "alloc") {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).expect("readable");
        let name = path.file_name().expect("a file").to_string_lossy();
        assert!(text.starts_with("# "), "{name}: the first line says what is shown");
        let cites = [".cpp", ".cc", ".h"].iter().any(|source| text.contains(source));
        assert!(cites, "{name}: cites no source");
        let actual = run(&text, &name);
        if actual == text {
            continue;
        }
        if update {
            fs::write(&path, actual).expect("writable");
        } else {
            let diff = first_difference(&text, &actual);
            writeln!(failures, "{name}: {diff}").expect("a string");
        }
    }
    assert!(files >= 90, "only {files} files found");
    assert!(failures.is_empty(), "\n{failures}(UPDATE_EXPECT=1 accepts what the simulator says)");
}

fn first_difference(want: &str, got: &str) -> String {
    let line = want.lines().zip(got.lines()).position(|(w, g)| w != g);
    let line = line.unwrap_or_else(|| want.lines().count().min(got.lines().count()));
    let of = |text: &str| text.lines().nth(line).unwrap_or("(end of file)").to_owned();
    format!("line {}:\n  file:      {}\n  simulator: {}", line + 1, of(want), of(got))
}

/// The file as it should be: its script, with what the simulator says after each step.
fn run(text: &str, name: &str) -> String {
    let mut out = String::new();
    let mut case = Case::default();
    for (row, line) in text.lines().enumerate() {
        if line.starts_with('>') {
            continue;
        }
        writeln!(out, "{line}").expect("a string");
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || line.starts_with('#') {
            continue;
        }
        for said in case.step(&words).unwrap_or_else(|e| panic!("{name}:{}: {e}", row + 1)) {
            writeln!(out, "> {}", said.trim_end()).expect("a string");
        }
    }
    out
}
