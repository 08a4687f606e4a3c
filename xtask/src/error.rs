//! What a task can fail with.

use std::path::PathBuf;

/// Why a task did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A command could not be started.
    #[error("cannot run `{command}`")]
    Start {
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// A command ran and failed; its own output says why.
    #[error("`{command}` failed")]
    Failed { command: String },
    /// A file or folder could not be read or written.
    #[error("cannot access {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// `cargo metadata` said something unexpected.
    #[error("cannot understand the output of cargo metadata")]
    Metadata(#[source] serde_json::Error),
    /// Tidy found something; each finding was printed.
    #[error("tidy: {count} problems, see above")]
    Untidy { count: usize },
    /// xmem answered with something else than JSON.
    #[error("cannot understand the answer of xmem")]
    Answer(#[source] serde_json::Error),
    /// A data file of a task does not have the tables and keys that it should have.
    #[error("cannot read the data in {}", .path.display())]
    Data {
        path: PathBuf,
        #[source]
        source: toml::de::Error,
    },
    /// A snapshot of the CUDA side cannot be read.
    #[error("cannot read the snapshot {}", .path.display())]
    Snapshot {
        path: PathBuf,
        #[source]
        source: Box<xmem_snapshot::SnapshotError>,
    },
    /// Answers differ from saved ones; each difference was printed or counted.
    #[error(
        "answers: {count} differences, see above; list what is meant in xtask/src/answers/renamed.toml"
    )]
    Answers { count: usize },
    /// Estimates are further off than they may be; each bound was printed.
    #[error("{task}: {count} bounds are broken, see above")]
    Bounds { task: &'static str, count: usize },
    /// A script of `test-torch` or its header is not as it should be.
    #[error("cannot use {}: {what}", .path.display())]
    Script { path: PathBuf, what: String },
    /// An environment with torch could not be made.
    #[error("`{command}` failed: the tests with torch need python3, PyPI and 12 GB of disk")]
    Environment { command: String },
    /// Runs of an attack broke rules; they were printed.
    #[error("attack: {count} findings, see above")]
    Attack { count: usize },
    /// Recordings did not come out as they should; each complaint was printed.
    #[error("test-torch: {count} of the recordings failed, see above")]
    Recordings { count: usize },
    /// Cases did not come out as they should; each complaint was printed.
    #[error("{task}: {count} of the cases failed, see above")]
    Cases { task: &'static str, count: usize },
    /// Something did not come about in time.
    #[error("waited {seconds} s for {what}")]
    Waited { what: String, seconds: u64 },
    /// A daemon ended early; the end of its log was printed.
    #[error(
        "waited for {what}, but the daemon ended: the end of {} is above, --folder keeps all of it",
        .log.display()
    )]
    Ended { what: String, log: PathBuf },
    /// The folder with the programs of Kubernetes lacks one.
    #[error(
        "KUBEBUILDER_ASSETS names {}, which has no {program}: it needs kube-apiserver, etcd and kubectl",
        .folder.display()
    )]
    Assets { folder: PathBuf, program: &'static str },
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// kubectl printed something else than JSON.
    #[error("cannot understand the output of kubectl")]
    Kubectl(#[source] serde_json::Error),
    /// The machine cannot have what the task needs.
    #[error("skipped: {reason}")]
    Skipped { reason: &'static str },
    /// A file with figures of benches is not what this program or Criterion wrote.
    #[error("cannot understand the figures in {}", .path.display())]
    Figures { path: PathBuf },
    /// What counts instructions is not there.
    #[error("cannot run {program}: install valgrind (apt-get install valgrind)")]
    Valgrind { program: &'static str },
    /// Counts of instructions are too high; each was printed.
    #[error(
        "instructions: {count} counts are too high, see above; if that is meant, cargo xtask instructions --update"
    )]
    Instructions { count: usize },
    /// There are no kept figures to compare with.
    #[error("nothing is kept in {} yet: cargo xtask bench --save", .folder.display())]
    NothingKept { folder: PathBuf },
    /// The built files of the page are not those of its sources.
    #[error("web/dist/{file} is not what the sources in web/src give: run cargo xtask web")]
    Stale { file: &'static str },
    /// A program to be distributed names folders of this machine.
    #[error("the program names folders of this machine: {found}")]
    BuildPaths { found: String },
    /// The book did not build.
    #[cfg(feature = "book")]
    #[error("the book does not build: {message}")]
    Book { message: String },
}

impl Error {
    /// For `map_err` on an I/O result about `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
