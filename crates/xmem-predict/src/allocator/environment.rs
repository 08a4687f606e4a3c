//! The statements of an input about the PyTorch that made it.

use xmem_analyzer::recording::Recording;
use xmem_simulator::alloc_conf_variables;
use xmem_types::TorchVersion;

/// The PyTorch release and the environment of the job that an input comes from, as far as the input
/// says.
///
/// Neither PyTorch nor Kineto writes either into a trace by itself. The script can, before the
/// profiler stops: `prof.add_metadata("torch_version", torch.__version__)`, and
/// `prof.add_metadata("PYTORCH_CUDA_ALLOC_CONF", …)`. `xmem profile` notes both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobEnvironment {
    /// The release, as written.
    pub torch: Option<String>,
    /// Environment variables with their values.
    pub variables: Vec<(String, String)>,
    /// `torch.cuda.set_per_process_memory_fraction`.
    pub memory_fraction: Option<f64>,
}

/// Names of the release, without case, blanks and punctuation.
const VERSION_KEYS: [&str; 2] = ["torchversion", "pytorchversion"];

/// Chooses the size of cuBLAS's workspaces.
const CUBLAS_WORKSPACE: &str = "CUBLAS_WORKSPACE_CONFIG";

/// The options of the allocator, in every release.
const ALLOC_CONF: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// Switches the caching allocator off.
pub(super) const NO_CACHING: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";

