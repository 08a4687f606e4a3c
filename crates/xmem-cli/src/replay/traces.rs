//! Which traces are meant: files, folders, patterns and lists, in the order in which they are named.

use crate::complaint::Complaint;
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use walkdir::WalkDir;

/// What traces in a folder are called.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".json.zst"];

/// Standard input.
const STDIN: &str = "-";

/// One that was named or found.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) trace: Trace,
}

/// Where it is.
#[derive(Debug)]
pub(super) enum Trace {
    /// In a file, or standard input.
    At(PathBuf),
    /// Somewhere in a folder that cannot be looked into.
    Hidden(Arc<walkdir::Error>),
}

/// All that are meant.
#[derive(Debug)]
pub(super) struct Traces {
    pub(super) all: Vec<Named>,
    /// Whether one trace was meant, by its own name, however many there are.
    pub(super) is_one: bool,
}

/// Refuses to read standard input more than once.
pub(super) fn check(arguments: &[PathBuf]) -> Result<(), Complaint> {
    let reads = |argument: &&PathBuf| [STDIN, "@-"].map(Path::new).contains(&argument.as_path());
    match arguments.iter().filter(reads).count() {
        count @ 2.. => Err(Complaint::StdinTwice { count }),
        _ => Ok(()),
    }
}

/// The traces that `arguments` stand for, each once. What `output` names is not one of them, unless
/// by its own name.
pub(super) fn meant(arguments: &[PathBuf], output: Option<&Path>) -> Result<Traces, Complaint> {
    let mut found = Found::default();
    let output = output.and_then(|path| path.canonicalize().ok());
    let is_output = |path: &Path| output.is_some() && path.canonicalize().ok() == output;
    let mut is_one = arguments.len() == 1;
    for argument in arguments {
        let kind = Kind::of(argument);
        is_one &= matches!(kind, Kind::File);
        let traces = match kind {
            Kind::File => vec![Named::at(argument.clone())],
            Kind::Folder => in_folder(argument, is_output)?,
            Kind::List(file) => in_list(argument, Path::new(file))?,
            Kind::Pattern(pattern) => matching(pattern, is_output)?,
        };
        traces.into_iter().for_each(|trace| found.add(trace));
    }
    let all = found.traces;
    let stdin = all.iter().any(Named::is_stdin);
    if stdin && arguments.iter().any(|argument| argument == Path::new("@-")) {
        return Err(Complaint::StdinTwice { count: 2 });
    }
    Ok(Traces { all, is_one })
}

