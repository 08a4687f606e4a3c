//! The documentation shows what the program prints.

use crate::job::Folder;
use crate::shell::{Ran, command};
use xmem::simulator::KnownOption;

const PAGE: &str = include_str!("../../../../docs/concepts/allocator.md");
const README: &str = include_str!("../../../../README.md");
const MANY_TRACES: &str = include_str!("../../../../docs/guide/many-traces.md");
const PREDICTION: &str = include_str!("../../../../docs/guide/view-the-prediction.md");
const FOR_OTHERS: &str = include_str!("../../../../docs/guide/privileged-use.md");
const GATE: &str = include_str!("../../../../docs/guide/gate.md");
const DIFF: &str = include_str!("../../../../docs/guide/diff.md");
const GPU_RUN: &str = include_str!("../../../../docs/guide/compare-with-a-gpu-run.md");

/// The contents of code fences of a language.
fn fenced<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("\n```{language}\n");
    page.split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split_once("\n```").expect("the fence is closed").0)
        .collect()
}

#[test]
fn the_options_are_those_that_some_release_takes() {
    let row = |option: KnownOption| {
        let last = option.last.map(|last| last.to_string()).unwrap_or_default();
        format!("`{}` {} {last}", option.name, option.since)
    };
    let mut known: Vec<String> = xmem::simulator::alloc_conf_options().map(row).collect();
    let (_, table) = PAGE.split_once("| option | from | to |").expect("the table of options");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut listed: Vec<String> = rows
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            format!("{} {} {}", cells[1], cells[2], cells[3])
        })
        .collect();
    known.sort();
    listed.sort();
    assert_eq!(listed, known);
}

#[test]
fn the_commands_print_what_the_page_shows() {
    let folder = Folder::new();
    folder.put("ops.json", fenced(PAGE, "json")[0].as_bytes());
    let shown = fenced(PAGE, "console");
    assert_eq!(shown.len(), 2);
    for block in shown {
        let (typed, printed) = block.split_once('\n').expect("a command and what it prints");
        let args = typed.strip_prefix("$ xmem ").expect("a command").split(' ');
        let mut command = command(args);
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!(ran.stdout.trim_end(), printed, "{typed}");
    }
}

/// A folder with the recorded traces, and the snapshot of one of them.
#[cfg(unix)]
pub(crate) fn recorded() -> Folder {
    let folder = Folder::new();
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::os::unix::fs::symlink(format!("{repository}/traces"), folder.path("traces"))
        .expect("linked");
    let snapshot = format!("{repository}/crates/xmem-eval/tests/data/mlp_adam.pickle.zst");
    std::fs::copy(snapshot, folder.path("snapshot.pickle.zst")).expect("copied");
    folder
}

/// Asserts that `printed` has the text that is `shown`, in which a line `…` stands for any lines.
#[cfg(unix)]
fn assert_shown(shown: &str, printed: &str) {
    if let Some(part) = missing(shown, printed) {
        panic!("`{part}` is not in: {printed}");
    }
}

/// The first part of the text that is `shown` which `printed` lacks: a line `…` stands for any lines.
#[cfg(unix)]
pub(crate) fn missing<'s>(shown: &'s str, printed: &str) -> Option<&'s str> {
    let mut rest = printed;
    let mut parts = shown.split("…\n").map(|part| part.trim_end_matches("…").trim_end_matches(' '));
    parts.find(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            false
        }
        None => true,
    })
}

/// The first replay of each page prints the first text on it.
#[cfg(unix)]
#[test]
fn the_pages_show_what_the_commands_print() {
    let folder = recorded();
    let ran = |line: &str| -> Ran {
        let (_, args) = line.split_once(" replay ").expect("a replay");
        let args = std::iter::once("replay").chain(args.split(' '));
        command(args).current_dir(folder.path(".")).output().expect("runs").into()
    };
    let replay = |page: &'static str| -> &'static str {
        let mut blocks = fenced(page, "sh").into_iter();
        blocks.find(|block| block.contains(" replay ")).expect("a replay")
    };
    for page in [README, MANY_TRACES] {
        assert_shown(fenced(page, "text")[0], &ran(replay(page)).stdout);
    }
    assert_shown(fenced(PREDICTION, "text")[0], &ran(replay(PREDICTION)).stderr);
}

#[cfg(unix)]
#[test]
fn the_pages_on_two_runs_show_what_is_printed() {
    let folder = recorded();
    let blocks: Vec<&str> =
        [GPU_RUN, DIFF].into_iter().flat_map(|page| fenced(page, "console")).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let (typed, shown) = block.split_once('\n').expect("a command and its output");
        let args = typed.strip_prefix("$ xmem ").expect("a command").split(' ');
        let ran: Ran = command(args).current_dir(folder.path(".")).output().expect("runs").into();
        assert_shown(shown, &ran.stdout);
    }
}

#[cfg(unix)]
#[test]
fn the_page_on_running_for_others_shows_what_replay_prints() {
    let folder = recorded();
    let blocks = fenced(FOR_OTHERS, "console");
    assert_eq!(blocks.len(), 1);
    for block in blocks {
        let (typed, shown) = block.split_once('\n').expect("a command and its output");
        let args = typed.strip_prefix("$ xmem ").expect("a command").split(' ');
        let ran: Ran = command(args).current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!((ran.stdout.trim_end(), ran.stderr.as_str(), ran.code), (shown, "", 0));
    }
    // The commands of a gate that need no library.
    let path = folder.path("traces/vgg11_sgd_pos0/trace.json.zst");
    let trace = std::fs::read(&path).expect("a trace");
    for line in &fenced(FOR_OTHERS, "sh")[..2] {
        let (_, args) = line.split_once("xmem ").expect("a command");
        let words = args.split(' ').take_while(|&word| word != "<");
        let args = words.map(|word| if word == "\"$trace\"" { path.as_str() } else { word });
        let ran = crate::shell::xmem_with_input(args, &trace);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        assert_eq!(ran.json()["target"]["convolutions"], "model fitted to cuDNN 9.19", "{line}");
    }
}

