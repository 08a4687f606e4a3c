//! Every command of the documentation is one that the program takes, and those that need no PyTorch and no cluster run
//! in the order of their page, in a folder with the files that the pages name, and print what is shown below them.

use crate::guide::{missing, recorded};
use crate::job::Folder;
use crate::shell;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Folders of pages that a reader follows from the top to the end.
const FOLLOWED: [&str; 2] = ["docs/start", "docs/guide"];

/// Pages whose commands run elsewhere: on clusters in their own tests, with packages that are installed
/// first, or behind a search with PyTorch.
const ELSEWHERE: [&str; 5] =
    ["slurm.md", "kubernetes.md", "repeat-the-paper.md", "install.md", "laws.md"];

/// The page of errors, whose examples are wrong on purpose.
const WITH_MISTAKES: &str = "reference/errors.md";

/// Commands of the program that run a script with PyTorch, or wait for somebody.
const NOT_HERE: [&str; 8] = ["profile", "export", "fit", "run", "submit", "serve", "look", "eval"];

/// Exit codes of answers: fits, does not fit, no verdict.
const ANSWERS: [i32; 3] = [0, 1, 4];

/// A line that is typed, and what the page shows below it.
struct Typed {
    line: String,
    shown: Option<String>,
}

#[test]
fn the_program_takes_every_command_of_the_documentation() {
    let mut commands = 0;
    let mut refused = Vec::new();
    for page in pages("docs").into_iter().chain([Path::new(REPOSITORY).join("README.md")]) {
        if page.ends_with(WITH_MISTAKES) {
            continue;
        }
        for typed in typed(&text(&page)) {
            for words in calls(&typed.line) {
                commands += 1;
                let parsed = xmem_cli::command().try_get_matches_from(&words);
                if let Some(error) = parsed.err().filter(clap::Error::use_stderr) {
                    refused.push(format!("{}: {}\n{error}", page.display(), typed.line));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(commands > 120, "{commands} commands were found");
}

#[test]
fn the_commands_of_start_and_guides_run_in_the_order_of_their_page() {
    let (mut ran, mut shown, mut failed) = (0, 0, Vec::new());
    for page in FOLLOWED.into_iter().flat_map(pages) {
        let name = page.file_name().expect("a file").to_string_lossy().into_owned();
        if ELSEWHERE.contains(&name.as_str()) {
            continue;
        }
        let text = text(&page);
        let folder = files(&name, &text);
        let mut are_all_run = true;
        for typed in typed(&text) {
            let Some(line) = runnable(&typed.line) else {
                // What it would write is not what is read below.
                are_all_run = false;
                continue;
            };
            ran += 1;
            let (code, printed) = run(&line, &folder);
            if !ANSWERS.contains(&code) {
                failed.push(format!("{name}: {line}: exit code {code}\n{printed}"));
            } else if let Some(expected) = typed.shown.as_deref().filter(|_| are_all_run) {
                shown += 1;
                if let Some(part) = missing(expected, &printed) {
                    failed.push(format!("{name}: {line}: `{part}` is not in\n{printed}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran > 50 && shown >= 8, "{ran} commands ran, {shown} were compared");
}

fn pages(folder: &str) -> Vec<PathBuf> {
    let entries = WalkDir::new(Path::new(REPOSITORY).join(folder)).sort_by_file_name();
    let paths = entries.into_iter().map(|entry| entry.expect("listed").into_path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).expect("a page")
}

/// The lines that a page has somebody type, in their order.
fn typed(page: &str) -> Vec<Typed> {
    let mut found: Vec<Typed> = Vec::new();
    let mut parts = page.split("\n```");
    let mut before = parts.next().unwrap_or_default();
    while let Some(fence) = parts.next() {
        let (language, block) = fence.split_once('\n').unwrap_or((fence, ""));
        let block = block.replace("\\\n", " ").replace("|\n", "| ");
        match language.trim() {
            "console" => found.extend(of_console(&block)),
            "sh" | "bash" => {
                let lines = block.lines().map(str::trim).filter(|line| !line.starts_with('#'));
                found.extend(lines.map(|line| Typed { line: line.to_owned(), shown: None }));
            }
            // What the last command of this section prints.
            "text" if !before.contains("\n#") => {
                if let Some(last) = found.last_mut() {
                    last.shown.get_or_insert(block);
                }
            }
            _ => {}
        }
        before = parts.next().unwrap_or_default();
    }
    found
}

/// The lines behind `$ `, each with what is printed up to the next one.
fn of_console(block: &str) -> Vec<Typed> {
    let entries = format!("\n{block}");
    let entries = entries.split("\n$ ").skip(1).map(|entry| {
        let (line, printed) = entry.split_once('\n').unwrap_or((entry, ""));
        let shown = (!printed.trim().is_empty()).then(|| printed.to_owned());
        Typed { line: line.to_owned(), shown }
    });
    entries.collect()
}

/// The calls of the program in a line of a shell, each with its words.
fn calls(line: &str) -> Vec<Vec<String>> {
    const OPERATORS: [&str; 7] = ["|", "&&", "||", ";", "do", "!", "&"];
    let Some(words) = shlex::split(line) else { return Vec::new() };
    let parts = words.split(|word| OPERATORS.contains(&word.as_str()));
    let calls = parts.filter_map(|words| {
        let is_program = |word: &String| word == "xmem" || word.ends_with("/xmem");
        let of_cargo = words.first().is_some_and(|word| word == "cargo")
            && words[1] == "run"
            && words[2] != "-p";
        let begin = match words.iter().position(is_program) {
            Some(at)
                if words[..at].iter().all(|word| word == "env" || word.contains(['=', '-'])) =>
            {
                at
            }
            _ if of_cargo => words.iter().position(|word| word == "--")?,
            _ => return None,
        };
        let words = words[begin + 1..].iter().take_while(|word| !word.starts_with(['<', '>']));
        let words = words.filter(|word| *word != "…");
        // A number that the reader chooses.
        let words = words.map(|word| if word == "N" { "1" } else { word }.to_owned());
        Some(["xmem".to_owned()].into_iter().chain(words).collect())
    });
    calls.collect()
}

/// What of a line runs here: up to a program that is not there; none if the program is not called, or would run a script.
fn runnable(line: &str) -> Option<String> {
    let words = calls(line).into_iter().next()?;
    let is_here = words.get(1).is_some_and(|command| !NOT_HERE.contains(&command.as_str()));
    if !is_here || line.contains("\"$trace\"") || line.contains('…') || line.contains("--open") {
        return None;
    }
    let is_there = |part: &&str| {
        let program = part.split_whitespace().next().unwrap_or_default();
        program == "xmem" || ["cargo", "find"].contains(&program) || in_path(program)
    };
    let parts: Vec<&str> = line.split(" | ").take_while(is_there).collect();
    let line = parts.join(" | ");
    let line = match line.split_once("cargo run ").and_then(|(_, rest)| rest.split_once(" -- ")) {
        Some((_, arguments)) => format!("xmem {arguments}"),
        None => line,
    };
    (!calls(&line).is_empty()).then_some(line)
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The exit code of a line, and all that it prints.
fn run(line: &str, folder: &Folder) -> (i32, String) {
    let mut shell = shell::typed(line, folder, None);
    let output = shell.env("XMEM_SITE", folder.path("none.toml")).output().expect("runs");
    let code = output.status.code().expect("ended by itself");
    (code, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A folder with the files that the pages name.
fn files(name: &str, page: &str) -> Folder {
    let folder = recorded();
    let of_case = |case: &str| format!("{REPOSITORY}/traces/{case}/trace.json.zst");
    let copy = |from: &str, to: &str| {
        let to = PathBuf::from(folder.path(to));
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("created");
        std::fs::copy(from, &to).unwrap_or_else(|error| panic!("{from}: {error}"));
    };
    folder.put("stamp", b"");
    let recorded = match name {
        "lengths.md" => "lengths/cpu.json.zst",
        "many-gpus.md" => "sharding/ranks8.json.zst",
        _ => "gpt2_adamw/trace.json.zst",
    };
    copy(&format!("{REPOSITORY}/traces/{recorded}"), "trace.json.zst");
    for name in ["main", "before", "runs/gpt2", "runs/trace", "ddp", "zero"] {
        copy(&of_case("gpt2_adamw"), &format!("{name}.json.zst"));
    }
    for name in ["branch", "after", "ddpview"] {
        copy(&of_case("gpt2_ampbf16_adamw"), &format!("{name}.json.zst"));
    }
    for rank in ["0", "3", "7"] {
        copy(
            &format!("{REPOSITORY}/traces/sharding/ranks8.json.zst"),
            &format!("trace.rank{rank}.json.zst"),
        );
    }
    copy(&format!("{REPOSITORY}/traces/lengths/virtual_gpu.json.zst"), "gpu_trace.json");
    let plain = unpacked(&of_case("mlp_adam"));
    folder.put("trace.json", &plain);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&plain).expect("packed");
    let packed = packed.finish().expect("packed");
    for name in ["trace.json.gz", "runs/2026-11/a/trace.json.gz"] {
        folder.put(name, &packed);
    }
    folder.put("snapshot.pickle", &unpacked(&folder.path("snapshot.pickle.zst")));
    let graphs = format!("{REPOSITORY}/traces/graphs");
    copy(&format!("{graphs}/llama_sgd_pos0.pt2"), "model.pt2");
    copy(&format!("{graphs}/networks_resnet50.pt2"), "resnet.pt2");
    copy(&format!("{graphs}/onnx/resnet18.dynamo.onnx"), "model.onnx");
    folder.put(".xmem/note", b"");
    folder.put("none.toml", b"");
    // The first file of a page that the page itself shows.
    if let Some((_, rest)) = page.split_once("\n```toml\n") {
        folder
            .put("site.toml", rest.split_once("\n```").expect("the fence is closed").0.as_bytes());
    }
    folder
}

fn unpacked(path: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    zstd::Decoder::new(file).expect("zstd").read_to_end(&mut text).expect("unpacked");
    text
}
