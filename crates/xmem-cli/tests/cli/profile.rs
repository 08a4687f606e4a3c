//! `xmem profile`, with scripts that speak the hook's side of the protocol: no PyTorch is needed.

use crate::job::{self, Folder};
use crate::shell::{Ran, command, prepared, xmem};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

const PRELUDE: &str = include_str!("../../../xmem-recorder/tests/fake_hook.py");

/// The trace that scripts export if they do not say otherwise.
pub(crate) fn trace() -> &'static str {
    PRELUDE.split("\"\"\"").nth(3).expect("the text of TRACE").trim_end()
}

/// A folder with the script `train.py`.
pub(crate) fn folder(script: &str) -> Folder {
    let folder = Folder::new();
    folder.put("train.py", format!("{PRELUDE}\n{script}").as_bytes());
    folder
}

/// Runs `xmem profile` on a script, with `words` on its standard input.
fn profile_with_input(folder: &Folder, options: &[&str], words: &str) -> Ran {
    let mut line = vec!["profile"];
    line.extend(options);
    line.extend(["--", "python3", "train.py"]);
    let mut child = command(line)
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("piped").write_all(words.as_bytes()).expect("taken");
    child.wait_with_output().expect("ends").into()
}

pub(crate) fn profile(folder: &Folder, options: &[&str]) -> Ran {
    profile_with_input(folder, options, "")
}

