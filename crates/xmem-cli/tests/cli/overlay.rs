//! What a script writes while it is recorded does not reach the files of the user.

use crate::job::Folder;
use crate::profile::{flat, folder, profile};
use crate::shell::{Ran, command};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

const WRITERS: &str = include_str!("writers.py");

/// The files that the script finds.
const FILES: [(&str, &str); 13] = [
    ("best.pt", "trained"),
    ("log.csv", "step,loss\n"),
    ("settings.json", "{}"),
    ("raw.bin", "raw"),
    ("renamed.txt", "renamed"),
    ("removed.txt", "removed"),
    ("checkpoints/1.pt", "1"),
    ("data/a", "a"),
    ("data/b", "b"),
    ("long.txt", "long"),
    ("old.txt", "old"),
    ("mode.txt", "mode"),
    ("mapped.bin", "mapped"),
];

/// A folder of a user with results, and a script that overwrites them; `end` is how it ends.
fn user(end: &str) -> Folder {
    let script = format!("{WRITERS}\nstart(3)\n{end}");
    let folder = folder(&script);
    for name in ["checkpoints", "data", "empty", "home"] {
        std::fs::create_dir(folder.path(name)).expect("made");
    }
    for (name, text) in FILES {
        folder.put(name, text.as_bytes());
    }
    folder.put("inner.txt", b"inner");
    let made = "import sqlite3; c = sqlite3.connect('runs.db'); c.execute('create table runs (a)'); \
                c.execute('insert into runs values (1)'); c.commit()";
    let mut python = std::process::Command::new("python3");
    let status = python.args(["-c", made]).current_dir(folder.path(".")).status();
    assert!(status.expect("runs").success());
    // Times that no file gets by being written now.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    for name in manifest(Path::new(&folder.path("."))).keys() {
        let file = std::fs::File::open(folder.path(name)).expect("there");
        file.set_modified(old).expect("set");
    }
    folder
}

/// Everything about the files in a folder but when they were read.
fn manifest(folder: &Path) -> BTreeMap<String, (u32, i64, i64, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner).expect("listed") {
            let path = entry.expect("listed").path();
            let metadata = path.symlink_metadata().expect("there");
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            // What xmem itself writes, and Python's cache of the tests' prelude.
            if name.starts_with("trace.json") || name.starts_with(".xmem") {
                continue;
            }
            let content =
                if metadata.is_file() { std::fs::read(&path).expect("read") } else { vec![] };
            let mode = metadata.permissions().mode();
            found.insert(
                name,
                (mode, metadata.mtime(), metadata.mtime_nsec(), metadata.ino(), content),
            );
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn record(folder: &Folder, options: &[&str]) -> Ran {
    let mut line = vec!["profile"];
    line.extend(options);
    line.extend(["--", "python3", "train.py"]);
    let mut command = command(line);
    command.current_dir(folder.path(".")).env("HOME", folder.path("home"));
    command.stdin(Stdio::null()).output().expect("runs").into()
}

#[test]
fn no_writer_changes_a_file_however_the_script_ends() {
    let ends = [
        ("write_everything()\nexport()", 0),
        ("write_everything()\nexport()\nsys.exit(0)", 0),
        ("try:\n    export()\n    sys.exit(0)\nfinally:\n    write_everything()", 0),
        ("import atexit\natexit.register(write_everything)\nexport()", 0),
        ("write_everything()\nexport(1, 'exception', detail='ValueError')\nraise ValueError", 4),
        ("write_everything()\nexport()\nos.kill(os.getpid(), signal.SIGTERM)", 0),
        ("write_everything()\nexport()\nos.kill(os.getpid(), signal.SIGKILL)", 0),
        ("write_everything()\nos.kill(os.getpid(), signal.SIGKILL)", 3),
    ];
    let ways = ["auto", "preload"];
    for ((end, code), way) in ends.into_iter().flat_map(|end| ways.map(|way| (end, way))) {
        let folder = user(end);
        let before = manifest(Path::new(&folder.path(".")));
        let ran = record(&folder, &["--overlay", way]);
        let seen = ran.stdout.trim();
        assert_eq!((ran.code, seen), (code, "seen 32"), "{way} {end}: {}", ran.stderr);
        let after = manifest(Path::new(&folder.path(".")));
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "{way} {end}"
        );
        assert!(after == before, "{way} {end}");
        let message = flat(&ran);
        assert!(message.contains("kept out of your files:"), "{message}");
    }
}

