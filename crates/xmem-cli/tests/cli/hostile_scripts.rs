//! `xmem profile` on scripts that attack it, or that break it by accident.

use crate::left_behind::after;
use crate::profile::{flat, folder, new_files, profile, trace, unsealed};
use crate::shell::Ran;
use std::process::Command;

/// Runs `xmem profile` under an umask that hides nothing.
fn profile_with_open_umask(script: &str) -> Ran {
    let folder = folder(script);
    after(
        "unset PYTHONDONTWRITEBYTECODE; umask 000",
        &folder,
        &["profile", "--", "python3", "train.py"],
    )
}

#[test]
fn the_session_folder_is_private_under_any_umask() {
    let script = r#"
import stat
start(3)
entries = [SESSION]
for top, folders, files in os.walk(SESSION):
    entries += [os.path.join(top, name) for name in folders + files]
for entry in entries:
    mode = stat.S_IMODE(os.lstat(entry).st_mode)
    print(f"{mode:o}", "folder" if os.path.isdir(entry) else "file", os.path.relpath(entry, SESSION))
umask = os.umask(0)
print(f"umask {umask:o}")
export()
"#;
    let ran = profile_with_open_umask(script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for entry in [
        "path/__pycache__/sitecustomize.",
        "path/sitecustomize.py",
        "path/xmem_recorder/session.py",
        "settings.json",
        "control",
        "first",
    ] {
        assert!(ran.stdout.contains(entry), "{entry} is not in: {}", ran.stdout);
    }
    let entries = ran.stdout.lines().filter(|line| !line.starts_with("umask"));
    for entry in entries {
        let private = entry.starts_with("700 folder ") || entry.starts_with("600 file ");
        assert!(private, "{entry}");
    }
    assert!(ran.stdout.contains("umask 0\n"), "the umask of the user changed: {}", ran.stdout);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn another_user_cannot_change_the_hook_or_the_session() {
    let id = Command::new("id").arg("-u").output().expect("runs");
    if id.stdout != b"0\n" {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    let script = r#"
start(3)
attack = os.fork()
if attack == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    def attempt(what, action):
        try:
            action()
            print("possible:", what, flush=True)
        except OSError as error:
            print("refused:", what, type(error).__name__, flush=True)
    hook = SESSION + "/path/sitecustomize.py"
    attempt("append to the hook", lambda: open(hook, "a").write("print('owned')"))
    attempt("read the settings", lambda: open(SESSION + "/settings.json").read())
    attempt("list the session", lambda: os.listdir(SESSION))
    attempt("add to the session", lambda: open(SESSION + "/stop", "w"))
    attempt("write to the control pipe", lambda: os.open(SESSION + "/control", os.O_WRONLY | os.O_NONBLOCK))
    attempt("replace the session", lambda: os.rename(SESSION, SESSION + ".old"))
    os._exit(0)
os.waitpid(attack, 0)
export()
"#;
    let ran = profile_with_open_umask(script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let refused = ran.stdout.lines().filter(|line| line.starts_with("refused:")).count();
    assert_eq!(refused, 6, "{}", ran.stdout);
    assert!(!ran.stdout.contains("possible:"), "{}", ran.stdout);
}

#[test]
fn what_is_exported_must_be_a_trace() {
    let announced = "start(3)\npath = f'{SESSION}/{os.getpid()}.json'\n";
    let claim = "say('export', path=path, iterations=3, reason='steps')\n\
        say('exported', streamed=STREAMED)\n";
    // What the script puts at the place of the pipe, the claim about it, and what is said.
    let rows = [
        ("os.symlink('/etc/passwd', path + '.tmp')", "True", "exported a symbolic link instead"),
        ("os.symlink('/dev/zero', path + '.tmp')", "True", "exported a symbolic link instead"),
        ("os.symlink('/no/such/file', path + '.tmp')", "True", "exported a symbolic link instead"),
        ("os.symlink('/etc/passwd', path)", "False", "exported a symbolic link instead"),
        ("os.mkdir(path + '.tmp')", "True", "exported a folder instead"),
        ("os.mkdir(path)", "False", "exported a folder instead"),
        ("os.mkfifo(path)", "False", "exported a named pipe instead"),
        (
            "open(path + '.tmp', 'w').write(TRACE)",
            "True",
            "not the pipe made for the trace instead",
        ),
        ("open(path, 'w').write('root:x:0:0')", "False", "exported other content instead"),
        ("open(path, 'w').write('{}')", "False", "exported other content instead"),
        ("open(path, 'wb').write(bytes(9 << 20))", "False", "exported other content instead"),
        ("open(path, 'w')", "False", "exported nothing instead"),
        ("pass", "True", "exported nothing instead"),
        ("os.mkfifo(path + '.tmp')", "True", "exported nothing instead"),
    ];
    std::thread::scope(|scope| {
        for (put, streamed, message) in rows {
            scope.spawn(move || {
                let script = format!("{announced}{put}\n{}", claim.replace("STREAMED", streamed));
                let folder = folder(&script);
                let ran = profile(&folder, &[]);
                let text = flat(&ran);
                assert_eq!(ran.code, 3, "{put}: {text}");
                assert!(text.contains(message), "{put}: {text}");
                assert!(!text.contains("root:"), "{put}: {text}");
                assert_eq!(new_files(&folder), [""; 0], "{put}");
            });
        }
    });
}

#[test]
fn a_stream_that_is_no_trace_is_refused_as_soon_as_it_shows() {
    let script = "start(3)\npath = announce(3, 'steps')\n\
        try:\n    with open(path + '.tmp', 'wb') as pipe:\n        while True:\n            \
        pipe.write(bytes(1 << 16))\nexcept BrokenPipeError:\n    say('exported', streamed=True)";
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(flat(&ran).contains("exported other content instead of a trace"), "{}", ran.stderr);
    assert_eq!(new_files(&folder), [""; 0]);
}

#[test]
fn a_trace_without_its_end_is_incomplete_whatever_the_script_claims() {
    let ran = profile(&folder("start(3)\nexport(trace=TRACE[:-3])"), &[]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(flat(&ran).contains("the end of the trace is missing"), "{}", ran.stderr);
}

#[test]
fn of_a_trace_and_other_content_the_trace_is_kept() {
    let script = "if len(sys.argv) == 1:\n    start(1)\n    export(1)\n    \
        subprocess.run([sys.executable, __file__, 'child'], check=True)\nelse:\n    start(9)\n    \
        path = f'{SESSION}/{os.getpid()}.json'\n    os.symlink('/etc/passwd', path + '.tmp')\n    \
        say('export', path=path, iterations=9, reason='steps')\n    say('exported', streamed=True)";
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = flat(&ran);
    assert!(text.contains("exported a symbolic link instead of a trace: ignored"), "{text}");
    assert_eq!(unsealed(&folder, "trace.json.zst"), trace());
}

#[test]
fn nothing_in_the_control_pipe_makes_xmem_wait() {
    let write = "def write(text):\n    control = os.open(SESSION + '/control', os.O_RDWR)\n    \
        os.write(control, text.encode())\n";
    // Behind each, a recording follows, which must be saved.
    let rows = [
        "write('{\"event\":\"note\",\"pi')",
        "write('end\\n')\nwrite('mark\\n' * 99)",
        "write('x' * 60_000)",
        "for _ in range(999):\n    write('x' * 4000)",
        "for _ in range(99):\n    write('[' * 3000 + '\\n')",
        "for pid in range(2_000):\n    say('python', version='3', parent=1)\n    \
         write(json.dumps({'event': 'recording', 'pid': 4_000_000 + pid}) + '\\n')",
        "write(json.dumps({'event': 'recording', 'pid': 1}) + '\\n')",
        "write(json.dumps({'event': 'export', 'pid': 1, 'path': '/etc/passwd', 'reason': 'steps'}) + '\\n')",
        "write(json.dumps({'event': 'exported', 'pid': os.getpid(), 'streamed': True}) + '\\n')",
        // Held open by a process that lives on.
        "if os.fork() == 0:\n    held = os.open(SESSION + '/control', os.O_RDWR)\n    os.close(1)\n    \
         os.close(2)\n    time.sleep(60)\n    os._exit(0)",
        // Flooded by a process that lives on.
        "if os.fork() == 0:\n    control = os.open(SESSION + '/control', os.O_WRONLY)\n    \
         signal.alarm(60)\n    os.close(1)\n    os.close(2)\n    while True:\n        os.write(control, b'x' * 4096)",
    ];
    std::thread::scope(|scope| {
        for attack in rows {
            scope.spawn(move || {
                let folder =
                    folder(&format!("{write}{attack}\nsay('note', text='x')\nstart(3)\nexport()"));
                let ran = profile(&folder, &["--timeout", "5m"]);
                assert_eq!(ran.code, 0, "{attack}: {}", ran.stderr);
                assert_eq!(unsealed(&folder, "trace.json.zst"), trace(), "{attack}");
            });
        }
    });
}

#[test]
fn a_flood_of_notes_and_of_exports_is_cut_off() {
    let script = "start(3)\nfor number in range(3000):\n    say('note', text=f'note {number}')\n\
        for number in range(10_000):\n    \
        say('export', path=f'{SESSION}/{number}.json', iterations=1, reason='end')\n\
        say('exported', streamed=True)";
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    let notes = ran.stderr.lines().filter(|line| line.starts_with("note: ")).count();
    assert_eq!(notes, 101, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: there are more than 100 notes"), "{}", ran.stderr);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(flat(&ran).contains("exported nothing instead of a trace"), "{}", ran.stderr);
    assert_eq!(new_files(&folder), [""; 0]);
}

#[test]
fn a_process_that_holds_the_trace_open_does_not_delay_it() {
    let script = "start(3)\npath = announce(3, 'steps')\npipe = open(path + '.tmp', 'w')\n\
        if os.fork() == 0:\n    os.close(1)\n    os.close(2)\n    time.sleep(60)\n    os._exit(0)\n\
        pipe.write(TRACE)\npipe.close()\nsay('exported', streamed=True)";
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(unsealed(&folder, "trace.json.zst"), trace());
}

#[test]
fn a_process_that_lives_on_is_named_and_left_alone() {
    // A child, and a daemon whose parent ended before anyone could see it.
    for detach in ["", "    os.setsid()\n    if os.fork():\n        os._exit(0)\n"] {
        let script = format!(
            "child = os.fork()\nif child == 0:\n{detach}    open('survivor', 'w').write(str(os.getpid()))\n    \
             sys.stdout.close()\n    os.close(1)\n    os.close(2)\n    time.sleep(60)\n    os._exit(0)\n\
             while not (os.path.exists('survivor') and open('survivor').read()):\n    time.sleep(0.01)\n\
             start(3)\nexport()"
        );
        let folder = folder(&script);
        let ran = profile(&folder, &["--let-write", "all"]);
        let text = flat(&ran);
        assert_eq!(ran.code, 0, "{text}");
        let survivor = folder.read("survivor");
        assert!(text.contains(&format!("still running: {survivor} (python3")), "{text}");
        let killed = Command::new("kill").arg(&survivor).status().expect("runs");
        assert!(killed.success(), "xmem ended the process {survivor}");
    }
}

#[test]
fn a_script_that_takes_the_session_away_gets_an_error_and_deletes_nothing_else() {
    let rows = [
        ("import shutil\nshutil.rmtree(SESSION)", "cannot save the recording: gone"),
        (
            "os.rename(SESSION, SESSION + '.moved')\nos.mkdir(SESSION)\nopen(SESSION + '/mine', 'w')",
            "cannot save the recording: gone",
        ),
        ("os.symlink('/etc', SESSION + '/stop.part')", "cannot save the recording: gone"),
    ];
    for (attack, message) in rows {
        let script = format!(
            "import shutil\nstart(3)\ncontrol = os.open(SESSION + '/control', os.O_WRONLY)\n{attack}\n\
             os.write(control, json.dumps({{'event': 'failed', 'pid': os.getpid(), 'text': 'gone'}}).encode() \
             + b'\\n')\nopen('session', 'w').write(SESSION)"
        );
        let folder = folder(&script);
        let ran = profile(&folder, &["--let-write", "all"]);
        assert_eq!(ran.code, 3, "{attack}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{attack}: {}", ran.stderr);
        let session = folder.read("session");
        if attack.contains("mine") {
            assert!(std::path::Path::new(&session).join("mine").exists());
            std::fs::remove_dir_all(&session).expect("removed");
            std::fs::remove_dir_all(session + ".moved").expect("removed");
        } else {
            assert!(!std::path::Path::new(&session).exists(), "{session}");
        }
    }
}

#[test]
fn a_script_that_closes_all_files_is_recorded_and_its_own_files_stay_intact() {
    let script = "from xmem_recorder import session\nos.closerange(3, 4096)\n\
        mine = [os.open(f'mine{number}', os.O_RDWR | os.O_CREAT) for number in range(4)]\n\
        session.send('note', text='still here')\n\
        assert [os.fstat(file).st_size for file in mine] == [0] * 4\nstart(3)\nexport()";
    let ran = profile(&folder(script), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: still here"), "{}", ran.stderr);
}

#[test]
fn a_file_that_hides_pytorch_is_named() {
    let rows: [(&str, &[u8], &str, &str); 4] = [
        ("torch.py", b"answer = 42\n", "import torch", "torch.py` was imported instead of PyTorch"),
        (
            "torch.py",
            b"import torch.nn\n",
            "import torch",
            "torch.py` was imported instead of PyTorch",
        ),
        ("torch/__init__.py", b"", "import torch", "torch` was imported instead of PyTorch"),
        ("torch/notes.py", b"", "import torch", "torch` was imported instead of PyTorch"),
    ];
    // A folder without `__init__.py` hides no package that is installed.
    let is_installed = || {
        let found = std::process::Command::new("python3").args(["-c", "import torch"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    for (name, content, script, message) in rows {
        if name == "torch/notes.py" && is_installed() {
            continue;
        }
        let folder = folder(script);
        folder.put(name, content);
        let ran = profile(&folder, &[]);
        let text = flat(&ran).replace(' ', "");
        assert_eq!(ran.code, 3, "{name}: {}", ran.stderr);
        for part in
            [message, "rename this", "Python looks for modules in the folder of the script first"]
        {
            assert!(text.contains(&part.replace(' ', "")), "{name}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_file_that_hides_what_pytorch_needs_is_named_with_the_error_of_the_import() {
    let folder = folder("sys.path.append('lib')\nimport torch");
    folder.put("lib/torch/__init__.py", b"import numpy\nnumpy.ndarray\n");
    folder.put("lib/torch/version.py", b"");
    folder.put("numpy.py", b"");
    let ran = profile(&folder, &[]);
    let text = flat(&ran);
    assert_eq!(ran.code, 3, "{text}");
    assert!(text.contains("numpy.py` hides the module numpy: rename this file"), "{text}");
    assert!(text.contains("the import failed with AttributeError"), "{text}");
}
