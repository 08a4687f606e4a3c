//! `xmem export`, as far as it needs no PyTorch: with scripts that speak the hook's side of the protocol.

use crate::profile::{flat, folder};
use crate::shell::{Ran, command, xmem};

/// Says what a hook says that has written a graph, or why it has none.
const SIDE: &str = r#"
SETTINGS = json.load(open(SESSION + "/settings.json"))
say("python", parent=os.getppid(), version="3.99.1")
say("torch", version="2.99.0+cpu")
"#;

fn export(script: &str, options: &[&str]) -> (crate::job::Folder, Ran) {
    let folder = folder(&format!("{SIDE}{script}"));
    let ran = export_in(&folder, options);
    (folder, ran)
}

fn export_in(folder: &crate::job::Folder, options: &[&str]) -> Ran {
    let mut line = vec!["export"];
    line.extend(options);
    line.extend(["--", "python3", "train.py"]);
    command(line).current_dir(folder.path(".")).output().expect("runs").into()
}

#[test]
fn the_archive_of_the_hook_is_put_where_it_was_asked_for() {
    let script = r#"
assert SETTINGS["purpose"] == "export-graph" and SETTINGS["steps"] == 2
open(SETTINGS["graph"], "w").write("archive")
open("notes.txt", "w").write("of the script")
say("graph", operators=13, parameters=72250, inputs=["x", "target"], dynamic=["batch"], fixed="UserError: no length")
"#;
    let (folder, ran) = export(script, &["-o", "runs.pt2", "--from-step", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(folder.path("runs.pt2")).expect("there"), "archive");
    assert!(!std::path::Path::new(&folder.path("notes.txt")).exists(), "{}", ran.stderr);
    let text = flat(&ran);
    for part in [
        "runs.pt2 (7 B)",
        "13 operators, 72250 parameters; inputs: x, target",
        "sizes that may differ from this batch's: batch (UserError: no length)",
        "next: xmem estimate runs.pt2 --training",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_reason_is_told_and_an_existing_file_kept() {
    let script = r#"say("no_graph", text="torch.export: RuntimeError: no rule (at train.py:7)")"#;
    let folder = folder(&format!("{SIDE}{script}"));
    folder.put("model.pt2", b"before");
    let ran = export_in(&folder, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(folder.path("model.pt2")).expect("there"), "before");
    let text = flat(&ran);
    assert!(text.contains("no graph can be exported: torch.export: RuntimeError"), "{text}");
    assert!(text.contains("(at train.py:7)") && text.contains("xmem profile"), "{text}");
}

#[test]
fn an_archive_that_is_announced_and_missing_or_a_link_is_not_taken() {
    for write in ["", "os.symlink('/etc/hostname', SETTINGS['graph'])"] {
        let (folder, ran) = export(&format!("{write}\nsay('graph')"), &[]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(!std::path::Path::new(&folder.path("model.pt2")).exists());
    }
}

#[test]
fn a_script_that_trains_nothing_has_no_graph() {
    let (folder, ran) = export("", &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(!std::path::Path::new(&folder.path("model.pt2")).exists());
}

#[test]
fn commands_that_were_hardly_meant_are_refused() {
    for (arguments, message) in [
        (&["export", "--", "train.py"][..], "is a script, not a command"),
        (&["export", "--from-step", "0", "--", "python3"], "expected a whole number from 1 up"),
        (&["export", "--device-as", "z80", "--", "python3"], "z80"),
        (&["export", "-o", "/", "--", "python3", "train.py"], "not a plain file"),
        (&["export", "--", "python3", "-I", "train.py"], "disables the recording hook"),
    ] {
        let ran = xmem(arguments.iter().copied());
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{arguments:?}: {}", ran.stderr);
    }
}
