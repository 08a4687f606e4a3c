//! Hostile inputs: each reader of xmem gets each of them.

mod contents;
mod texts;

use crate::judge::{self, Answer, Finding, Outcome};
use crate::process::{Ended, Runner};
use crate::report::{Report, Row};
use crate::{Extent, Options, in_parallel, plans, recording};
use contents::{Content, Input};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use xmem_task::Error;

/// A command that reads a file.
#[derive(Clone, Copy, Debug)]
struct Reader {
    name: &'static str,
    /// The arguments; `{}` is the hostile file, `{trace}`, `{snapshot}` and `{operations}` are intact ones.
    arguments: &'static [&'static str],
}

const READERS: [Reader; 20] = [
    Reader { name: "replay", arguments: &["replay", "{}", "--capacity", "24GiB", "--cudnn=model"] },
    Reader {
        name: "replay of a list",
        arguments: &["replay", "@{}", "--capacity", "24GiB", "--cudnn=model"],
    },
    Reader {
        name: "replay, device file",
        arguments: &["replay", "{trace}", "--device-file", "{}", "--cudnn=model"],
    },
    Reader { name: "inspect", arguments: &["inspect", "{}"] },
    Reader {
        name: "validate, trace",
        arguments: &["validate", "{}", "{snapshot}", "--device=a100-40g", "--cudnn=model"],
    },
    Reader {
        name: "validate, snapshot",
        arguments: &["validate", "{trace}", "{}", "--device=a100-40g", "--cudnn=model"],
    },
    Reader { name: "simulate", arguments: &["simulate", "{}"] },
    Reader { name: "simulate, JSON", arguments: &["simulate", "{}", "--format=json"] },
    Reader { name: "simulate, plan", arguments: &["simulate", "{operations}", "--plan", "{}"] },
    Reader {
        name: "plan",
        arguments: &["plan", "{}", "--planner=bestfit", "--scope=all", "--cudnn=model"],
    },
    Reader {
        name: "plan, other run",
        arguments: &[
            "plan",
            "{operations}",
            "--planner=bestfit",
            "--against",
            "{}",
            "--cudnn=model",
        ],
    },
    Reader { name: "offload", arguments: &["offload", "{}", "--policy=dymem", "--cudnn=model"] },
    Reader { name: "snapshot info", arguments: &["snapshot", "info", "{}"] },
    Reader { name: "snapshot replay", arguments: &["snapshot", "replay", "{}"] },
    Reader {
        name: "check",
        arguments: &[
            "check",
            "{}",
            "--capacity=24GiB",
            "--cudnn=model",
            "--no-config",
            "--no-cache",
        ],
    },
    Reader {
        name: "check, site file",
        arguments: &[
            "check",
            "{trace}",
            "--device=a100-40g",
            "--site",
            "{}",
            "--no-config",
            "--no-cache",
        ],
    },
    Reader {
        name: "check, job script",
        arguments: &["check", "{trace}", "--slurm-job", "{}", "--no-config", "--no-cache"],
    },
    Reader {
        name: "check, manifest",
        arguments: &["check", "{trace}", "--k8s", "{}", "--no-config", "--no-cache"],
    },
    Reader {
        name: "check, submission",
        arguments: &[
            "check",
            "--format=slurm",
            "--slurm-options",
            "{}",
            "--no-config",
            "--no-cache",
        ],
    },
    Reader {
        name: "check, baseline",
        arguments: &[
            "check",
            "{trace}",
            "--device=a100-40g",
            "--baseline",
            "{}",
            "--no-config",
            "--no-cache",
        ],
    },
];

/// The trace and the snapshot that go with hostile files.
const INTACT: &str = "mlp_adam";

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    reader: &'static str,
    content: String,
    arguments: Vec<OsString>,
    stdin: Option<PathBuf>,
    /// The bytes that xmem may read.
    input: u64,
    may: May,
}

/// What xmem may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    /// Anything but that all is well.
    Refuse,
    /// Anything.
    SayAnything,
}

/// `xmem inspect` gives no verdict, an empty list of operations is one, an empty file is a site file, and
/// the exit code for Slurm is always 0.
fn may(reader: &str, content: &str) -> May {
    match reader {
        "inspect" | "check, site file" | "check, submission" => May::SayAnything,
        _ if content == "an empty list" => May::SayAnything,
        _ => May::Refuse,
    }
}