#[test]
fn a_killed_recording_changes_no_file_and_the_next_one_removes_what_was_kept() {
    let folder = user("write_everything()\nopen(SESSION + '/ready', 'w').close()\ntime.sleep(20)");
    let before = manifest(Path::new(&folder.path(".")));
    let mut command = command(["profile", "-q", "--", "python3", "train.py"]);
    command.current_dir(folder.path(".")).env("HOME", folder.path("home"));
    command.env("TMPDIR", folder.path("temporary")).stdout(Stdio::piped());
    std::fs::create_dir(folder.path("temporary")).expect("made");
    let mut child = command.spawn().expect("runs");
    let mut said = String::new();
    let out = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).expect("read");
    assert_eq!(said, "seen 32\n");
    child.kill().expect("killed");
    child.wait().expect("ends");
    std::fs::remove_dir_all(folder.path("temporary")).expect("removed");
    assert!(manifest(Path::new(&folder.path("."))) == before);
}

#[test]
fn the_user_lets_the_script_write_to_a_folder_or_everywhere() {
    let script = "start(3)\nopen('out/a', 'w').write('a')\nopen('b', 'w').write('b')\nexport()";
    for (option, expected) in [
        (&["--let-write", "out"][..], ["out/a"].as_slice()),
        (&["--let-write", "all"], &["b", "out/a"]),
        (&[], &[]),
    ] {
        let folder = folder(script);
        std::fs::create_dir(folder.path("out")).expect("made");
        let ran = profile(&folder, option);
        assert_eq!(ran.code, 0, "{option:?}: {}", ran.stderr);
        for name in ["b", "out/a"] {
            let is_there = Path::new(&folder.path(name)).exists();
            assert_eq!(is_there, expected.contains(&name), "{option:?} {name}");
        }
        let kept = 2 - expected.len();
        let says = format!("{kept} file{} that the script wrote", if kept == 1 { "" } else { "s" });
        assert_eq!(ran.stderr.contains(&says), kept > 0, "{}", ran.stderr);
    }
    let folder = folder(script);
    let ran = profile(&folder, &["--let-write", "nowhere"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(flat(&ran).contains("cannot let the script write to `nowhere`"), "{}", ran.stderr);
}

#[test]
fn checkpoints_that_are_kept_out_are_counted() {
    let script =
        "start(3)\nopen('model.pt', 'wb').truncate(3 << 30)\nos.remove('old.txt')\nexport()";
    let folder = folder(script);
    folder.put("old.txt", b"old");
    let ran = profile(&folder, &[]);
    let message = flat(&ran);
    assert!(
        message.contains(
            "note: kept out of your files: 1 file that the script wrote (3.00 GiB, 1 checkpoint), 1 that the \
             script removed or renamed; --let-write PATH lets it write there"
        ),
        "{message}"
    );
    assert_eq!(folder.read("old.txt"), "old");
}

#[test]
fn a_script_that_does_not_exist_is_named_as_without_an_overlay() {
    let folder = folder("");
    folder.put("plain.txt", b"no program");
    for (program, text) in [
        ("no-such-program", "cannot run `no-such-program` ╰─▶ No such file"),
        ("./plain.txt", "cannot run `./plain.txt` ╰─▶ Permission denied"),
    ] {
        let mut command = command(["profile", "--", program]);
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!(ran.code, 2, "{program}: {}", ran.stderr);
        assert!(flat(&ran).contains(text), "{program}: {}", flat(&ran));
    }
}

#[test]
fn requests_that_change_something_elsewhere_are_refused_and_those_that_read_pass() {
    let script = r#"
import urllib.request, urllib.error, socket
def ask(method, url):
    try:
        urllib.request.urlopen(urllib.request.Request(url, method=method, data=b"x" if method == "POST" else None), timeout=0.2)
    except urllib.error.URLError as error:
        return "refused" if "xmem" in str(error) else "sent"
    except OSError:
        return "sent"
# Addresses for documentation (RFC 5737): nothing answers there.
print(ask("POST", "http://192.0.2.1/runs"), ask("GET", "http://192.0.2.1/data"), ask("POST", "http://127.0.0.1:9/runs"))
try:
    socket.create_connection(("192.0.2.1", 5432), timeout=0.2)
except OSError as error:
    print("refused" if "xmem" in str(error) else "sent")
print(os.environ["WANDB_MODE"], os.environ["NEPTUNE_MODE"])
"#;
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.stdout, "refused sent sent\nrefused\ndisabled debug\n", "{}", ran.stderr);
}
