//! What Slurm says about a job: the options of its commands, and the directives of its script.

use crate::request::{JobRequest, ParseRequestError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// The options of a submission, as the plug-in `cli_filter` passes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SlurmOptions {
    /// The options by their long names, without dashes.
    #[serde(default)]
    pub options: BTreeMap<String, Option<String>>,
    /// The variables that begin with `XMEM_`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The job script, if there is one.
    #[serde(default)]
    pub script: Option<PathBuf>,
    /// The folder in which the command runs.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// True if the traces of the environment count before those of the script.
    #[serde(skip)]
    pub prefer_environment: bool,
}

/// The lines of a job script that begin with `#SBATCH` and `#XMEM`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Slurm's options by their long names, without dashes. Of one given twice, the last counts.
    pub options: BTreeMap<String, String>,
    /// The traces of the job (`#XMEM --trace FILE`), one for each rank.
    pub traces: Vec<PathBuf>,
    /// The value of a law that is among the traces (`#XMEM --at batch=64`).
    pub at: Option<LawValue>,
    /// True if the job is to be recorded first (`#XMEM --profile`).
    pub profile: bool,
}

/// A value of the number in a law (`batch=64`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawValue {
    /// The name of the number.
    pub name: String,
    /// Its value.
    pub value: u64,
}

impl FromStr for LawValue {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (name, value) = text.split_once('=').ok_or(())?;
        let value = value.trim().parse().map_err(drop)?;
        Ok(Self { name: name.trim().to_owned(), value })
    }
}

/// What is wrong with a job script or with options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlurmError {
    /// A request for GPUs cannot be read.
    #[error(transparent)]
    Request(#[from] ParseRequestError),
    /// An `#XMEM` line has an unknown word.
    #[error(
        "line {line}: `{word}` is not an option of #XMEM: write --trace FILE, --at NAME=VALUE or --profile"
    )]
    Directive {
        /// The line, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// `--trace` without a file.
    #[error("line {line}: --trace needs a file")]
    NoTrace {
        /// The line, from 1.
        line: usize,
    },
    /// `--at` without a value.
    #[error("line {line}: --at needs a name and a number, for example batch=64")]
    NoValue {
        /// The line, from 1.
        line: usize,
    },
    /// Not the JSON that the plug-in writes.
    #[error("the options are not what cli_filter.lua passes: {0}")]
    Options(String),
}

/// Options with a short form that matter here (sbatch(1)).
const SHORT: [(&str, &str); 5] =
    [("G", "gpus"), ("C", "constraint"), ("p", "partition"), ("N", "nodes"), ("n", "ntasks")];

/// The options that ask for GPUs by type and count.
const GPUS: [&str; 4] = ["gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"];

/// The options that ask for resources of any kind.
const RESOURCES: [&str; 3] = ["gres", "tres-per-task", "tres-per-node"];

impl Directives {
    /// Reads the directives of a job script. As with `sbatch`, those behind the first command do not
    /// count.
    ///
    /// # Errors
    /// If a line that begins with `#XMEM` is wrong.
    pub fn of_script(text: &str) -> Result<Self, SlurmError> {
        let mut found = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if let Some(words) = after(line, "#SBATCH") {
                found.slurm(words);
            } else if let Some(words) = after(line, "#XMEM") {
                found.xmem(number + 1, words)?;
            } else if !line.trim_start().is_empty() && !line.trim_start().starts_with('#') {
                break;
            }
        }
        Ok(found)
    }

    fn slurm(&mut self, words: &str) {
        let mut words = words_of(words).into_iter().peekable();
        while words.peek().is_some() {
            match option(&mut words) {
                Some((name, value)) => drop(self.options.insert(name, value)),
                None => drop(words.next()),
            }
        }
    }

    fn xmem(&mut self, line: usize, words: &str) -> Result<(), SlurmError> {
        let mut words = words_of(words).into_iter();
        while let Some(word) = words.next() {
            if let Some(trace) = word.strip_prefix("--trace=") {
                self.traces.push(trace.into());
            } else if word == "--trace" {
                let trace = words.next().ok_or(SlurmError::NoTrace { line })?;
                self.traces.push(trace.into());
            } else if let Some(value) = word.strip_prefix("--at=") {
                self.at = Some(value.parse().map_err(|()| SlurmError::NoValue { line })?);
            } else if word == "--at" {
                let value = words.next().and_then(|word| word.parse().ok());
                self.at = Some(value.ok_or(SlurmError::NoValue { line })?);
            } else if word == "--profile" {
                self.profile = true;
            } else {
                return Err(SlurmError::Directive { line, word });
            }
        }
        Ok(())
    }

    /// What the script asks of the cluster.
    ///
    /// # Errors
    /// If a request for GPUs cannot be read.
    pub fn request(&self) -> Result<JobRequest, SlurmError> {
        request(|name| self.options.get(name).map(String::as_str))
    }
}

