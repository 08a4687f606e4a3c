//! The terminal is given back when the program panics in the middle of drawing.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test starts processes")]

use std::io::{self, Write};
use std::process::Command;
use xmem::predict::Timeline;
use xmem_look::{Browser, Palette, Subject, browse};

const PTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/in_a_terminal.py");

/// Standard output that panics once, after some writes.
struct Panicking {
    writes: u32,
}

/// The write that panics: in the middle of the first screen.
const PANICKING_WRITE: u32 = 60;

impl Write for Panicking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        assert_ne!(self.writes, PANICKING_WRITE, "in the middle of a screen");
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

#[test]
#[ignore = "started in a pseudo-terminal by the other test"]
fn panics_in_the_middle_of_a_screen() {
    let subject = Subject {
        name: "run".to_owned(),
        device: "custom".to_owned(),
        verdict: "fits".to_owned(),
        timeline: Timeline::default(),
    };
    let out = Panicking { writes: 0 };
    let _ = browse(&mut Browser::new(subject), Palette::Letters, out);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_terminal_is_as_before_after_a_panic() {
    let own = std::env::current_exe().expect("the test");
    let inner =
        ["terminal::panics_in_the_middle_of_a_screen", "--exact", "--ignored", "--nocapture"];
    let ran = Command::new("python3").args([PTY, "[]"]).arg(own).args(inner).output();
    let Ok(ran) = ran else {
        eprintln!("skipped: no python3, which opens the pseudo-terminal");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said} {}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("\"settings_are_as_before\": true"), "{said}");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let at = |text: &str| said.find(&hex(text)).unwrap_or_else(|| panic!("no {text:?} in {said}"));
    let (entered, left) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"));
    assert!(entered < left && left < at("\u{1b}[?25h"), "{said}");
    assert!(!said.contains("\"code\": 0"), "the panic was seen: {said}");
}