impl JobEnvironment {
    /// Out of the metadata at the top level of a trace: a version under a name like
    /// `torch_version` or `PyTorch Version`, and variables under their own names.
    #[must_use]
    pub fn from_metadata<'a>(metadata: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut environment = Self::default();
        for (key, value) in metadata {
            if value == "null" {
                continue;
            }
            let plain: String = key
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|c| c.to_ascii_lowercase())
                .collect();
            if VERSION_KEYS.contains(&plain.as_str()) {
                environment.torch.get_or_insert_with(|| value.to_owned());
            } else if is_variable(key) {
                environment.variables.push((key.to_owned(), value.to_owned()));
            }
        }
        environment
    }

    /// Adds what `xmem profile` noted. What the script itself put into the metadata comes first.
    #[must_use]
    pub fn with_recording(mut self, recording: &Recording) -> Self {
        self.torch = self.torch.or_else(|| recording.torch.clone());
        for (name, value) in recording.environment.iter().filter(|(name, _)| is_variable(name)) {
            if self.variable(name).is_none() {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        let history = recording.allocator_history.as_ref();
        if let Some(settings) = history.and_then(|history| history.settings.clone()) {
            // A script can set others than those of the variables (`_set_allocator_settings`).
            self.variables.retain(|(name, _)| !all_conf_variables().contains(&name.as_str()));
            self.variables.push((ALLOC_CONF.to_owned(), settings));
        }
        self.memory_fraction = recording.memory_fraction.filter(|f| (0.0..=1.0).contains(f));
        self
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of `CUBLAS_WORKSPACE_CONFIG`.
    #[must_use]
    pub fn cublas_workspace(&self) -> Option<&str> {
        self.variable(CUBLAS_WORKSPACE)
    }

    /// The option string that `release` would read: of the first variable that is set.
    pub(super) fn conf(&self, release: TorchVersion) -> Option<&str> {
        alloc_conf_variables(release).iter().find_map(|name| self.variable(name))
    }

    /// The same without what chooses options.
    pub(super) fn without_conf(&self) -> Self {
        let mut other = self.clone();
        other.variables.retain(|(name, _)| !all_conf_variables().contains(&name.as_str()));
        other
    }

    /// The variables with options that `release` does not look at.
    pub(super) fn unread(&self, release: TorchVersion) -> impl Iterator<Item = &str> {
        let read = alloc_conf_variables(release);
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        names.filter(move |name| all_conf_variables().contains(name) && !read.contains(name))
    }
}

/// Variables that some release reads.
fn all_conf_variables() -> &'static [&'static str] {
    alloc_conf_variables(xmem_simulator::newest_release())
}

fn is_variable(name: &str) -> bool {
    [NO_CACHING, CUBLAS_WORKSPACE].contains(&name) || all_conf_variables().contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_analyzer::recording::AllocatorHistory;

    #[test]
    fn versions_go_by_several_names_and_the_first_counts() {
        for key in ["torch_version", "PyTorch Version", "PYTORCH_VERSION", "torch.version"] {
            let environment =
                JobEnvironment::from_metadata([("trace_id", "7"), (key, "2.6.0+cu124")]);
            assert_eq!(environment.torch.as_deref(), Some("2.6.0+cu124"), "{key}");
        }
        for key in ["cuda_version", "version", "torchvision_version"] {
            assert_eq!(
                JobEnvironment::from_metadata([(key, "2.6")]),
                JobEnvironment::default(),
                "{key}"
            );
        }
        let twice =
            JobEnvironment::from_metadata([("torch_version", "2.6"), ("pytorch_version", "2.7")]);
        assert_eq!(twice.torch.as_deref(), Some("2.6"));
    }

    #[test]
    fn the_workspace_of_cublas_is_among_the_variables() {
        let environment = JobEnvironment::from_metadata([("CUBLAS_WORKSPACE_CONFIG", ":4096:8")]);
        assert_eq!(environment.cublas_workspace(), Some(":4096:8"));
        assert_eq!(environment.conf(TorchVersion::new(2, 11)), None);
    }

    #[test]
    fn what_the_recorder_noted_counts_where_the_metadata_says_nothing() {
        let environment = [("PYTORCH_CUDA_ALLOC_CONF", "a"), ("CUDA_VISIBLE_DEVICES", "0")];
        let recording = Recording {
            torch: Some("2.11.0+cu130".into()),
            environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
            memory_fraction: Some(0.5),
            ..Recording::default()
        };
        let noted = JobEnvironment::default().with_recording(&recording);
        assert_eq!(noted.torch.as_deref(), Some("2.11.0+cu130"));
        assert_eq!(noted.variables, [("PYTORCH_CUDA_ALLOC_CONF".to_owned(), "a".to_owned())]);
        assert_eq!(noted.memory_fraction, Some(0.5));
        let metadata = [("torch_version", "2.6"), ("PYTORCH_CUDA_ALLOC_CONF", "b")];
        let both = JobEnvironment::from_metadata(metadata).with_recording(&recording);
        assert_eq!((both.torch.as_deref(), both.variables.len()), (Some("2.6"), 1));
        assert_eq!(both.conf(TorchVersion::new(2, 6)), Some("b"));
        let odd = Recording { memory_fraction: Some(7.0), ..Recording::default() };
        assert_eq!(JobEnvironment::default().with_recording(&odd).memory_fraction, None);
    }

    #[test]
    fn the_options_that_the_allocator_reports_are_in_force() {
        let environment = [("PYTORCH_ALLOC_CONF", "a"), ("CUBLAS_WORKSPACE_CONFIG", ":0:0")];
        for (settings, conf) in [(Some("b"), Some("b")), (None, Some("a"))] {
            let history =
                AllocatorHistory { settings: settings.map(str::to_owned), ..Default::default() };
            let recording = Recording {
                environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
                allocator_history: Some(history),
                ..Recording::default()
            };
            let noted = JobEnvironment::default().with_recording(&recording);
            assert_eq!(noted.conf(TorchVersion::new(2, 11)), conf, "{settings:?}");
            assert_eq!(noted.cublas_workspace(), Some(":0:0"));
        }
    }

    #[test]
    fn what_is_null_was_not_set() {
        let metadata = [("torch_version", "null"), ("PYTORCH_CUDA_ALLOC_CONF", "null")];
        assert_eq!(JobEnvironment::from_metadata(metadata), JobEnvironment::default());
    }

    #[test]
    fn the_first_variable_that_the_release_reads_counts_even_if_it_is_empty() {
        let environment = JobEnvironment::from_metadata([
            ("PYTORCH_ALLOC_CONF", "max_split_size_mb:64"),
            ("PYTORCH_CUDA_ALLOC_CONF", ""),
            ("PYTORCH_JIT", "0"),
        ]);
        assert_eq!(environment.variables.len(), 2);
        for minor in [6, 11] {
            assert_eq!(environment.conf(TorchVersion::new(2, minor)), Some(""), "2.{minor}");
        }
        let later = JobEnvironment::from_metadata([("PYTORCH_ALLOC_CONF", "max_split_size_mb:64")]);
        assert_eq!(later.conf(TorchVersion::new(2, 9)), None);
        assert_eq!(later.conf(TorchVersion::new(2, 10)), Some("max_split_size_mb:64"));
        assert_eq!(later.unread(TorchVersion::new(2, 9)).count(), 1);
        assert_eq!(later.unread(TorchVersion::new(2, 10)).count(), 0);
    }
}