impl SlurmOptions {
    /// Reads the JSON of the plug-in.
    ///
    /// # Errors
    /// If it is not that.
    pub fn from_json(text: &str) -> Result<Self, SlurmError> {
        serde_json::from_str(text).map_err(|error| SlurmError::Options(error.to_string()))
    }

    /// What the submission asks of the cluster: its options, and where they say nothing those of the
    /// script. Slurm's plug-in sees the options of the script too, but not on every command.
    ///
    /// # Errors
    /// If a request for GPUs cannot be read.
    pub fn request(&self, script: &Directives) -> Result<JobRequest, SlurmError> {
        request(|name| {
            let given = self.options.get(name).and_then(Option::as_deref);
            let given = given.filter(|value| !matches!(*value, "" | "-2" | "(null)"));
            given.or_else(|| script.options.get(name).map(String::as_str))
        })
    }

    /// The traces of the job: those of the script, else `XMEM_TRACE` with colons between several.
    #[must_use]
    pub fn traces(&self, script: &Directives) -> Vec<PathBuf> {
        let named = self.environment.get("XMEM_TRACE").map_or("", String::as_str);
        let preferred = self.prefer_environment && !named.is_empty();
        if !script.traces.is_empty() && !preferred {
            return script.traces.clone();
        }
        named.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
    }
}

/// A command line of `sbatch`, `salloc` or `srun`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmCommand {
    /// The name of the program, without its folder.
    pub program: String,
    /// The options of each component of the job: several in a heterogeneous job.
    pub components: Vec<BTreeMap<String, String>>,
    /// What follows the options: the script or the program, with its arguments.
    pub rest: Vec<String>,
}

impl SlurmCommand {
    /// Reads a command line: the program, its options, and what it runs. Components of a heterogeneous
    /// job are separated by ` : ` (Slurm, heterogeneous_jobs.shtml).
    #[must_use]
    pub fn new(words: &[String]) -> Self {
        let mut words = words.iter().cloned().peekable();
        let program = words.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        let mut components = vec![BTreeMap::new()];
        while let Some(word) = words.peek() {
            if word == ":" {
                words.next();
                components.push(BTreeMap::new());
                continue;
            }
            if word == "--" {
                words.next();
                break;
            }
            let Some((name, value)) = option(&mut words) else { break };
            if let Some(last) = components.last_mut() {
                last.insert(name, value);
            }
        }
        Self { program, components, rest: words.collect() }
    }

    /// The job script: `sbatch`'s first argument, if it has no command to wrap.
    #[must_use]
    pub fn script(&self) -> Option<PathBuf> {
        let wraps = self.components.iter().any(|options| options.contains_key("wrap"));
        let script = self.rest.first().filter(|_| self.program == "sbatch" && !wraps);
        script.map(PathBuf::from)
    }

