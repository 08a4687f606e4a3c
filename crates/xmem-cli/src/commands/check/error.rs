//! Jobs that cannot be checked.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_gate::{BaselineError, ManifestError, ParseRequestError, SlurmError, Unresolved};
use xmem_report::json::ReadLawError;

failures! {
    /// A job that cannot be checked, or a decision that cannot be written.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum CheckFailure {
        #[error("no trace given")]
        #[diagnostic(help(
            "give the path of a trace, or --slurm-job with a script that has a line `#XMEM --trace FILE`"
        ))]
        NoTrace => Usage XM0801 {
            title: "no trace to check",
            cause: "The command and its job script name no trace.",
            example: "xmem check --device t4-16g",
            fix:
                "Give a trace, `xmem check trace.json.zst --device t4-16g`, or add the line `#XMEM --trace FILE` to \
                 the job script.",
        },
        #[error("the job script `{}` names no trace", shown(path))]
        #[diagnostic(help(
            "add a line `#XMEM --trace FILE` before its first command, or give the trace as an argument"
        ))]
        NoTraceInScript { path: PathBuf } => Usage XM0801,
        #[error(transparent)]
        Request(ParseRequestError) => Usage XM0802 {
            title: "invalid request",
            cause: "The options of the request (GPUs, memory, partition) cannot be read.",
            example: "xmem check trace.json.zst --request gpu:many",
            fix: "Write the request as Slurm does, for example `--request gpu:a100:1`.",
        },
        #[error("cannot read the submission")]
        Submission(#[source] SlurmError) => Usage XM0803 {
            title: "unreadable submission",
            cause: "The command line of sbatch or srun cannot be read.",
            example: "xmem submit -- sbatch --gres",
            fix: "Give the whole command as for Slurm: `xmem submit -- sbatch --gres=gpu:a100:1 train.sh`.",
        },
        #[error("cannot read the job script `{}`", shown(path))]
        Script { path: PathBuf, source: SlurmError } => Usage XM0804 {
            title: "unreadable job script",
            cause: "The job script does not exist, or an `#SBATCH` or `#XMEM` line in it is invalid.",
            example: "xmem check --slurm-job missing.sh",
            fix: "Check the file and the line that the message names, then run `xmem check --slurm-job FILE`.",
        },
        #[error("cannot tell on which GPU the job would run")]
        #[diagnostic(help(
            "{}; `--device a100-40g` names a GPU directly",
            site.as_deref().map_or_else(
                || "there is no site file: /etc/xmem/site.toml, XMEM_SITE or --site".to_owned(),
                |file| format!("the site file is `{}`", shown(file)),
            )
        ))]
        Unresolved { source: Unresolved, site: Option<PathBuf> } => Usage XM0805 {
            title: "unknown GPU of a request",
            cause: "The request names no GPU type, or one that the site file does not map to a device.",
            example: "xmem check trace.json.zst --request gpu:1",
            fix:
                "Name a GPU directly with `--device a100-40g`, or add the type to the site file; `xmem config` shows \
                 the settings.",
        },
        #[error("cannot read the manifest `{}`", shown(path))]
        #[diagnostic(help("the file was not changed"))]
        Manifest { path: PathBuf, source: ManifestError } => Unreadable XM0806 {
            title: "unreadable manifest",
            cause: "The file is not a Kubernetes manifest with pods. It was not changed.",
            example: "xmem check trace.json.zst --k8s broken.yaml",
            fix:
                "Check the file with `kubectl apply --dry-run=client -f FILE`, then run `xmem check TRACE --k8s FILE` \
                 again.",
        },
        #[error("cannot annotate the manifest `{}`", shown(path))]
        #[diagnostic(help("the file was not changed; without --write it is only read"))]
        Annotate { path: PathBuf, source: ManifestError } => Unreadable XM0807 {
            title: "manifest that cannot be annotated",
            cause: "The annotations cannot be added without a change to other parts of the file. It was not changed.",
            example: "xmem check trace.json.zst --k8s job.yaml --write",
            fix: "Run `xmem check TRACE --k8s FILE` without `--write`, and add the printed annotations by hand.",
        },
        #[error("nothing to write into `{}`: the verdict of a trace was withheld", shown(path))]
        #[diagnostic(help("the file was not changed"))]
        NothingToWrite { path: PathBuf } => Withheld XM0808 {
            title: "withheld verdict",
            cause:
                "Too much is missing from a trace for a memory figure, and this output has nothing but the figure.",
            example: "xmem check damaged.json.zst --device t4-16g --format gpumem",
            fix:
                "Run `xmem check TRACE --device NAME --format text` to see the reason, and record again with `xmem \
                 profile`.",
        },
        #[error("--write needs a trace in a file, not standard input")]
        WriteOfStdin => Usage XM0809 {
            title: "`--write` with standard input",
            cause: "`--write` changes a manifest on the disk, which needs the name of a trace.",
            example: "xmem check - --k8s job.yaml --write",
            fix: "Save the trace to a file, and run `xmem check trace.json.zst --k8s job.yaml --write`.",
        },
        #[error("no memory figure: the verdict of a trace was withheld")]
        #[diagnostic(help("--format text says why"))]
        NoNumber => Withheld XM0808,
        #[error("`{}` is a law: it says what a job needs with each value of {name}", shown(path))]
        #[diagnostic(help("add the value, for example --at {name}={example}"))]
        NoValue { path: PathBuf, name: String, example: u64 } => Usage XM0810 {
            title: "law without a value",
            cause: "A law describes the memory for each value of a number, and the command gives no value.",
            example: "xmem check law.json --device t4-16g",
            fix: "Add the value, for example `--at batch=64`.",
        },
        #[error("`{}` is a law of {name}, not of {asked}", shown(path))]
        #[diagnostic(help("write --at {name}=VALUE"))]
        OtherNumber { path: PathBuf, name: String, asked: String } => Usage XM0811 {
            title: "value of another number",
            cause: "`--at` names a number that the law does not describe.",
            example: "xmem check law.json --at width=64",
            fix: "Use the name that the message shows, for example `--at batch=64`.",
        },
        #[error("{name} {value} is beyond the law `{}`, which goes from {low} to {high}", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE --range {name}=LOW..HIGH` makes one of other values"))]
        BeyondLaw { path: PathBuf, name: String, value: u64, low: u64, high: u64 } => Usage XM0812 {
            title: "value beyond the law",
            cause: "The law was made for a range of values, and the given value is outside it.",
            example: "xmem check law.json --at batch=100000",
            fix: "Make a law with a wider range: `xmem fit --law FILE --range batch=1..100000 -- COMMAND`.",
        },
        #[error("`{}` is a law for {device}; it does not hold for {asked}", shown(path))]
        #[diagnostic(help("make one for it: xmem fit -d {asked} --law FILE -- COMMAND"))]
        LawOfOtherDevice { path: PathBuf, device: String, asked: String } => Usage XM0813 {
            title: "law for another device",
            cause: "Kernels and workspaces differ between devices, so that a law holds for one device.",
            example: "xmem check law.json --at batch=64 --device t4-16g",
            fix: "Make a law for this device: `xmem fit -d t4-16g --law FILE -- COMMAND`.",
        },
        #[error("cannot read the law `{}`", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE -- COMMAND` writes one"))]
        Law { path: PathBuf, source: ReadLawError } => Unreadable XM0814 {
            title: "unreadable law",
            cause: "The file is not a law, or its version is not supported.",
            example: "xmem check broken-law.json --at batch=64",
            fix: "Write it again with `xmem fit -d NAME --law FILE -- COMMAND`.",
        },
        #[error("--at needs a law, and `{}` is not one", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE -- COMMAND` writes one; a trace has one value"))]
        NotALaw { path: PathBuf } => Usage XM0815 {
            title: "`--at` without a law",
            cause: "`--at` gives the value of a law, and the file is a trace.",
            example: "xmem check trace.json.zst --at batch=64 --device t4-16g",
            fix: "Make a law with `xmem fit -d NAME --law FILE -- COMMAND`, or remove `--at`.",
        },
        #[error("--update-baseline needs a file")]
        #[diagnostic(help("add --baseline FILE, for example --baseline .xmem/baseline.json"))]
        NoBaseline => Usage XM0816 {
            title: "no file for the baseline",
            cause: "`--update-baseline` writes the file of `--baseline`, which is missing.",
            example: "xmem check runs --device t4-16g --update-baseline",
            fix: "Add the file: `--baseline .xmem/baseline.json --update-baseline`.",
        },
        #[error("cannot read the baseline `{}`", shown(path))]
        #[diagnostic(help(
            "`xmem check … --baseline FILE --update-baseline` writes a baseline; the file was not changed"
        ))]
        Baseline { path: PathBuf, source: BaselineError } => Unreadable XM0817 {
            title: "unreadable baseline",
            cause:
                "The file of `--baseline` does not exist, or is not a baseline of this version. It was not changed.",
            example: "xmem check runs --device t4-16g --baseline missing.json",
            fix: "Write it with `xmem check runs --device NAME --baseline FILE --update-baseline`.",
        },
        #[error("SkyPilot has no name for {device}")]
        #[diagnostic(help("without --device, all of SkyPilot's GPUs are tried"))]
        NotOfSkypilot { device: String } => Usage XM0818 {
            title: "device without a name in SkyPilot",
            cause: "`--format skypilot` writes the names that SkyPilot has for GPUs, and the device is not among them.",
            example: "xmem check trace.json.zst --device jetson-orin-64g --format skypilot",
            fix: "Remove `--device` to try all of SkyPilot's GPUs: `xmem check trace.json.zst --format skypilot`.",
        },
    }
}