/// What an argument is. A file of that very name comes first.
enum Kind<'a> {
    File,
    Folder,
    List(&'a OsStr),
    Pattern(&'a str),
}

impl<'a> Kind<'a> {
    fn of(argument: &'a Path) -> Self {
        if argument == Path::new(STDIN) || argument.is_file() {
            return Self::File;
        }
        if argument.is_dir() {
            return Self::Folder;
        }
        match argument.to_str() {
            _ if argument.symlink_metadata().is_ok() => Self::File,
            Some(text) if text.len() > 1 && text.starts_with('@') => {
                Self::List(OsStr::new(&text[1..]))
            }
            Some(text) if is_pattern(text) => Self::Pattern(text),
            _ => Self::File,
        }
    }
}

impl Named {
    /// Its file, or the place that hides it.
    pub(super) fn path(&self) -> &Path {
        match &self.trace {
            Trace::At(path) => path,
            Trace::Hidden(error) => error.path().unwrap_or(Path::new("?")),
        }
    }

    pub(super) fn is_stdin(&self) -> bool {
        self.name == STDIN
    }

    fn at(path: PathBuf) -> Self {
        Self { name: path.display().to_string(), trace: Trace::At(path) }
    }

    /// What a walk stumbled over, if it matters: a link that leads nowhere does where a trace
    /// `is_meant`, and one that leads back to a folder on its way does not.
    fn stumbled(error: walkdir::Error, is_meant: impl Fn(&Path) -> bool) -> Option<Self> {
        let path = error.path().unwrap_or(Path::new("?"));
        if error.loop_ancestor().is_some() {
            tracing::debug!(path = %path.display(), "a link leads back");
            return None;
        }
        if path.is_symlink() {
            return is_meant(path).then(|| Self::at(path.to_owned()));
        }
        let name = path.display().to_string();
        Some(Self { name, trace: Trace::Hidden(Arc::new(error)) })
    }
}

/// Traces, each once.
#[derive(Default)]
struct Found {
    traces: Vec<Named>,
    seen: BTreeSet<PathBuf>,
}

impl Found {
    fn add(&mut self, named: Named) {
        let itself = match &named.trace {
            Trace::At(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
            Trace::Hidden(_) => PathBuf::from(&named.name),
        };
        if self.seen.insert(itself) {
            self.traces.push(named);
        }
    }
}

fn in_folder(folder: &Path, is_output: impl Fn(&Path) -> bool) -> Result<Vec<Named>, Complaint> {
    let is_meant = |path: &Path| is_trace(path) && !is_output(path);
    let traces = on_a_walk(WalkDir::new(folder), is_meant, Path::to_owned);
    if traces.is_empty() {
        return Err(Complaint::EmptyFolder { folder: folder.to_owned() });
    }
    Ok(traces)
}

/// The files that are meant, by the names they are to have, and what else matters on the way.
fn on_a_walk(
    walk: WalkDir,
    is_meant: impl Fn(&Path) -> bool,
    name: impl Fn(&Path) -> PathBuf,
) -> Vec<Named> {
    let entries = walk.follow_links(true).sort_by_file_name().into_iter();
    entries
        .filter_map(|entry| match entry {
            Ok(entry) if !entry.file_type().is_file() => None,
            Ok(entry) => is_meant(entry.path()).then(|| Named::at(name(entry.path()))),
            Err(error) => Named::stumbled(error, &is_meant),
        })
        .collect()
}

fn is_trace(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

/// A path a line; `#` begins a comment line.
fn in_list(argument: &Path, file: &Path) -> Result<Vec<Named>, Complaint> {
    let mut list = Vec::new();
    let read = match file.to_str() {
        Some(STDIN) => io::stdin().lock().read_to_end(&mut list).map(drop),
        _ => std::fs::read(file).map(|bytes| list = bytes),
    };
    read.map_err(|source| Complaint::List { path: file.to_owned(), source })?;
    let lines = list.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let named = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let traces: Vec<Named> = named.map(|line| Named::at(path(line))).collect();
    if traces.is_empty() {
        return Err(Complaint::EmptyList { list: argument.display().to_string() });
    }
    Ok(traces)
}

#[cfg(unix)]
fn path(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(name))
}

#[cfg(not(unix))]
fn path(name: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(name).into_owned())
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files whose paths match. Folders are looked into only as deep as the pattern goes.
fn matching(pattern: &str, is_output: impl Fn(&Path) -> bool) -> Result<Vec<Named>, Complaint> {
    let wrong = |source| Complaint::Pattern { pattern: pattern.to_owned(), source };
    let (folder, rest) = split(pattern);
    let matcher = GlobBuilder::new(&rest.to_string_lossy())
        .literal_separator(true)
        .build()
        .map_err(wrong)?
        .compile_matcher();
    let walked = if folder == Path::new("") { Path::new(".") } else { &folder };
    let no_match = || Complaint::NoMatch { pattern: pattern.to_owned() };
    if !walked.is_dir() {
        return Err(no_match());
    }
    let mut walk = WalkDir::new(walked);
    if !rest.components().any(|part| part.as_os_str() == "**") {
        walk = walk.max_depth(rest.components().count());
    }
    let below = |path: &Path| path.strip_prefix(walked).map(Path::to_owned).unwrap_or_default();
    let is_meant = |path: &Path| matcher.is_match(below(path)) && !is_output(path);
    let traces = on_a_walk(walk, is_meant, |path| folder.join(below(path)));
    if traces.is_empty() {
        return Err(no_match());
    }
    Ok(traces)
}

/// The folder that everything that matches is in, and what is left of the pattern.
fn split(pattern: &str) -> (PathBuf, PathBuf) {
    let is_plain = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
    let parts: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let plain = parts.iter().take_while(|part| is_plain(part)).count();
    (parts[..plain].iter().collect(), parts[plain..].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_split_at_their_first_wildcard() {
        for (pattern, folder, rest) in [
            ("*.json", "", "*.json"),
            ("./runs/*/a.json", "./runs", "*/a.json"),
            ("runs/**/x?.json", "runs", "**/x?.json"),
            ("/a/b[0-9]/c", "/a", "b[0-9]/c"),
            ("../r*", "..", "r*"),
        ] {
            assert_eq!(split(pattern), (folder.into(), rest.into()), "{pattern}");
        }
    }
}
