//! What Slurm says about a job: the options of its commands, and the directives of its script.

use crate::request::{JobRequest, ParseRequestError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
}

/// The lines of a job script that begin with `#SBATCH` and `#XMEM`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Slurm's options by their long names, without dashes. Of one given twice, the last counts.
    pub options: BTreeMap<String, String>,
    /// The traces of the job (`#XMEM --trace FILE`), one for each rank.
    pub traces: Vec<PathBuf>,
    /// True if the job is to be recorded first (`#XMEM --profile`).
    pub profile: bool,
}

/// What is wrong with a job script or with options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlurmError {
    /// A request for GPUs cannot be read.
    #[error(transparent)]
    Request(#[from] ParseRequestError),
    /// An `#XMEM` line has an unknown word.
    #[error("line {line}: `{word}` is not an option of #XMEM: write --trace FILE or --profile")]
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
        while let Some(word) = words.next() {
            let mut next = || words.next_if(|next| !next.starts_with('-')).unwrap_or_default();
            let (name, value) = if let Some(long) = word.strip_prefix("--") {
                match long.split_once('=') {
                    Some((name, value)) => (name.to_owned(), value.to_owned()),
                    None => (long.to_owned(), next()),
                }
            } else if let Some(short) = word.strip_prefix('-') {
                let letter = short.chars().next().map_or(0, char::len_utf8);
                let (letter, rest) = short.split_at(letter);
                let Some((_, long)) = SHORT.iter().find(|(known, _)| *known == letter) else {
                    continue;
                };
                let rest = rest.strip_prefix('=').unwrap_or(rest);
                ((*long).to_owned(), if rest.is_empty() { next() } else { rest.to_owned() })
            } else {
                continue;
            };
            self.options.insert(name, value);
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
        if !script.traces.is_empty() {
            return script.traces.clone();
        }
        let named = self.environment.get("XMEM_TRACE").map_or("", String::as_str);
        named.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
    }
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
        ] {
            let found = Directives::of_script(line).expect(line).request().expect(line);
            assert_eq!(found.gpus, JobRequest::gpus(gpus).expect("gpus"), "{line}");
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
