//! Python and PyTorch's own tool open what was written.
//!
//! Needs `python3` on the PATH; comparing what `_memory_viz.py` says also needs PyTorch installed,
//! or `XMEM_MEMORY_VIZ`, the path of that one file. What is missing is told and skipped.

#![expect(clippy::disallowed_methods, reason = "Python reads files")]
#![expect(clippy::print_stderr, reason = "says why it checks less")]

use crate::recorded::{folder, pickle};
use crate::written::{example, written};
use std::path::Path;
use std::process::Command;
use xmem_snapshot::{Limits, read};

/// Runs a script of this folder; `None` if there is no Python.
fn python(script: &str, arguments: &[&Path]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshot").join(script);
    let output = match Command::new("python3").arg(script).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: python3 does not start: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    eprint!("{errors}");
    Some(String::from_utf8(output.stdout).expect("Python writes UTF-8"))
}

#[test]
fn python_finds_in_a_written_file_what_pytorch_had_recorded() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    for path in folder() {
        let bytes = pickle(&path);
        let (snapshot, _) = read(&bytes, &Limits::default()).unwrap();
        std::fs::write(&original, &bytes).unwrap();
        std::fs::write(&copy, written(&snapshot)).unwrap();
        let Some(said) = python("compare.py", &[&original, &copy]) else { return };
        assert_eq!(said, "same\n", "{}", path.display());
    }
}

#[test]
fn every_protocol_of_python_says_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    for path in folder() {
        let bytes = pickle(&path);
        let (snapshot, _) = read(&bytes, &Limits::default()).unwrap();
        std::fs::write(&original, &bytes).unwrap();
        let Some(protocols) = python("repickle.py", &[&original]) else { return };
        assert!(!protocols.is_empty());
        for protocol in protocols.lines() {
            let file = temporary.path().join(format!("original.{protocol}"));
            let (other, diagnostics) =
                read(&std::fs::read(file).unwrap(), &Limits::default()).unwrap();
            assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", path.display());
            assert!(other == snapshot, "{} with protocol {protocol}", path.display());
        }
    }
}

#[test]
fn python_opens_a_snapshot_made_from_scratch() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("example");
    std::fs::write(&path, written(&example())).unwrap();
    let Some(said) = python("compare.py", &[&path, &path]) else { return };
    assert_eq!(said, "same\n");
}
