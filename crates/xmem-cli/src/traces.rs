//! The traces of a command: files, folders, patterns, lists and objects, in the order of the arguments.

mod error;

pub(crate) use error::TracesFailure;

use crate::error::CliError;
use crate::global::Verbosity;
use crate::input::{self, InputFailure};
use crate::objects::ObjectsFailure;
use crate::overwrite;
use crate::terminal::{say, shown};
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use walkdir::WalkDir;
use xmem_objects::{ObjectAddress, ObjectFolder};

/// File name endings of traces in a folder.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".json.zst"];

/// Standard input.
const STDIN: &str = "-";

/// A trace that was given or found.
#[derive(Debug)]
pub(crate) struct TraceInput {
    pub(crate) name: String,
    pub(crate) source: Source,
}

/// The place of a trace.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file, or standard input.
    File(PathBuf),
    /// Somewhere in a folder that cannot be read.
    Unreadable(Arc<walkdir::Error>),
    /// An object of an object store, by its name there.
    Object(Arc<ObjectFolder>, String),
}

/// All traces of a command.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) all: Vec<TraceInput>,
    /// The lists that name some of them.
    pub(crate) lists: Vec<PathBuf>,
    /// Files of folders that end as traces do, and are something else.
    pub(crate) skipped: Vec<PathBuf>,
    /// `true` if a single trace was given by its own name.
    pub(crate) is_one: bool,
}

impl Traces {
    /// Says which files of folders were passed over.
    pub(crate) fn tell_skipped(&self, verbosity: Verbosity) {
        if verbosity == Verbosity::Quiet {
            return;
        }
        for path in &self.skipped {
            say(&format!(
                "note: passed over {}: it is JSON without the events of a trace",
                shown(path)
            ));
        }
    }
}

/// The meaning of arguments that name traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// A file, folder, pattern or list, or standard input, by what it looks like.
    Any,
    /// The same, and addresses of object stores: only where the user is the one who names them.
    AnyOrObjects,
    /// Always a file.
    Literal,
}

/// Rejects arguments that read standard input more than once.
pub(crate) fn check(arguments: &[PathBuf], paths: Paths) -> Result<(), TracesFailure> {
    if paths == Paths::Literal {
        return Ok(());
    }
    let reads = |argument: &&PathBuf| [STDIN, "@-"].map(Path::new).contains(&argument.as_path());
    match arguments.iter().filter(reads).count() {
        count @ 2.. => Err(TracesFailure::StdinTwice { count }),
        _ => Ok(()),
    }
}

/// The traces that `arguments` name, each once. The file `output` is left out, unless an argument
/// is its name.
///
/// # Errors
/// If an argument names nothing, or a file that is named as a list is not a list.
pub(crate) fn resolve(
    arguments: &[PathBuf],
    paths: Paths,
    output: Option<&Path>,
) -> Result<Traces, CliError> {
    let mut found = Found::default();
    let mut lists = Vec::new();
    let mut skipped = Vec::new();
    // An earlier answer, to be replaced. A trace is not left out, and then not replaced.
    let output = output.filter(|path| holds_answers(path));
    let is_output = |path: &Path| output.is_some_and(|output| overwrite::is_same(path, output));
    let mut is_one = arguments.len() == 1;
    for argument in arguments {
        let argument = match paths {
            // Standard input has this name elsewhere.
            Paths::Literal if argument == Path::new(STDIN) => &Path::new(".").join(STDIN),
            _ => argument,
        };
        let kind = match paths {
            Paths::AnyOrObjects => match object_address(argument) {
                Some(text) => Kind::of_address(text.parse().map_err(ObjectsFailure::from)?),
                None => Kind::of(argument),
            },
            Paths::Any => Kind::of(argument),
            Paths::Literal => Kind::File,
        };
        is_one &= matches!(kind, Kind::File | Kind::Object(..));
        let traces = match kind {
            Kind::File => vec![TraceInput::at(argument.clone())],
            Kind::Folder => in_folder(argument, is_output, &mut skipped)?,
            Kind::List(file) => {
                lists.push(PathBuf::from(file));
                in_list(argument, Path::new(file))?
            }
            Kind::Pattern(pattern) => matching(pattern, is_output)?,
            Kind::Object(folder, name) => objects(folder, Some(name))?,
            Kind::Objects(address) => objects(address, None)?,
        };
        traces.into_iter().for_each(|trace| found.add(trace));
    }
    let all = found.traces;
    let stdin = all.iter().any(TraceInput::is_stdin);
    if stdin && arguments.iter().any(|argument| argument == Path::new("@-")) {
        return Err(TracesFailure::StdinTwice { count: 2 }.into());
    }
    Ok(Traces { all, lists, skipped, is_one })
}