#[cfg(unix)]
#[test]
fn the_page_on_the_gate_shows_what_check_prints() {
    let folder = recorded();
    folder.put("site.toml", fenced(GATE, "toml")[0].as_bytes());
    folder.put("none.toml", b"");
    let blocks = fenced(GATE, "console");
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let (typed, shown) = block.split_once('\n').expect("a command and its output");
        let args = typed.strip_prefix("$ xmem ").expect("a command").split(' ');
        let mut command = command(args);
        command.env("XMEM_SITE", "none.toml").env("XDG_CACHE_HOME", folder.path("cache"));
        command.env("XDG_CONFIG_HOME", folder.path("config"));
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!(ran.stdout.trim_end(), shown, "{typed}");
    }
}

/// The script of the action, as the action runs it.
#[cfg(unix)]
#[test]
fn the_action_annotates_the_run_and_writes_its_summary() {
    const ACTION: &str = include_str!("../../../../action.yml");
    let folder = recorded();
    folder.put("none.toml", b"");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/github/check.sh");
    assert!(ACTION.contains("/contrib/github/check.sh"));
    let text = std::fs::read_to_string(script).expect("the script");
    let names = ACTION.split("XMEM_ACTION_").skip(1).map(|rest| rest.split(':').next());
    for name in names.flatten() {
        assert!(text.contains(&format!("${{XMEM_ACTION_{name}:-}}")), "{name}");
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_xmem"));
    let bin = program.parent().expect("a folder").display();
    let path = format!("{bin}:{}", std::env::var("PATH").expect("a path"));
    for (device, code, annotation, row) in [
        ("t4-16g", 0, "FITS  needs 2.71 GiB", "**fits**"),
        ("", 1, "::error file=train.py,line=86,title=xmem%3A DOES NOT FIT::", "**does not fit**"),
        ("nonsense", 2, "", ""),
    ] {
        let mut command = crate::shell::prepared(std::process::Command::new("bash"));
        let summary = format!("summary-{device}.md");
        folder.put(&summary, b"");
        command.arg(script).current_dir(folder.path(".")).env("PATH", &path);
        command
            .env("XMEM_ACTION_TRACES", "traces/vgg11_adagrad\n")
            .env("XMEM_ACTION_DEVICE", device);
        command.env("GITHUB_STEP_SUMMARY", folder.path(&summary));
        command.env("XMEM_SITE", "none.toml").env("XDG_CACHE_HOME", folder.path("cache"));
        folder.put("runner/note", b"");
        command.env("RUNNER_TEMP", folder.path("runner"));
        if device.is_empty() {
            command.env("XMEM_BUDGET", "2GiB");
        }
        let ran: Ran = command.output().expect("runs").into();
        // A forged answer in the cache of the runner's user was believed: it is neither read nor written.
        assert!(!std::path::Path::new(&folder.path("cache")).exists());
        let left = std::fs::read_dir(folder.path("runner")).expect("a folder").count();
        assert_eq!(left, 1, "the step's own cache is removed");
        assert_eq!(ran.code, code, "{device}: {}", ran.stderr);
        assert!(ran.stdout.starts_with(annotation), "{device}: {}", ran.stdout);
        assert!(folder.read(&summary).contains(row), "{device}: {}", folder.read(&summary));
    }
}

/// The hook of pre-commit, as pre-commit runs it: its entry, the arguments, and the names of files.
#[cfg(unix)]
#[test]
fn the_pre_commit_hook_checks_the_files_that_it_is_given() {
    const HOOKS: &str = include_str!("../../../../.pre-commit-hooks.yaml");
    let of = |key: &str| HOOKS.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
    let entry = of("entry: xmem ").split(' ');
    let matches = |name: &str| {
        let mut bash = std::process::Command::new("bash");
        // The pattern means the same to Python and as an extended regular expression.
        bash.args(["-c", "[[ $1 =~ $2 ]]", "bash", name, of("files: ")]);
        bash.status().expect("runs").success()
    };
    // It matched none of the names on the pages.
    for name in [
        "trace.json",
        "trace.json.gz",
        "runs/trace.json.zst",
        "runs/train.json.zst",
        "runs/2026-07/a/gpt2.json.gz",
        "traces/vgg11_adagrad/trace.json.zst",
        "trace.rank7.json.zst",
        "gpu_trace.json",
        "host_1234.1767.pt.trace.json.gz",
    ] {
        assert!(matches(name), "{name}");
    }
    for name in
        [".xmem/baseline.json", "runs/config.json", "ops.json", "backtrace.json", "a.json.gz"]
    {
        assert!(!matches(name), "{name}");
    }
    let folder = recorded();
    folder.put("none.toml", b"");
    let files = ["traces/mlp_adam/trace.json.zst", "traces/vgg11_adagrad/trace.json.zst"];
    for (budget, code) in [("1GiB", 1), ("4GiB", 0)] {
        let args = entry.clone().chain(["--capacity", budget]).chain(files);
        let mut command = command(args);
        command.env("XMEM_SITE", "none.toml").env("XDG_CACHE_HOME", folder.path("cache"));
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!((ran.code, ran.stdout.matches("FIT").count()), (code, 2), "{}", ran.stderr);
    }
}