    /// The submission of each component, as the plug-in would pass it; `variable` reads the environment,
    /// in which `sbatch` finds defaults of its options (sbatch(1), "INPUT ENVIRONMENT VARIABLES").
    #[must_use]
    pub fn submissions(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<SlurmOptions> {
        let prefix = match self.program.as_str() {
            "salloc" => "SALLOC",
            "srun" => "SLURM",
            _ => "SBATCH",
        };
        let deciding = GPUS.iter().chain(&RESOURCES).chain(&["constraint", "partition"]);
        let mut defaults: BTreeMap<String, Option<String>> = BTreeMap::new();
        for &name in deciding {
            let value =
                variable(&format!("{prefix}_{}", name.to_ascii_uppercase().replace('-', "_")));
            if value.is_some() {
                defaults.insert(name.to_owned(), value);
            }
        }
        let trace = variable("XMEM_TRACE").map(|value| ("XMEM_TRACE".to_owned(), value));
        let environment: BTreeMap<String, String> = trace.into_iter().collect();
        let of = |given: &BTreeMap<String, String>| {
            let mut options = defaults.clone();
            options.extend(given.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
            SlurmOptions {
                options,
                environment: environment.clone(),
                script: self.script(),
                ..SlurmOptions::default()
            }
        };
        self.components.iter().map(of).collect()
    }
}

/// The options of `sbatch`, `salloc` and `srun` that take no value, or only one with `=`
/// (`sbatch --help`, Slurm 22.05). Every other option takes the next word.
const FLAGS: [&str; 35] = [
    "hold",
    "ignore-pbs",
    "no-kill",
    "no-requeue",
    "requeue",
    "overcommit",
    "parsable",
    "quiet",
    "reboot",
    "oversubscribe",
    "spread-job",
    "use-min-nodes",
    "verbose",
    "wait",
    "contiguous",
    "exclusive",
    "help",
    "usage",
    "version",
    "test-only",
    "get-user-env",
    "nice",
    "propagate",
    "wrap",
    "export",
    "no-shell",
    "no-bell",
    "overlap",
    "exact",
    "whole",
    "label",
    "unbuffered",
    "pty",
    "disable-status",
    "preserve-env",
];

/// Short options without a value.
const SHORT_FLAGS: &str = "HkOQsvWhVIKlXuE";

/// Takes an option with its value from the front of `words`; none if the next word is not an option. An
/// option without a value has the empty text.
fn option(
    words: &mut std::iter::Peekable<impl Iterator<Item = String>>,
) -> Option<(String, String)> {
    let word = words.next_if(|word| word.len() > 1 && word.starts_with('-'))?;
    let next = |words: &mut std::iter::Peekable<_>| {
        words.next_if(|next: &String| !next.starts_with('-')).unwrap_or_default()
    };
    if let Some(long) = word.strip_prefix("--") {
        return Some(match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None if FLAGS.contains(&long) => (long.to_owned(), String::new()),
            None => (long.to_owned(), next(words)),
        });
    }
    let letter = word[1..].chars().next().map_or(0, char::len_utf8);
    let (letter, rest) = word[1..].split_at(letter);
    let known = SHORT.iter().find(|(short, _)| *short == letter);
    let name = known.map_or(letter, |(_, long)| long).to_owned();
    if SHORT_FLAGS.contains(letter) {
        return Some((name, String::new()));
    }
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    let value = if rest.is_empty() { next(words) } else { rest.to_owned() };
    Some((name, value))
}

/// What follows a directive's name and white space.
fn after<'a>(line: &'a str, directive: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(directive)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

/// The words of a line up to a comment. Quotes hold a word together.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn request<'a>(option: impl Fn(&str) -> Option<&'a str>) -> Result<JobRequest, SlurmError> {
    let mut request = JobRequest::default();
    for name in RESOURCES {
        request.gpus.extend(JobRequest::gres(option(name).unwrap_or_default())?);
    }
    // Each says the same of a job at another level: the first that is given counts.
    let gpus = GPUS.iter().find_map(|name| option(name).filter(|text| !text.is_empty()));
    // `gpu:0` is how a job says that it wants none there.
    request.gpus.retain(|gpu| gpu.count > 0);
    if request.gpus.is_empty() {
        request.gpus = JobRequest::gpus(gpus.unwrap_or_default())?;
    }
    request.features = JobRequest::constraint(option("constraint").unwrap_or_default());
    let partitions = option("partition").unwrap_or_default().split(',');
    request.partitions = partitions.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "#!/bin/bash\n#SBATCH -J train --gres=gpu:a100:2   # two of them\n\
        #SBATCH -p gpu,debug\n#SBATCH --constraint \"a100&nvlink\"\n# a comment\n\n\
        #XMEM --trace 'runs/my trace.json.zst'\n#XMEM --profile\nsrun python train.py\n\
        #SBATCH --gres=gpu:h100:8\n#XMEM --nonsense\n";

    #[test]
    fn directives_are_read_up_to_the_first_command() {
        let found = Directives::of_script(SCRIPT).expect("directives");
        assert_eq!(found.traces, [PathBuf::from("runs/my trace.json.zst")]);
        assert!(found.profile);
        let request = found.request().expect("request");
        assert_eq!(request.gpus, JobRequest::gres("gpu:a100:2").expect("gres"));
        assert_eq!(request.features, [["a100", "nvlink"]]);
        assert_eq!(request.partitions, ["gpu", "debug"]);
    }