/// The kind of an argument. An existing file of that name takes precedence.
enum Kind<'a> {
    File,
    Folder,
    List(&'a OsStr),
    Pattern(&'a str),
    /// The folder and the name of an object.
    Object(ObjectAddress, String),
    Objects(ObjectAddress),
}

/// The text of an argument that is an address of an object store. An existing file of that name takes precedence.
fn object_address(argument: &Path) -> Option<&str> {
    let text = argument.to_str().filter(|text| ObjectAddress::is_one(text))?;
    argument.symlink_metadata().is_err().then_some(text)
}

/// The object with this name in a folder, or all traces whose names begin with the address.
fn objects(address: ObjectAddress, only: Option<String>) -> Result<Vec<TraceInput>, CliError> {
    let folder = Arc::new(ObjectFolder::new(address).map_err(ObjectsFailure::from)?);
    let names = match only {
        Some(name) => vec![name],
        None => {
            let mut names = folder.names().map_err(ObjectsFailure::from)?;
            names.retain(|name| is_trace(Path::new(name)));
            names
        }
    };
    if names.is_empty() {
        return Err(TracesFailure::NoObjects { address: folder.address().clone() }.into());
    }
    let input = |object: String| TraceInput {
        name: folder.address().object(&object).to_string(),
        source: Source::Object(Arc::clone(&folder), object),
    };
    Ok(names.into_iter().map(input).collect())
}

impl<'a> Kind<'a> {
    /// One object, if its address ends as traces do.
    fn of_address(address: ObjectAddress) -> Self {
        match address.split_name() {
            Some((folder, name)) if is_trace(Path::new(&name)) => Self::Object(folder, name),
            _ => Self::Objects(address),
        }
    }

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

impl TraceInput {
    /// The file; for anything else, its name.
    pub(crate) fn path(&self) -> &Path {
        match &self.source {
            Source::File(path) => path,
            Source::Unreadable(error) => error.path().unwrap_or(Path::new("?")),
            Source::Object(..) => Path::new(&self.name),
        }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.name == STDIN
    }

    fn at(path: PathBuf) -> Self {
        Self { name: input::name(&path), source: Source::File(path) }
    }

    /// Converts an error of a walk, if it matters: a dangling link does if it may be a trace
    /// (`is_meant`), a link to a parent folder does not.
    fn from_walk_error(error: walkdir::Error, is_meant: impl Fn(&Path) -> bool) -> Option<Self> {
        let path = error.path().unwrap_or(Path::new("?"));
        if error.loop_ancestor().is_some() {
            tracing::debug!(path = %shown(path), "skipping a link to a parent folder");
            return None;
        }
        if path.is_symlink() {
            return is_meant(path).then(|| Self::at(path.to_owned()));
        }
        let name = input::name(path);
        Some(Self { name, source: Source::Unreadable(Arc::new(error)) })
    }
}

/// Traces without duplicates.
#[derive(Default)]
struct Found {
    traces: Vec<TraceInput>,
    seen: BTreeSet<PathBuf>,
}

impl Found {
    fn add(&mut self, named: TraceInput) {
        let itself = match &named.source {
            Source::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
            Source::Unreadable(_) | Source::Object(..) => PathBuf::from(&named.name),
        };
        if self.seen.insert(itself) {
            self.traces.push(named);
        }
    }
}

fn in_folder(
    folder: &Path,
    is_output: impl Fn(&Path) -> bool,
    skipped: &mut Vec<PathBuf>,
) -> Result<Vec<TraceInput>, TracesFailure> {
    let is_meant = |path: &Path| is_trace(path) && !is_output(path);
    let mut traces = walk_files(WalkDir::new(folder), is_meant, Path::to_owned);
    traces.retain(|trace| {
        let is_other = is_other_json(trace.path());
        skipped.extend(is_other.then(|| trace.path().to_owned()));
        !is_other
    });
    if traces.is_empty() {
        return Err(TracesFailure::EmptyFolder { folder: folder.to_owned() });
    }
    Ok(traces)
}

/// The matching files of a walk under their names, and the places that cannot be read.
fn walk_files(
    walk: WalkDir,
    is_meant: impl Fn(&Path) -> bool,
    name: impl Fn(&Path) -> PathBuf,
) -> Vec<TraceInput> {
    let entries = walk.follow_links(true).sort_by_file_name().into_iter();
    entries
        .filter_map(|entry| match entry {
            Ok(entry) if !entry.file_type().is_file() => None,
            Ok(entry) => is_meant(entry.path()).then(|| TraceInput::at(name(entry.path()))),
            Err(error) => TraceInput::from_walk_error(error, &is_meant),
        })
        .collect()
}

fn is_trace(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

/// The longest file that is looked at for what it is.
const SMALL: u64 = 1 << 20;

/// Returns whether a file is a complete JSON document that has no events, such as the `config.json` of a model. What is
/// cut off or damaged is not: that may have been a trace.
fn is_other_json(path: &Path) -> bool {
    let is_small = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < SMALL);
    let is_plain = path.extension().is_some_and(|ending| ending == "json");
    if !is_small || !is_plain {
        return false;
    }
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let has_events = ["\"traceEvents\"", "\"ph\"", "\"schemaVersion\""];
    xmem_report::json::is_document(&text) && !has_events.iter().any(|key| text.contains(key))
}

/// The traces in a list file: one path per line; `#` begins a comment line. Nothing of a file that is not a
/// list is shown: each line names an existing file, or at least ends as traces do.
fn in_list(argument: &Path, file: &Path) -> Result<Vec<TraceInput>, CliError> {
    let list = input::raw(file, input::Kind::List, None).map_err(|failure| match failure {
        InputFailure::Io { path, source } => CliError::from(TracesFailure::List { path, source }),
        other => other.into(),
    })?;
    let mut traces = Vec::new();
    for (at, line) in list.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let path = path(line);
        let is_plausible = path == Path::new(STDIN) || is_trace(&path) || path.exists();
        if !is_plausible {
            return Err(TracesFailure::NotAList { list: shown(file), line: at + 1 }.into());
        }
        traces.push(TraceInput::at(path));
    }
    if traces.is_empty() {
        return Err(TracesFailure::EmptyList { list: shown(argument) }.into());
    }
    Ok(traces)
}

/// Returns whether a file has the answers of an earlier run, or nothing.
fn holds_answers(path: &Path) -> bool {
    let mut head = Vec::new();
    let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
    let read = is_file
        && std::fs::File::open(path)
            .is_ok_and(|file| file.take(256).read_to_end(&mut head).is_ok());
    let text = String::from_utf8_lossy(&head);
    let text: String = text.split_whitespace().collect();
    let begins = [
        "trace,verdict,",
        "{\"schema\":\"xmem.",
        "[{\"schema\":\"xmem.",
        "trace",
        "FITS",
        "TIGHT",
        "DOES",
        "WOULD",
        "NOVER",
    ];
    read && (text.is_empty() || text == "[]" || begins.iter().any(|begin| text.starts_with(begin)))
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

/// The files whose paths match. Folders are searched only as deep as the pattern requires.
fn matching(
    pattern: &str,
    is_output: impl Fn(&Path) -> bool,
) -> Result<Vec<TraceInput>, TracesFailure> {
    let wrong = |source| TracesFailure::Pattern { pattern: pattern.to_owned(), source };
    let (folder, rest) = split(pattern);
    let matcher = GlobBuilder::new(&rest.to_string_lossy())
        .literal_separator(true)
        .build()
        .map_err(wrong)?
        .compile_matcher();
    let walked = if folder == Path::new("") { Path::new(".") } else { &folder };
    let no_match = || TracesFailure::NoMatch { pattern: pattern.to_owned() };
    if !walked.is_dir() {
        return Err(no_match());
    }
    let mut walk = WalkDir::new(walked);
    if !rest.components().any(|part| part.as_os_str() == "**") {
        walk = walk.max_depth(rest.components().count());
    }
    let below = |path: &Path| path.strip_prefix(walked).map(Path::to_owned).unwrap_or_default();
    let is_meant = |path: &Path| matcher.is_match(below(path)) && !is_output(path);
    let traces = walk_files(walk, is_meant, |path| folder.join(below(path)));
    if traces.is_empty() {
        return Err(no_match());
    }
    Ok(traces)
}

/// Splits a pattern into the folder before its first wildcard, and the rest.
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
