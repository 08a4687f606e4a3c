//! The native allocator of the CPU against a slow replay, through a `libc10.so` of its own.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::disallowed_methods, reason = "tests compile and run a program")]

mod driver;

use driver::{Program, check_follows, sources};
use std::path::Path;
use std::process::Command;
use xmem_planned::{FollowedPlan, FollowedRequest, Observed};
use xmem_types::Bytes;

const UNIT: u64 = xmem_planned::CPU.unit.get();

/// What the CPU's library shares with the other one.
const SHARED: [&str; 7] =
    ["counters", "following", "live", "observed", "sequence", "shadow", "tree"];

/// The library and the program together, compiled with these flags.
fn program(flags: &[&str]) -> Option<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = SHARED.map(|name| root.join(format!("native/{name}.c")));
    let sources = [shared.to_vec(), sources("native/cpu"), vec![root.join("tests/cpu/program.c")]];
    let flags = [flags, &["-DXMEM_PLANNED_CPU"]].concat();
    let program = Program::compile(&sources.concat(), &flags)?;
    let libraries = program.folder.path().join("program.libs");
    std::fs::create_dir(&libraries).expect("made");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-Wl,-z,relro,-z,now", "-o"]);
    cc.arg(libraries.join("libc10.so")).arg(root.join("tests/cpu/c10.c"));
    assert!(cc.status().expect("a C compiler").success());
    Some(program)
}

/// A plan of blocks of one unit, one behind the other.
fn plan(count: u64) -> FollowedPlan {
    let request = |number: u64| FollowedRequest {
        least: Bytes(UNIT),
        most: Bytes(UNIT),
        place: Some((0, Bytes(number * UNIT))),
    };
    let iteration = (0..count).map(request).collect();
    FollowedPlan { arenas: [Bytes(count * UNIT), Bytes(0)], warm_up: Vec::new(), iteration }
}

#[test]
fn requests_get_the_places_that_a_slow_replay_gives_them() {
    check_follows(&program(&[]).expect("compiled"), UNIT, 0..60);
}

#[test]
fn memory_is_touched_as_the_sanitizers_allow() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let Some(program) = program(&flags) else { return };
    check_follows(&program, UNIT, 100..110);
}

#[test]
fn another_thread_gets_no_place_and_does_not_shift_the_plan() {
    let program = program(&[]).expect("compiled");
    program.plan(&plan(2));
    let printed = program.run("open plan\nm\na 1 64 0\nother 2 64\na 3 64 0\n");
    assert_eq!(printed[..3], ["1 plan 0", "2 elsewhere", "3 plan 64"]);
    assert_eq!(printed[3], "end requests 3 other 1 planned 2 fitted 0 collisions 0");
}

#[test]
fn a_place_that_is_not_aligned_as_wanted_is_not_given() {
    let program = program(&[]).expect("compiled");
    program.plan(&plan(3));
    let printed = program.run("open plan\nm\nal 1 64 4096\nal 2 64 4096\nal 3 64 64\n");
    assert_eq!(printed[..3], ["1 plan 0", "2 elsewhere", "3 plan 128"]);
}

#[test]
fn a_forked_process_frees_what_it_inherits_and_follows_no_plan() {
    let program = program(&[]).expect("compiled");
    program.plan(&plan(2));
    let printed = program.run("open plan\nm\na 1 64 0\nfork 1 64\na 2 64 0\nf 1\nf 2\n");
    assert_eq!(printed[..3], ["1 plan 0", "child 0", "2 plan 64"]);
}

#[test]
fn the_last_two_iterations_of_the_marking_thread_are_written() {
    let program = program(&[]).expect("compiled");
    let iteration = "a 1 64 0\nother 9 640\na 2 128 0\nf 1\nf 2\nm\n";
    let text = format!("m\nobserved early\n{iteration}{iteration}observed file\n");
    let printed = program.run(&text);
    assert_eq!((printed[0].as_str(), printed[7].as_str()), ("observed 1", "observed 0"));
    let text = std::fs::read_to_string(program.folder.path().join("file")).expect("written");
    let observed = Observed::read(&text).expect("read");
    assert_eq!((observed.requests.len(), observed.starts), (8, vec![0, 4]));
}

/// Threads free each other's blocks while one follows a plan whose places overlap.
#[test]
fn threads_do_not_disturb_each_other() {
    let sizes = 1..=60;
    let request = |number: u64| FollowedRequest {
        least: Bytes(UNIT),
        most: Bytes(4096),
        place: Some((0, Bytes(number % 7 * 2048))),
    };
    let iteration: Vec<FollowedRequest> = sizes.map(request).collect();
    let followed =
        FollowedPlan { arenas: [Bytes(1 << 20), Bytes(0)], warm_up: Vec::new(), iteration };
    for flags in [&["-fsanitize=thread"][..], &["-fsanitize=address,undefined"], &[]] {
        let Some(program) = program(flags) else { continue };
        program.plan(&followed);
        let printed = program.run("open plan\nm\nthreads 4 20000\n");
        let end = printed.last().expect("an end");
        assert_eq!(printed.len(), 1, "{printed:?}");
        assert!(end.ends_with("collisions 0") && !end.contains("planned 0 "), "{end}");
    }
}