    #[test]
    fn short_options_are_read_with_and_without_a_blank() {
        for (line, gpus) in [
            ("#SBATCH -G2", "2"),
            ("#SBATCH -G a100:2", "a100:2"),
            ("#SBATCH --gpus=a100:2", "a100:2"),
            ("#SBATCH --gpus-per-node a100:4", "a100:4"),
            ("#SBATCH --exclusive --gpus-per-task=1", "1"),
            ("#SBATCH -G=1", "1"),
            ("#SBATCH --gres=gpu:0 --gpus=a100:1", "a100:1"),
        ] {
            let found = Directives::of_script(line).expect(line).request().expect(line);
            assert_eq!(found.gpus, JobRequest::gpus(gpus).expect("gpus"), "{line}");
        }
    }

    #[test]
    fn a_command_line_is_read_up_to_its_script() {
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let command = SlurmCommand::new(&words);
            let requests = command.submissions(|name| {
                (name == "SBATCH_PARTITION").then(|| "from-environment".to_owned())
            });
            let requests = requests.iter().map(|options| {
                let request = options.request(&Directives::default()).expect(line);
                let gpus = request
                    .gpus
                    .iter()
                    .map(|gpu| format!("{}:{}", gpu.kind.as_deref().unwrap_or("any"), gpu.count));
                format!("{} {}", gpus.collect::<Vec<_>>().join("+"), request.partitions.join("+"))
            });
            (requests.collect::<Vec<_>>().join(" | "), command.script(), command.rest.len())
        };
        let script = || Some(PathBuf::from("job.sh"));
        for (line, requests, path, rest) in [
            (
                "sbatch --gres=gpu:a100:1 job.sh --gres=gpu:x:9",
                "a100:1 from-environment",
                script(),
                2,
            ),
            ("/usr/bin/sbatch -p gpu -G a100:2 job.sh", "a100:2 gpu", script(), 1),
            ("sbatch --wait -H --exclusive job.sh", " from-environment", script(), 1),
            ("sbatch --gpus 2 --parsable job.sh", "any:2 from-environment", script(), 1),
            ("sbatch -G1 --wrap=true", "any:1 from-environment", None, 0),
            (
                "sbatch --gres=gpu:a100:1 : --gres=gpu:v100:1 -p other job.sh",
                "a100:1 from-environment | v100:1 other",
                script(),
                1,
            ),
            ("srun -n 1 --gres gpu:t4:1 python train.py", "t4:1 ", None, 2),
            ("salloc --gpus-per-node=t4:4 -- bash -l", "t4:4 ", None, 2),
        ] {
            assert_eq!(read(line), (requests.to_owned(), path, rest), "{line}");
        }
    }

    #[test]
    fn wrong_directives_say_where() {
        for (line, error) in [
            ("\n#XMEM --trce x", "line 2: `--trce` is not an option of #XMEM"),
            ("#XMEM --trace", "line 1: --trace needs a file"),
        ] {
            let found = Directives::of_script(line).expect_err(line).to_string();
            assert!(found.starts_with(error), "{found}");
        }
        // Not a directive: another word that begins like it.
        assert_eq!(Directives::of_script("#XMEMORY --trace x"), Ok(Directives::default()));
    }

    #[test]
    fn options_of_the_command_come_before_those_of_the_script() {
        let script = Directives::of_script(SCRIPT).expect("directives");
        let json = r#"{"options": {"gres": "gpu:v100:1", "partition": null, "constraint": ""},
            "environment": {"XMEM_TRACE": "a.json:b.json"}, "script": "job.sh", "other": 1}"#;
        let options = SlurmOptions::from_json(json).expect("options");
        let request = options.request(&script).expect("request");
        assert_eq!(request.gpus, JobRequest::gres("gpu:v100:1").expect("gres"));
        assert_eq!(request.partitions, ["gpu", "debug"]);
        assert_eq!(options.traces(&script), [PathBuf::from("runs/my trace.json.zst")]);
        let none = Directives::default();
        assert_eq!(options.traces(&none), [PathBuf::from("a.json"), PathBuf::from("b.json")]);
        assert!(SlurmOptions::from_json("\"gres\"").is_err());
    }
}
