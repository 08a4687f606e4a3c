//! What `xmem profile` says when its surroundings are in the way: the user, folders, signals, limits.

use crate::left_behind::after;
use crate::profile::{flat, folder, new_files, profile, profile_as_in_a_terminal};
use crate::users::{ORDINARY_USER, is_root};

/// Until another process that knows xmem alone sends it Ctrl-C, as `kill -INT` does.
const KILLED_ALONE: &str = r#"
signal.signal(signal.SIGINT, signal.default_int_handler)
start(1)
subprocess.Popen(["sh", "-c", f"kill -INT {PARENT}"], start_new_session=True)
try:
    wait()
except KeyboardInterrupt:
    export(1, "exception", detail="KeyboardInterrupt")
    sys.exit(130)
"#;

#[test]
fn an_interrupt_that_only_xmem_got_did_nothing() {
    let ran = profile_as_in_a_terminal(&folder(KILLED_ALONE));
    let message = flat(&ran);
    assert_eq!(ran.code, 4, "{message}");
    assert!(message.contains("incomplete recording: interrupted"), "{message}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_script_that_changes_its_user_was_told_that_the_disk_is_full() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    // The hook itself is loaded, which needs no PyTorch for this.
    let folder = folder(&format!("os.setuid({ORDINARY_USER})\nprint('went on')"));
    let ran = profile(&folder, &[]);
    let message = flat(&ran);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{message}");
    for text in [
        format!("the script changed its user from 0 to {ORDINARY_USER} at train.py:"),
        format!("sudo -u '#{ORDINARY_USER}' xmem profile"),
    ] {
        assert!(message.contains(&text), "{message}");
    }
    assert!(!message.contains("disk"), "{message}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_script_that_can_change_its_user_back_is_recorded() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let script = format!(
        "os.setresuid({ORDINARY_USER}, {ORDINARY_USER}, 0)\nos.setresuid(0, 0, 0)\n\
        start(3)\nexport()"
    );
    let folder = folder(&script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(new_files(&folder), ["trace.json.zst"]);
}

#[test]
fn a_folder_that_cannot_hold_libraries_was_answered_with_a_newer_torch() {
    let reason = "`/tmp/a b`: its path has a space, which LD_PRELOAD cannot hold";
    let script = format!(
        "say('python', parent=os.getppid(), version='3.99.1')\n\
         say('no_virtual_gpu', text={reason:?})"
    );
    let ran = profile(&folder(&script), &["--virtual-gpu", "h100-80g"]);
    let message = flat(&ran);
    assert_eq!(ran.code, 3, "{message}");
    for text in ["no virtual GPU: ", reason, "TMPDIR", "noexec", "--engine cpu"] {
        assert!(message.contains(text), "{text}: {message}");
    }
    assert!(!message.contains("newer torch"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_limit_of_address_space_was_not_named_when_the_command_was_aborted() {
    let folder = folder("start(1)\nos.abort()");
    let ran = after("ulimit -v 8000000", &folder, &["profile", "--", "python3", "train.py"]);
    let message = flat(&ran);
    assert_eq!(ran.code, 3, "{message}");
    assert!(message.contains("was killed by signal 6"), "{message}");
    assert!(message.contains("`ulimit -v` limits the address space of the command"), "{message}");
    assert!(message.contains("`ulimit -v unlimited`"), "{message}");
}