/// Words without miette's line breaks and bars.
pub(crate) fn flat(ran: &Ran) -> String {
    let words = ran.stderr.split_whitespace().filter(|word| !["│", "|"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// The text of a recording without its seal, whichever way it is compressed.
pub(crate) fn unsealed(folder: &Folder, name: &str) -> String {
    let text = inflated(folder, name);
    let at = text.find(",\n\"xmem_seal\": {\"bytes\": ").expect("sealed");
    text[..at].to_owned() + "}"
}

/// The text of a trace, whichever way it is compressed.
pub(crate) fn inflated(folder: &Folder, name: &str) -> String {
    let bytes = std::fs::read(folder.path(name)).expect("there");
    let bytes = match name.rsplit('.').next() {
        Some("zst") => zstd::decode_all(&bytes[..]).expect("zstd"),
        Some("gz") => {
            let mut text = Vec::new();
            let mut from = flate2::read::GzDecoder::new(&bytes[..]);
            std::io::copy(&mut from, &mut text).expect("gzip");
            text
        }
        _ => bytes,
    };
    String::from_utf8(bytes).expect("UTF-8")
}

/// The new files of the folder.
pub(crate) fn new_files(folder: &Folder) -> Vec<String> {
    let old = ["bad.json", "job.json", "silent.json", "train.py", "__pycache__"];
    folder.names().into_iter().filter(|name| !old.contains(&name.as_str())).collect()
}

#[test]
fn a_recording_is_saved_and_the_script_keeps_its_streams() {
    let script = r#"
print("read", sys.stdin.read(), "from", SESSION)
print("a complaint", file=sys.stderr)
start(3)
say("note", text="torch.compile: runs eagerly")
export()
"#;
    let folder = folder(script);
    let ran = profile_with_input(&folder, &[], "words");
    let message = flat(&ran);
    assert_eq!(ran.code, 0, "{message}");
    let session = ran.stdout.strip_prefix("read words from ").expect("the script's own output");
    assert!(!std::path::Path::new(session.trim()).exists(), "{session} is left behind");
    assert_eq!(unsealed(&folder, "trace.json.zst"), trace());
    assert_eq!(new_files(&folder), ["trace.json.zst"]);
    for text in [
        "a complaint",
        "note: torch.compile: runs eagerly",
        "recorded 3 iterations in",
        ": trace.json.zst (",
        "before compression)",
        "torch 2.99.0+cpu, Python 3.99.1; reported GPU: NVIDIA A100",
        "redirected to the CPU: Module.to (2)",
        "next: xmem replay trace.json.zst --device a100-40g",
    ] {
        assert!(message.contains(text), "`{text}` is not in: {message}");
    }
}

#[test]
fn quiet_leaves_standard_error_to_the_script() {
    let folder =
        folder("print('mine', file=sys.stderr)\nstart(3)\nsay('note', text='x')\nexport()");
    let ran = profile(&folder, &["-q"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", "mine\n"));
}

#[test]
fn verbose_prints_each_iteration() {
    let message = flat(&profile(&folder("start(2)\nexport(2)"), &["-v", "--steps", "2"]));
    assert!(message.contains("optimizer steps: 1/2 (0.2 s;"), "{message}");
    assert!(message.contains("optimizer steps: 2/2 (0.2 s;"), "{message}");
}

#[test]
fn the_ending_of_the_output_says_how_it_is_compressed() {
    for (name, first) in [("a.json", b"{\""), ("b.gz", b"\x1f\x8b"), ("c.json.zst", b"\x28\xb5")] {
        let folder = folder("start(3)\nexport()");
        let ran = profile(&folder, &["-o", name]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let bytes = std::fs::read(folder.path(name)).expect("there");
        assert!(bytes.starts_with(first), "{name}: {bytes:?}");
        assert_eq!(unsealed(&folder, name), trace(), "{name}");
    }
}

#[test]
fn the_session_names_the_device_and_the_options() {
    let folder = folder(
        "start(3)\nsettings = open(SESSION + '/settings.json').read()\n\
        export(trace='{\"settings\":' + settings + ',\"traceEvents\":[]}')",
    );
    let options = [
        "-o",
        "s.json",
        "--steps",
        "7",
        "--no-stacks",
        "--device-as",
        "t4-16g",
        "--max-memory",
        "64GiB",
    ];
    let ran = profile(&folder, &options);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let trace: serde_json::Value =
        serde_json::from_str(&inflated(&folder, "s.json")).expect("JSON");
    let t4 = xmem::find("t4-16g").expect("known");
    let expected = serde_json::json!({
        "format": 1, "recorder": env!("CARGO_PKG_VERSION"), "purpose": "record", "steps": 7, "rest": null, "stacks": false, "max_memory": 64_u64 << 30,
            "engine": "auto", "gpus": 1, "rank": null, "float16": "bfloat16",
            "snapshot": null, "graph": null, "refuse_writes": false, "writable": [], "offline": true,
            "assume": {}, "bounded": [], "other_peaks": null, "run_ahead": false, "run_ahead_peaks": null, "vary": null, "plan": null, "weights": "present", "measures": [],
        "device": {
            "key": "t4-16g", "name": t4.title, "capability": [7, 5],
            "total_memory": t4.memory.get(), "free_memory": t4.available().get(),
            "multi_processor_count": t4.sms, "max_threads_per_multi_processor": t4.max_threads_per_sm,
            "warp_size": 32, "l2_cache_size": null, "shared_memory_per_block": null,
        },
    });
    assert_eq!(trace["settings"], expected);
}

#[test]
fn how_the_script_ends_decides_what_is_said() {
    /// Script, options, exit code, iterations that were saved, text on standard error.
    type Row<'a> = (&'a str, &'a [&'a str], i32, Option<&'a str>, &'a [&'a str]);
    let rows: [Row<'_>; 18] = [
        ("start(2)\nexport(2, 'end')", &[], 0, Some("2 iterations"), &["recorded 2"]),
        ("start(1)\nexport(1, 'exit', detail=0)", &[], 0, Some("1 iteration"), &["recorded 1"]),
        ("start(1)\nexport(1, 'backwards')", &[], 0, Some("1 iteration"), &["recorded 1"]),
        (
            "start()\nexport(0, 'end')",
            &[],
            4,
            Some("0 iterations"),
            &["without running a model", "gets no verdict"],
        ),
        (
            "start(1)\nexport(1, 'exit', detail=3)\nsys.exit(3)",
            &[],
            4,
            Some("1 iteration"),
            &["incomplete recording", "exit status 3", "can be replayed"],
        ),
        (
            "start(1)\nexport(1, 'exception', detail='ValueError: odd')\nraise ValueError('odd')",
            &[],
            4,
            Some("1 iteration"),
            &["the script raised ValueError: odd"],
        ),
        (
            "start()\nexport(0, 'exception', detail='RuntimeError: out', needed=3 << 30)\nsys.exit(1)",
            &[],
            4,
            Some("0 iterations"),
            &["memory ran out", "requested 3.00 GiB in addition to", "a machine with more memory"],
        ),
        (
            "start(1)\nexport(1, 'memory', detail='RuntimeError: out', needed=3 << 30)\nsys.exit(1)",
            &["--max-memory", "5GiB"],
            4,
            Some("1 iteration"),
            &["memory ran out: the recording needs at least 3.", "--max-memory allows 5.00 GiB"],
        ),
        (
            "start(1)\nexport(1, 'memory', detail='MemoryError: no array')\nsys.exit(1)",
            &[],
            4,
            Some("1 iteration"),
            &["the script raised MemoryError: no array"],
        ),
        (
            "start(1)\nexport(1, 'signal', detail='SIGTERM')\nos.kill(os.getpid(), signal.SIGTERM)",
            &[],
            4,
            Some("1 iteration"),
            &["SIGTERM ended the script"],
        ),
        (
            "start(2)\nos.kill(os.getpid(), signal.SIGKILL)",
            &[],
            3,
            None,
            &[
                "was killed by signal 9 (SIGKILL)",
                "2 iterations were lost",
                "and the recording is lost",
                "its processes used up to",
                "--max-memory",
            ],
        ),
        (
            "start(1)\npath = announce(1, 'steps')\npipe = open(path + '.tmp', 'w')\n\
             pipe.write('{\"traceEvents\":[')\npipe.flush()\nos.kill(os.getpid(), signal.SIGKILL)",
            &[],
            4,
            Some("1 iteration"),
            &["killed while PyTorch wrote the trace"],
        ),
        (
            "start(1)\nannounce(1, 'steps')\nos.kill(os.getpid(), signal.SIGKILL)",
            &[],
            3,
            None,
            &["was killed by signal 9"],
        ),
        (
            "start(1)\nannounce(1, 'steps')\nsay('failed', text='disk full')",
            &[],
            3,
            None,
            &["cannot save the recording: disk full"],
        ),
        ("start(1)\nos._exit(0)", &[], 3, None, &["ended before its recording", "one iteration"]),
        (
            "say('python', version='3')\nsay('unsupported', text='torch 1.13 is too old')\nsys.exit(1)",
            &[],
            3,
            None,
            &["torch 1.13 is too old", "newer torch"],
        ),
        (
            "say('python', version='3')",
            &[],
            3,
            None,
            &["without importing torch", "its Python environment has torch"],
        ),
        ("say('torch', version='2.99')", &[], 3, None, &["no model ran", "with which it trains"]),
    ];
    std::thread::scope(|scope| {
        for (script, options, code, saved, message) in rows {
            scope.spawn(move || {
                let folder = folder(script);
                let ran = profile(&folder, options);
                let text = flat(&ran);
                assert_eq!(ran.code, code, "{script}: {text}");
                assert_eq!(ran.stdout, "", "{script}");
                for word in message {
                    assert!(text.contains(word), "{script}: `{word}` is not in: {text}");
                }
                match saved {
                    Some(iterations) => {
                        assert!(text.contains(&format!("recorded {iterations} in")), "{text}");
                        assert_eq!(new_files(&folder), ["trace.json.zst"], "{script}");
                    }
                    None => assert_eq!(new_files(&folder), [""; 0], "{script}"),
                }
            });
        }
    });
}

#[test]
fn when_the_time_is_over_what_there_is_is_saved() {
    // Script, exit code, files, text on standard error.
    let rows: [(&str, i32, &[&str], &[&str]); 2] = [
        (
            "save_when_asked(1)\nstart(1)",
            4,
            &["ready", "trace.json.zst"],
            &["time limit reached", "recorded 1 iteration in", "s was reached", "raise --timeout"],
        ),
        (
            "start_without_recording()",
            3,
            &["ready"],
            &["was stopped after", "with which it trains"],
        ),
    ];
    for (script, code, files, message) in rows {
        let folder = folder(&format!(
            "def start_without_recording():\n    say('torch', version='2.99')\n\
             {script}\nopen('ready', 'w')\nwait()"
        ));
        // A machine with much to do may take long until the script is ready.
        let ran = ["1s", "4s", "16s", "1m", "4m"].iter().find_map(|time| {
            let ran = profile(&folder, &["--let-write", "all", "--timeout", time]);
            folder.names().contains(&"ready".to_owned()).then_some(ran)
        });
        let ran = ran.expect("the script is ready in four minutes");
        let text = flat(&ran);
        assert_eq!(ran.code, code, "{script}: {text}");
        assert_eq!(new_files(&folder), files, "{script}");
        for word in message {
            assert!(text.contains(word), "{script}: `{word}` is not in: {text}");
        }
    }
}

#[test]
fn running_out_of_memory_ends_the_recording_with_figures() {
    let script =
        "start(1)\nsave_when_asked(1)\nhog = bytearray(os.urandom(1)) * (300 << 20)\nwait()";
    let folder = folder(script);
    let ran = profile(&folder, &["--max-memory", "200MiB"]);
    let message = flat(&ran);
    assert_eq!(ran.code, 4, "{message}");
    assert!(message.contains("memory ran out: the recording needs at least "), "{message}");
    assert!(message.contains("--max-memory allows 200.00 MiB"), "{message}");
    assert_eq!(new_files(&folder), ["trace.json.zst"]);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_processes_share_counts_once() {
    let script = "hog = bytearray(os.urandom(1)) * (150 << 20)\nworkers = []\n\
        for _ in range(3):\n    worker = os.fork()\n    if worker == 0:\n        time.sleep(60)\n    \
        workers.append(worker)\n\
        start(3)\nsave_when_asked(3)\ntime.sleep(1)\nexport()\n\
        for worker in workers:\n    os.kill(worker, signal.SIGKILL)";
    let ran = profile(&folder(script), &["--max-memory", "400MiB"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_recording_that_is_not_complete_replaces_nothing() {
    let rows = [
        ("start(1)\nexport(1, 'exception', detail='E')\nsys.exit(1)", 4, true),
        ("start(1)\nos.kill(os.getpid(), signal.SIGKILL)", 3, false),
    ];
    for (script, code, beside) in rows {
        let folder = folder(script);
        folder.put("old.json", b"precious");
        let ran = profile(&folder, &["-o", "old.json"]);
        let message = flat(&ran);
        assert_eq!(ran.code, code, "{message}");
        assert_eq!(folder.read("old.json"), "precious");
        if beside {
            assert_eq!(new_files(&folder), ["old.json", "old.json.part"]);
            assert_eq!(unsealed(&folder, "old.json.part"), trace());
            assert!(message.contains("existing `old.json` is kept"), "{message}");
        } else {
            assert_eq!(new_files(&folder), ["old.json"]);
        }
    }
}

#[test]
fn a_complete_recording_replaces_what_was_there() {
    let folder = folder("start(3)\nexport()");
    folder.put("old.json", b"outdated");
    assert_eq!(profile(&folder, &["-o", "old.json"]).code, 0);
    assert_eq!(unsealed(&folder, "old.json"), trace());
    assert_eq!(new_files(&folder), ["old.json"]);
}

#[test]
fn of_several_recordings_the_best_is_kept() {
    let script = r#"
if len(sys.argv) > 1:
    count, reason, trace = sys.argv[1:]
    start(int(count))
    export(int(count), reason, '{"traceEvents":["' + trace + '"]}')
else:
    for row in ROWS:
        subprocess.run([sys.executable, __file__, *map(str, row)], check=True)
"#;
    let rows = [
        ("[(9, 'end', 'long and many'), (2, 'steps', 'complete')]", "complete"),
        ("[(2, 'end', 'more'), (1, 'end', 'one that is long')]", "more"),
        ("[(1, 'end', 'short'), (1, 'end', 'longer')]", "longer"),
    ];
    for (list, best) in rows {
        let folder = folder(&format!("ROWS = {list}\n{script}"));
        let ran = profile(&folder, &["-o", "best.json"]);
        assert_eq!(ran.code, 0, "{list}: {}", ran.stderr);
        let expected = format!(r#"{{"traceEvents":["{best}"]}}"#);
        assert_eq!(unsealed(&folder, "best.json"), expected, "{list}");
        assert_eq!(new_files(&folder), ["best.json"], "{list}");
    }
}

#[test]
fn a_trace_that_passed_the_pipe_by_is_found_in_its_file() {
    let script = "start(3)\npath = announce(3, 'steps')\nopen(path, 'w').write(TRACE)\n\
        say('exported', streamed=False)";
    let folder = folder(script);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(unsealed(&folder, "trace.json.zst"), trace());
}

#[test]
fn a_long_trace_comes_through_whole() {
    let script = "start(3)\nnumbers = ','.join(map(str, range(900_000)))\n\
        export(trace='{\"traceEvents\":[' + numbers + ']}')";
    let folder = folder(script);
    assert_eq!(profile(&folder, &[]).code, 0);
    let text = inflated(&folder, "trace.json.zst");
    let mut trace: serde_json::Value = serde_json::from_str(&text).expect("whole");
    let numbers: Vec<u32> = serde_json::from_value(trace["traceEvents"].take()).expect("numbers");
    assert!(numbers.iter().copied().eq(0..900_000));
}

/// Runs `xmem profile` with the usual effect of Ctrl-C: the shell that runs the tests may ignore it, which xmem would
/// inherit.
pub(crate) fn profile_as_in_a_terminal(folder: &Folder) -> Ran {
    const AS_IN_A_TERMINAL: &str = "import os, signal, sys\n\
        signal.signal(signal.SIGINT, signal.SIG_DFL)\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let mut command = prepared(Command::new("python3"));
    command.args(["-c", AS_IN_A_TERMINAL, env!("CARGO_BIN_EXE_xmem")]);
    command.args(["profile", "--", "python3", "train.py"]).current_dir(folder.path("."));
    command.stdin(Stdio::null()).output().expect("runs").into()
}

#[test]
fn signals_end_the_recording_and_xmem_outlives_them() {
    let rows = [
        (
            // A terminal sends Ctrl-C to both. A shell lets its background jobs ignore it, Python too.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\nstart(1)\ntry:\n    \
             os.kill(PARENT, signal.SIGINT)\n    os.kill(os.getpid(), signal.SIGINT)\n    wait()\n\
             except KeyboardInterrupt:\n    \
             export(1, 'exception', detail='KeyboardInterrupt')\n    sys.exit(130)",
            4,
            "incomplete recording: interrupted",
        ),
        (
            "start(1)\ndef end(number, frame):\n    export(1, 'signal', detail='SIGTERM')\n    sys.exit(1)\n\
             signal.signal(signal.SIGTERM, end)\nos.kill(PARENT, signal.SIGTERM)\nwait()",
            4,
            "incomplete recording: interrupted",
        ),
        (
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             start(1)\nwhile True:\n    os.kill(PARENT, signal.SIGINT)\n    time.sleep(0.1)",
            3,
            "was interrupted before its recording was saved",
        ),
    ];
    for (script, code, text) in rows {
        let ran = profile_as_in_a_terminal(&folder(script));
        let message = flat(&ran);
        assert_eq!(ran.code, code, "{script}: {message}");
        assert!(message.contains(text), "{script}: {message}");
    }
}

/// A script that asks for the engine as the hook does, with torch in an empty folder.
const ASKS: &str = r#"
say("python", parent=os.getppid(), version="3.99.1")
os.mkdir("torch")
say("engine", path=os.path.abspath("torch"))
answer = f"{SESSION}/engine-{os.getpid()}.json"
while not os.path.exists(answer):
    time.sleep(0.01)
answer = json.load(open(answer))
print(answer["engine"], "|", answer["error"], "|", *answer["notes"])
for text in answer["notes"]:
    say("note", text=text)
if answer["error"]:
    say("unsupported", text=answer["error"])
else:
    start()
    export(3)
"#;

#[test]
fn a_virtual_gpu_needs_a_build_of_torch_for_cuda() {
    let folder = folder(ASKS);
    let ran = profile(&folder, &["--virtual-gpu", "h100-80g"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("cpu | "), "{}", ran.stdout);
    assert!(flat(&ran).contains("this PyTorch cannot be recorded"), "{}", ran.stderr);
}

#[test]
fn the_gpu_is_that_of_the_command_that_follows() {
    let folder = folder(
        "start(3)\nprint(json.load(open(SESSION + '/settings.json'))['device']['key'], flush=True)\nexport(3)",
    );
    let rows: [(&[&str], &str); 6] = [
        (&[], "a100-40g"),
        (&["--then", "replay --device t4-16g"], "t4-16g"),
        (&["--then", "replay --device t4-16g", "--device-as", "l4-24g"], "l4-24g"),
        (&["--then", "inspect"], "a100-40g"),
        (&["--then", "replay --devices t4-16g,l4-24g"], "a100-40g"),
        (&["--engine", "cpu", "--then", "replay --device h100-80g -q"], "h100-80g"),
    ];
    for (options, expected) in rows {
        let ran = profile(&folder, options);
        assert_eq!(ran.stdout.lines().next(), Some(expected), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn the_engine_is_the_cpu_where_no_virtual_gpu_can_be_had() {
    let folder = folder(ASKS);
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("cpu | None | recorded on the CPU, not on a virtual GPU: "),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("note: recorded on the CPU, not on"), "{}", ran.stderr);
}

#[test]
fn an_option_of_the_virtual_gpu_asks_for_it() {
    let folder = folder(
        "start(3)\nprint(json.load(open(SESSION + '/settings.json'))['engine'], flush=True)\nexport(3)",
    );
    let rows: [(&[&str], &str); 6] = [
        (&[], "auto"),
        (&["--engine", "cpu"], "cpu"),
        (&["--enforce"], "virtual-gpu"),
        (&["--capacity", "8GiB"], "virtual-gpu"),
        (&["--snapshot", "s.pickle"], "virtual-gpu"),
        (&["--assume", "nonzero=0.5"], "virtual-gpu"),
    ];
    for (options, expected) in rows {
        let ran = profile(&folder, options);
        assert_eq!(ran.stdout.lines().next(), Some(expected), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_recorded_is_said_before_anything_runs() {
    let folder = folder("open('ran', 'w')");
    let script = folder.path("train.py");
    let here = folder.path(".");
    let rows: [(&[&str], i32, &[&str]); 21] = [
        (
            &["--snapshot", "s.pickle", "--engine", "cpu", "--", "python3", &script],
            2,
            &["only a recording on a virtual GPU has a memory snapshot", "--virtual-gpu a100-40g"],
        ),
        (&["--virtual-gpu", "h100-80x", "--", "python3", &script], 2, &["did you mean `h100-80g`"]),
        (
            &["--virtual-gpu", "h100-80g", "--engine", "cpu", "--", "python3", &script],
            2,
            &["'--virtual-gpu [<NAME>]' cannot be used with '--engine <ENGINE>'"],
        ),
        (
            &["--engine", "gpu", "--", "python3", &script],
            2,
            &["[possible values: cpu, virtual-gpu, auto]"],
        ),
        (&["--assume", "nonzero=2", "--", "python3", &script], 2, &["shares from 0 to 1"]),
        (&["--assume", "mask=0.5", "--", "python3", &script], 2, &["nonzero, routing, unique"]),
        (&["--", "python3", "-I", &script], 2, &["`-I`", "remove -I"]),
        (&["--", "no-such-program"], 2, &["cannot run `no-such-program`", "program first"]),
        (&["-o", &here, "--", "python3", &script], 2, &["not a plain file"]),
        (&["-o", "/no/such/folder/t.json", "--", "python3", &script], 3, &["cannot write"]),
        (&["--device-as", "a100-40x", "--", "python3", &script], 2, &["did you mean `a100-40g`"]),
        (&["--steps", "0", "--", "python3", &script], 2, &["--steps"]),
        (&["--timeout", "soon", "--", "python3", &script], 2, &["90s, 30m or 2h"]),
        (&["--max-memory", "lots", "--", "python3", &script], 2, &["not a size"]),
        (&["--then", "replay", "--", "python3", &script], 2, &["no device given"]),
        (
            &["--then", "replay --device t44", "--", "python3", &script],
            2,
            &["unknown device `t44`"],
        ),
        (
            &["--then", "replay --devise t4-16g", "--", "python3", &script],
            2,
            &["'--devise'", "nothing was run"],
        ),
        (&["--then", "replay 'x", "--", "python3", &script], 2, &["unclosed quote"]),
        (&["--then", "devices", "--", "python3", &script], 2, &["--then"]),
        (&["--then", "simulate", "--", "python3", &script], 2, &["does not read a trace"]),
        (
            &["--then", "validate -d t4-16g --snapshot no.pickle", "--", "python3", &script],
            3,
            &["cannot read `no.pickle`"],
        ),
    ];
    for (args, code, message) in rows {
        let line = std::iter::once("profile").chain(args.iter().copied());
        let mut command = command(line);
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        let text = flat(&ran);
        assert_eq!(ran.code, code, "{args:?}: {text}");
        for word in message {
            assert!(text.contains(word), "{args:?}: `{word}` is not in: {text}");
        }
    }
    assert_eq!(new_files(&folder), [""; 0]);
}

#[test]
fn a_command_without_python_says_so() {
    let folder = Folder::new();
    let output = folder.path("trace.json");
    let ran = xmem(["profile", "-o", &output, "--", "sh", "-c", "echo trained; exit 5"]);
    let message = flat(&ran);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "trained\n"), "{message}");
    assert!(
        message.contains("ended with exit status 5, and no Python interpreter loaded"),
        "{message}"
    );
}

/// `-d` was not an option: `xmem profile -d a100-40g -- python train.py` said "unexpected argument".
#[test]
fn a_device_is_recorded_for_and_answered() {
    let script = "start(2)\nprint(json.load(open(SESSION + '/settings.json'))['device']['key'], flush=True)\nexport(2, trace=open('job.json').read())";
    let folder = folder(script);
    let trace = folder.path("trace.json.zst");
    for (device, name, options) in [
        ("t4-16g", "t4-16g", &[][..]),
        ("RTX 4090", "rtx4090-24g", &[]),
        ("a100-40g-mig-1g.5gb", "a100-40g-mig-1g.5gb", &["-q"]),
    ] {
        let ran = profile(&folder, &[&["-d", device][..], options].concat());
        let replay = xmem([&["replay", &trace, "-d", name][..], options].concat());
        let answer = ran.stdout.strip_prefix(&format!("{name}\n"));
        let answer = answer.unwrap_or_else(|| panic!("{device}: {} {}", ran.stdout, ran.stderr));
        // The answer names the trace as it was given.
        assert_eq!(answer, replay.stdout.replace(&trace, "trace.json.zst"), "{device}");
        assert_eq!(ran.code, replay.code, "{device}");
        assert!(!ran.stderr.contains("next:"), "{device}: {}", ran.stderr);
    }
}

#[test]
fn the_exit_code_of_a_device_is_that_of_the_answer() {
    let script = |end: &str| folder(&format!("start(3)\n{end}"));
    let ran = profile(&script("export(3, 'timeout')"), &["--device", "t4-16g", "--timeout", "9s"]);
    let message = flat(&ran);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{message}");
    assert!(message.contains("no answer for t4-16g"), "{message}");
    let ran = profile(&script("export(3)"), &["-d", "t4-16g", "--then", "inspect"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(flat(&ran).contains("cannot be used with '--then"), "{}", ran.stderr);
}

/// A virtual GPU without a name is that of `--device`; with one, another GPU is recorded on than answered for.
#[test]
fn a_virtual_gpu_without_a_name_is_that_of_the_device() {
    let asks = ASKS.replace(
        "print(answer",
        "print(json.load(open(SESSION + '/settings.json'))['device']['key'], answer",
    );
    for (options, name) in [
        (&["-d", "t4-16g", "--virtual-gpu"][..], "t4-16g"),
        (&["-d", "t4-16g", "--virtual-gpu", "l4-24g"], "l4-24g"),
        (&["--virtual-gpu"], "a100-40g"),
    ] {
        let ran = profile(&folder(&asks), options);
        assert!(ran.stdout.starts_with(&format!("{name} cpu | ")), "{options:?}: {}", ran.stdout);
        assert!(flat(&ran).contains("this PyTorch cannot be recorded"), "{}", ran.stderr);
    }
}

/// `xmem profile python train.py` said "unexpected argument 'python' found".
#[test]
fn a_command_without_dashes_before_it_is_understood() {
    let folder = folder("print(sys.argv[1:])\nstart(3)\nexport(3)");
    for options in [&[][..], &["-q", "--steps", "3"], &["-d", "t4-16g"]] {
        let line = [&["profile"][..], options, &["python3", "train.py", "--steps", "7", "-d", "x"]];
        let mut command = command(line.concat());
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        let words = "['--steps', '7', '-d', 'x']\n";
        assert!(ran.stdout.starts_with(words), "{options:?}: {} {}", ran.stdout, ran.stderr);
        assert!([0, 4].contains(&ran.code), "{options:?}: {}", ran.stderr);
    }
    let misspelled = xmem(["profile", "--stpes", "5", "--", "python3", "train.py"]);
    assert_eq!(misspelled.code, 2);
    assert!(flat(&misspelled).contains("unexpected argument '--stpes'"), "{}", misspelled.stderr);
}

#[test]
fn a_script_without_python_is_told_what_to_type() {
    let folder = folder("start(3)\nexport(3)");
    for line in [
        &["profile", "train.py", "--epochs", "3"][..],
        &["profile", "--", "train.py", "--epochs", "3"],
        &["profile", "-d", "t4-16g", "train.py", "--epochs", "3"],
    ] {
        let mut command = command(line);
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        let message = flat(&ran);
        assert_eq!(ran.code, 2, "{line:?}: {message}");
        for text in ["`train.py` is a script", "xmem profile -- python train.py --epochs 3"] {
            assert!(message.contains(text), "{line:?}: {message}");
        }
    }
    let mut command = command(["profile", "--virtual-gpu", "python3", "train.py", "--epochs", "3"]);
    let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
    let message = flat(&ran);
    assert_eq!(ran.code, 2, "{message}");
    let typed = "xmem profile --virtual-gpu -- python3 train.py --epochs 3";
    assert!(message.contains(typed), "{message}");
    assert_eq!(new_files(&folder), [""; 0]);
}

#[test]
fn a_number_that_changes_in_a_recording_is_found() {
    let folder = folder(&format!("start(2)\nexport(2, trace=open({:?}).read())", "job.json"));
    let ran = profile(&folder, &["-o", "trace.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let replayed = |name: &str| xmem(["replay", &folder.path(name), "--capacity", "1GiB"]);
    assert_eq!(replayed("trace.json").code, 0);
    let text = folder.read("trace.json");
    let at = text.find("\"ts\":").expect("a time") + 5;
    let digit = at + text[at..].find(|c: char| c.is_ascii_digit()).expect("a number");
    let other = if text.as_bytes()[digit] == b'7' { "8" } else { "7" };
    folder.put("changed.json", (text[..digit].to_owned() + other + &text[digit + 1..]).as_bytes());
    let ran = replayed("changed.json");
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("was changed after it was written"), "{}", ran.stdout);
}

#[test]
fn then_goes_on_with_the_trace() {
    let exported = format!("start(2)\nexport(2, trace=open({:?}).read())", "job.json");
    let rows = [
        ("replay --capacity 1GiB", 0, "fits"),
        ("xmem replay --capacity 470MiB", 1, "does not fit"),
        ("inspect", 0, "iterations"),
    ];
    for (then, code, text) in rows {
        let folder = folder(&exported);
        let ran = profile(&folder, &["--then", then]);
        assert_eq!(ran.code, code, "{then}: {}", ran.stderr);
        assert!(ran.stdout.to_lowercase().contains(text), "{then}: {}", ran.stdout);
        assert!(!ran.stderr.contains("next:"), "{then}: {}", ran.stderr);
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("JSON");
        let recorded = unsealed(&folder, "trace.json.zst");
        assert!(value(recorded.as_bytes()) == value(&job::trace()), "{recorded}");
    }
}

#[test]
fn then_is_not_for_what_was_cut_short() {
    let ran = profile(
        &folder("start(1)\nexport(1, 'exception', detail='E')\nsys.exit(1)"),
        &["--then", "replay --capacity 1GiB"],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{}", ran.stderr);
    assert!(flat(&ran).contains("--then was not run"), "{}", ran.stderr);
}
