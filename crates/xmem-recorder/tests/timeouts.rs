//! Processes that do not react in time, with scripts that speak the hook's side of the protocol.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests write scripts and read traces")]

use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::time::Duration;
use tempfile::TempDir;
use xmem_recorder::{
    Assumptions, Capacity, CommandEnd, CutShort, Engine, Environments, Float16, OverlayChoice,
    Progress, Purpose, RecordError, Recorded, Request, Shortage, Stacks, Timeouts, Timing, Weights,
    Writable,
};
use xmem_types::Bytes;

const HOOK_SIDE: &str = include_str!("fake_hook.py");

/// Allocates more memory than [`LIMIT`], so that the recording is stopped.
const HOG: &str = "hog = bytearray(os.urandom(1)) * (300 << 20)\n";
const LIMIT: Bytes = Bytes::mib(200);

/// Soon enough for a test.
const SOON: Duration = Duration::from_millis(300);
/// Later than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

const UNLIMITED: Timeouts = Timeouts {
    export: NEVER,
    exit: NEVER,
    stall: NEVER,
    overtime: NEVER,
    linger: SOON,
    terminate: NEVER,
    hook: NEVER,
};

/// The result of a script, and its progress events.
struct Ran {
    result: Result<Recorded, RecordError>,
    events: Vec<String>,
    trace: Option<String>,
}

fn run(script: &str, timeouts: Timeouts) -> Ran {
    run_with(script, timeouts, None)
}

fn run_with(script: &str, timeouts: Timeouts, timeout: Option<Duration>) -> Ran {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("train.py");
    std::fs::write(&file, format!("{HOOK_SIDE}\n{script}")).expect("written");
    run_command("python3", file.as_os_str(), timeouts, timeout)
}

fn run_command(
    program: &str,
    argument: &OsStr,
    timeouts: Timeouts,
    timeout: Option<Duration>,
) -> Ran {
    let folder = TempDir::new().expect("a folder");
    let output = folder.path().join("trace.json");
    let request = Request {
        command: (program.into(), vec![argument.into()]),
        purpose: Purpose::Record,
        output: output.clone(),
        measures: Vec::new(),
        plan: None,
        variables: Vec::new(),
        printed: None,
        steps: NonZeroU32::MIN,
        rest: None,
        stacks: Stacks::Recorded,
        device: xmem_devices::find("a100-40g").expect("known").clone(),
        rank: None,
        gpus: NonZeroU32::MIN,
        capacity: Capacity::Unlimited,
        float16: Float16::Kept,
        engine: Engine::Cpu,
        snapshot: None,
        weights: Weights::Present,
        assume: Assumptions::default(),
        other_peaks: None,
        timing: Timing::AtOnce(None),
        vary: None,
        writable: Writable::Everything,
        overlay: OverlayChoice::Auto,
        helper: None,
        timeout,
        memory: Some(LIMIT),
        timeouts,
        environments: Environments::default(),
    };
    let mut events = Vec::new();
    let result = xmem_recorder::record(&request, &mut |progress: Progress<'_>| {
        events.push(format!("{progress:?}"));
    });
    Ran { result, events, trace: std::fs::read_to_string(output).ok() }
}

#[test]
fn a_script_that_continues_after_its_recording_is_ended_and_the_recording_kept() {
    let ignoring = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n";
    let soon = Timeouts { exit: SOON, terminate: SOON, ..UNLIMITED };
    for first in ["", ignoring] {
        let ran = run(&format!("{first}start(1)\nexport(1)\nwait()"), soon);
        let recorded = ran.result.expect("saved");
        assert_eq!((recorded.iterations, recorded.cut_short), (1, None));
        assert!(ran.trace.is_some());
        assert!(ran.events.iter().any(|n| n == "EndingCommand"), "{:?}", ran.events);
    }
}

