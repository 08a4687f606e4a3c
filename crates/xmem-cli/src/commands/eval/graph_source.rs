//! The graph of a job, for estimators that need one: a file, or what `xmem export` writes of its command.

use super::matrix::{Jobs, Scalar, placeholders, with_values};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use xmem_eval::evaluation::Configuration;

/// The factors that are sizes of a graph.
const BATCH: &str = "batch";
const LENGTH: &str = "length";

/// Where the graph of a job is from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphSource {
    /// A file beside the matrix, with {factors}; without one, the command of the job is exported.
    #[serde(default)]
    file: Option<String>,
    /// Values of factors with which the command is exported, in place of those of the job. The sizes `batch` and `length` are
    /// then asked of the graph.
    #[serde(default)]
    values: BTreeMap<String, Scalar>,
}

/// The graph of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobGraph {
    /// A file.
    File(OsString),
    /// The export of a command.
    Export(Vec<OsString>),
}

/// Sizes that are asked of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GraphSizes {
    /// The size of the batch; none for that of the graph.
    pub(super) batch: Option<u32>,
    /// The length of sequences; none for that of the graph.
    pub(super) length: Option<u32>,
}

impl GraphSource {
    /// The factors in the name of the file, and those with other values.
    pub(super) fn factors(&self) -> impl Iterator<Item = &str> {
        let in_file = self.file.as_deref().into_iter().flat_map(placeholders);
        in_file.chain(self.values.keys().map(String::as_str))
    }

    /// The graph of a job.
    pub(super) fn of_job(
        &self,
        jobs: &Jobs,
        configuration: &Configuration,
        folder: &Path,
    ) -> JobGraph {
        match &self.file {
            Some(file) => {
                // The first word of a command is a program, and no file.
                let words = [String::new(), file.clone()];
                JobGraph::File(with_values(&words, configuration, folder).remove(1))
            }
            None => {
                let values = self.values.iter().map(|(name, value)| (name.clone(), value.text()));
                let exported = configuration.with(&Configuration::new(values));
                JobGraph::Export(jobs.command_of(&exported, folder))
            }
        }
    }

    /// The sizes of a job that its graph may not have: of a file all, else those that are exported with others.
    pub(super) fn sizes(&self, configuration: &Configuration) -> GraphSizes {
        let size = |factor: &str| {
            let is_asked = self.file.is_some() || self.values.contains_key(factor);
            configuration.value(factor).filter(|_| is_asked)?.parse().ok()
        };
        GraphSizes { batch: size(BATCH), length: size(LENGTH) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(graph: &str) -> Jobs {
        let text = format!(
            "family = 'cnn'\ncommand = ['python', '{{model}}', '{{batch}}', '{{length}}']\n\
             factors = {{ model = ['VGG16'], batch = [128], length = [64], device = ['t4-16g'] }}\n\
             [graph]\n{graph}\n"
        );
        toml::from_str(&text).expect("jobs")
    }

    #[test]
    fn a_graph_is_a_file_or_an_export_with_other_values() {
        let of = |graph: &str| {
            let jobs = jobs(graph);
            let job = jobs.completed(jobs.grid().get(0));
            (jobs.graph.of_job(&jobs, &job, Path::new("/nowhere")), jobs.graph.sizes(&job))
        };
        let export = |words: [&str; 4]| JobGraph::Export(words.map(OsString::from).to_vec());
        let asked = |batch, length| GraphSizes { batch, length };
        let cases = [
            ("", export(["python", "VGG16", "128", "64"]), asked(None, None)),
            (
                "values = { batch = 2 }",
                export(["python", "VGG16", "2", "64"]),
                asked(Some(128), None),
            ),
            (
                "file = '{model}.pt2'",
                JobGraph::File("VGG16.pt2".into()),
                asked(Some(128), Some(64)),
            ),
        ];
        for (graph, expected, sizes) in cases {
            assert_eq!(of(graph), (expected, sizes), "{graph}");
        }
    }
}