/// Runs all, and judges.
pub(crate) fn run(program: &Path, options: &Options, report: &mut Report) -> Result<(), Error> {
    let wanted = |name: &str| options.kinds.is_empty() || options.kinds.iter().any(|k| k == name);
    if !wanted("hostile") || !options.traces.is_empty() {
        return Ok(());
    }
    let folder = super::folder()?.join(format!("{}-hostile", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let cases = cases(&folder, options.extent)?;
    let rows = in_parallel(&cases, |runner, case| one(program, runner, case))?;
    for row in rows {
        report.add(row);
    }
    std::fs::remove_dir_all(&folder).map_err(Error::file(&folder))
}

fn cases(folder: &Path, extent: Extent) -> Result<Vec<Case>, Error> {
    let trace = recording::path(INTACT);
    let snapshot = trace.with_file_name("snapshot.pickle.zst");
    let operations = folder.join("intact_operations.json");
    std::fs::write(&operations, plans::operations()).map_err(Error::file(&operations))?;
    let intact = 4 << 20;
    let mut cases = Vec::new();
    for (number, Content { name, input }) in contents::all().into_iter().enumerate() {
        // It is waited for; the sample does so once.
        let once = matches!(input, Input::Pipe) && extent == Extent::Sample;
        let path = match input {
            Input::Bytes(bytes) => {
                let path = folder.join(format!("{number}.json"));
                std::fs::write(&path, bytes).map_err(Error::file(&path))?;
                path
            }
            Input::Path(path) => path,
            Input::Pipe => {
                let path = folder.join(format!("{number}.json"));
                let mode = nix::sys::stat::Mode::S_IRWXU;
                nix::unistd::mkfifo(&path, mode).map_err(|e| Error::file(&path)(e.into()))?;
                path
            }
            Input::Folder => folder.join("nothing"),
        };
        let size = contents::read_size(&path);
        let readers = if once { &READERS[..1] } else { &READERS[..] };
        for &Reader { name: reader, arguments } in readers {
            let fill = |argument: &&str| {
                let [path, trace, snapshot] =
                    [&path, &trace, &snapshot].map(|path| path.display().to_string());
                let filled = argument.replace("{trace}", &trace).replace("{snapshot}", &snapshot);
                let filled = filled.replace("{operations}", &operations.display().to_string());
                OsString::from(filled.replace("{}", &path))
            };
            cases.push(Case {
                reader,
                content: name.to_owned(),
                arguments: arguments.iter().map(fill).collect(),
                stdin: None,
                input: size
                    + if arguments.iter().any(|a| a.contains("{trace}")) { intact } else { 0 },
                may: may(reader, name),
            });
        }
    }
    for stream in ["/dev/zero", "/dev/null"] {
        for Reader { name: reader, arguments } in READERS {
            if arguments.contains(&"{}") {
                cases.push(Case {
                    reader,
                    content: format!("standard input is {stream}"),
                    arguments: arguments
                        .iter()
                        .map(|argument| {
                            OsString::from(match *argument {
                                "{}" => "-".to_owned(),
                                "{trace}" => trace.display().to_string(),
                                "{snapshot}" => snapshot.display().to_string(),
                                "{operations}" => operations.display().to_string(),
                                other => other.to_owned(),
                            })
                        })
                        .collect(),
                    stdin: Some(PathBuf::from(stream)),
                    input: intact,
                    may: may(reader, stream),
                });
            }
        }
    }
    for texts::Text { name, arguments, refused } in texts::all() {
        let fill = |argument: String| {
            OsString::from(argument.replace("{trace}", &trace.display().to_string()))
        };
        cases.push(Case {
            reader: "arguments",
            content: name.to_owned(),
            arguments: arguments.into_iter().map(fill).collect(),
            stdin: None,
            input: intact,
            may: if refused { May::Refuse } else { May::SayAnything },
        });
    }
    Ok(cases)
}

fn one(program: &Path, runner: &Runner, case: &Case) -> Result<Row, Error> {
    let ended = runner.run(program, &case.arguments, case.stdin.as_deref())?;
    let mut findings = judge::misbehavior(&ended, case.input);
    if case.may == May::Refuse && Outcome::of(&ended) == Outcome::Fits {
        findings.push(Finding::Accepted);
    }
    if shows_controls(&ended) {
        findings.push(Finding::Controls);
    }
    let kind = format!("hostile: {}", case.reader);
    Ok(Row::new(&kind, &case.content, "-", 0, &ended, Answer::default(), findings))
}

/// True if the output has a character that a terminal obeys.
fn shows_controls(ended: &Ended) -> bool {
    let obeyed = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    ended.stdout.contains(obeyed) || ended.stderr.contains(obeyed)
}