#[test]
fn a_script_that_ignores_signals_is_killed_and_its_recording_lost() {
    let script = format!(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         signal.signal(signal.SIGUSR2, signal.SIG_IGN)\nstart(2)\n{HOG}wait()"
    );
    let ran = run(&script, Timeouts { export: SOON, terminate: SOON, ..UNLIMITED });
    match ran.result {
        Err(RecordError::Died {
            end: CommandEnd::Memory(Shortage::Limit { limit, resident }),
            iterations,
            peak,
            ..
        }) => {
            assert_eq!((limit, iterations), (LIMIT, 2));
            assert!(resident > LIMIT && peak > LIMIT, "{resident} {peak}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ran.trace, None);
}

#[test]
fn an_export_under_way_is_not_disturbed() {
    let script = format!(
        "signal.signal(signal.SIGUSR2, signal.SIG_DFL)\nstart(1)\npath = announce(1, 'steps')\n\
         with open(path + '.tmp', 'w') as pipe:\n    pipe.write(TRACE[:9])\n    pipe.flush()\n    {HOG}    \
         time.sleep(1.5)\n    pipe.write(TRACE[9:])\nsay('exported', streamed=True)"
    );
    let none = Duration::ZERO;
    let ran = run(&script, Timeouts { export: none, terminate: none, ..UNLIMITED });
    let recorded = ran.result.expect("saved");
    assert_eq!(recorded.cut_short, None);
    let trace = ran.trace.expect("saved");
    let (text, _) = trace.split_once(",\n\"xmem_seal\"").expect("sealed");
    assert!(HOOK_SIDE.contains(text));
}

#[test]
fn a_recording_that_outlives_its_command_is_saved() {
    let script = "if len(sys.argv) > 1:\n    save_when_asked(1)\n    start(1)\n    \
        open(sys.argv[1], 'w')\n    wait()\n\
        ready = __file__ + '.ready'\nsubprocess.Popen([sys.executable, __file__, ready])\n\
        while not os.path.exists(ready):\n    time.sleep(0.05)\n";
    let ran = run(script, UNLIMITED);
    assert_eq!(ran.result.expect("saved").cut_short, Some(CutShort::LeftBehind));
    assert!(ran.trace.is_some());
}

#[test]
fn a_hook_that_is_not_loaded_in_time_is_mentioned_once() {
    let ran =
        run_command("sleep", OsStr::new("1"), Timeouts { hook: Duration::ZERO, ..UNLIMITED }, None);
    let notices = ran.events.iter().filter(|n| n.starts_with("HookNotLoaded")).count();
    assert_eq!(notices, 1, "{:?}", ran.events);
}

#[test]
fn a_trace_that_stops_coming_is_not_waited_for() {
    let opened = "pipe = open(path + '.tmp', 'w')\n";
    // The pipe is not opened, opened, half written, and written but never closed.
    let rows = [
        ("", None),
        (opened, None),
        ("pipe.write(TRACE[:-3])\npipe.flush()\n", Some(CutShort::Truncated)),
        ("pipe.write(TRACE)\npipe.flush()\n", Some(CutShort::Truncated)),
    ];
    for (write, expected) in rows {
        let open = if write.starts_with("pipe.") { opened } else { "" };
        let script = format!("start(1)\npath = announce(1, 'steps')\n{open}{write}wait()");
        let soon = Timeouts { stall: SOON, exit: SOON, terminate: SOON, ..UNLIMITED };
        let ran = run(&script, soon);
        match (ran.result, expected) {
            (Ok(recorded), Some(expected)) => assert_eq!(recorded.cut_short, Some(expected)),
            (Err(RecordError::Stalled { time }), None) => assert_eq!(time, SOON),
            (other, _) => panic!("{script}: {other:?}"),
        }
    }
}

#[test]
fn an_export_without_end_has_the_overtime_and_no_more() {
    let script = "start(1)\npath = announce(1, 'steps')\npipe = open(path + '.tmp', 'w')\n\
        pipe.write('{\"traceEvents\":[')\n\
        while True:\n    pipe.write('{},' * 9999)\n    pipe.flush()\n    time.sleep(0.01)";
    let limits = Timeouts { overtime: SOON, terminate: SOON, ..UNLIMITED };
    // A machine with much to do may take long until the script is ready.
    let times = [2, 8, 32, 128].map(Duration::from_secs);
    let saved = times.iter().find_map(|time| run_with(script, limits, Some(*time)).result.ok());
    assert_eq!(saved.expect("saved").cut_short, Some(CutShort::Truncated));
}

#[test]
fn processes_that_outlive_the_command_have_a_moment_to_end() {
    for (seconds, is_named) in [(0.2, false), (60.0, true)] {
        let script = format!(
            "if os.fork() == 0:\n    time.sleep({seconds})\n    os._exit(0)\nstart(1)\nexport(1)"
        );
        let linger = if is_named { SOON } else { NEVER };
        let ran = run(&script, Timeouts { linger, ..UNLIMITED });
        assert_eq!(ran.result.expect("saved").cut_short, None);
        let named = ran.events.iter().any(|event| event.starts_with("StillRunning"));
        assert_eq!(named, is_named, "{:?}", ran.events);
    }
}
