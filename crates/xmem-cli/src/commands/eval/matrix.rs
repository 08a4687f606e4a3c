//! The matrix: which jobs are evaluated on which devices, and by which estimators.

use super::error::EvalFailure;
use super::graph_source::GraphSource;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use xmem_eval::evaluation::{Configuration, Grid, TruthSource, sample};
use xmem_recorder::Engine;
use xmem_studies::planning::DnnMemPolicies;

/// The factor that names the device.
pub(super) const DEVICE: &str = "device";

/// The factor that names the kind of model.
pub(super) const FAMILY: &str = "family";

/// Iterations that are recorded, unless the matrix says another number.
const STEPS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// A matrix, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Matrix {
    /// What is evaluated, in words.
    #[serde(default)]
    pub(super) title: String,
    /// Whether memory is compared by class, too: live tensors, rounding, reservation.
    #[serde(default)]
    pub(super) classes: bool,
    /// Where the memory of a run is known from, without readings.
    #[serde(default)]
    pub(super) truth: Truth,
    /// Estimators by name; xmem on a virtual GPU if there is none.
    #[serde(default)]
    pub(super) estimators: BTreeMap<String, Estimator>,
    /// Kinds of jobs.
    #[serde(default)]
    pub(super) jobs: Vec<Jobs>,
}

/// Where the memory of a run is known from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Truth {
    /// The job runs on a virtual GPU with the memory of the device.
    #[default]
    VirtualGpu,
    /// The job runs on a GPU of this machine, of this number in nvidia-smi.
    Gpu(u32),
    /// A memory snapshot of the job was taken: a path with {factors}, beside the matrix.
    Snapshot(String),
}

impl Truth {
    /// The factors in the path of a snapshot.
    fn factors(&self) -> Vec<&str> {
        match self {
            Self::Snapshot(path) => placeholders(path).collect(),
            Self::VirtualGpu | Self::Gpu(_) => Vec::new(),
        }
    }

    pub(super) const fn source(&self) -> TruthSource {
        match self {
            Self::VirtualGpu => TruthSource::VirtualGpu,
            Self::Gpu(_) => TruthSource::Gpu,
            Self::Snapshot(_) => TruthSource::Snapshots,
        }
    }
}

/// An estimator.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Estimator {
    /// What stands for the GPU while xmem records the job.
    #[serde(default)]
    pub(super) engine: EstimatorEngine,
    /// The figure that is the estimate.
    #[serde(default)]
    pub(super) figure: Figure,
    /// When tensors are allocated and released in DNNMem's estimate, as `--dnnmem` of `xmem plan` has it.
    #[serde(default)]
    policies: Vec<String>,
    /// Whether a job that meets the limit of the device is run within it, and is what it does there.
    #[serde(default)]
    pub(super) confirm: bool,
    /// Another program in place of xmem: a command with factors that prints a number of bytes.
    #[serde(default)]
    pub(super) command: Vec<String>,
    /// Values of factors that are not those of the job (the seed of an order): the job is recorded with each, and the estimate
    /// is the median with the range of all.
    #[serde(default)]
    over: BTreeMap<String, Values>,
    /// The families that it can estimate; all if none is named.
    #[serde(default)]
    families: Vec<String>,
}

impl Estimator {
    /// The policies of DNNMem's estimate.
    pub(super) fn dnnmem(&self) -> Result<DnnMemPolicies, String> {
        let policies = self.policies.iter().map(|text| text.parse::<DnnMemPolicies>());
        let policies: Result<Vec<_>, _> = policies.collect();
        policies.map(|all| DnnMemPolicies::default().with(all)).map_err(|error| error.to_string())
    }

    fn check(&self, name: &str) -> Result<(), EvalFailure> {
        let failed = |reason| EvalFailure::Policies { estimator: name.to_owned(), reason };
        self.dnnmem().map(drop).map_err(failed)
    }

    /// Returns whether it can estimate jobs of a configuration's family.
    pub(super) fn is_for(&self, configuration: &Configuration) -> bool {
        let family = configuration.value(FAMILY).unwrap_or_default();
        self.families.is_empty() || self.families.iter().any(|one| one == family)
    }

    /// The configurations that are recorded for an estimate: the job's own, or it with each value of `over`.
    pub(super) fn recorded(&self, configuration: &Configuration) -> Vec<Configuration> {
        let over =
            Grid(self.over.iter().map(|(name, values)| (name.clone(), values.texts())).collect());
        (0..over.len()).map(|number| configuration.with(&over.get(number))).collect()
    }
}

/// The origin of the job that an estimate is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EstimatorEngine {
    /// PyTorch's CUDA build on a virtual GPU.
    #[default]
    VirtualGpu,
    /// The CPU.
    Cpu,
    /// None: the graph of the job says what it does, as for `xmem estimate`.
    Graph,
}

impl EstimatorEngine {
    /// The engine that records the job; none for a graph.
    pub(super) const fn of_recorder(self) -> Option<Engine> {
        match self {
            Self::VirtualGpu => Some(Engine::VirtualGpu),
            Self::Cpu => Some(Engine::Cpu),
            Self::Graph => None,
        }
    }
}

/// A figure about a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    /// Peak reserved memory, which is what the driver shows of a process beside its context.
    #[default]
    Reserved,
    /// The least memory with which the job runs.
    Least,
    /// Peak allocated memory: tensors and workspaces without the allocator.
    Allocated,
    /// The estimate of DNNMem, with the allocator of the job.
    Dnnmem,
    /// The same with TensorFlow's best fit with coalescing.
    DnnmemBfc,
    /// DNNMem's baseline: weights, input, and all outputs of forward.
    ShapeInference,
    /// The same with the outputs that backward needs.
    ShapeInferenceSaved,
}

impl Figure {
    /// Returns whether it has the CUDA context in it, where runs have.
    pub(super) const fn may_have_context(self) -> bool {
        !matches!(self, Self::ShapeInference | Self::ShapeInferenceSaved)
    }
}

/// Jobs of one kind: a command, and the values of its factors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jobs {
    /// The kind of model, by which figures are grouped.
    pub(super) family: String,
    /// The command, with {factors}. An argument that names a file beside the matrix is that file.
    pub(super) command: Vec<String>,
    /// Iterations to record.
    #[serde(default = "steps")]
    pub(super) steps: NonZeroU32,
    /// The graph of a job, for estimators that need one.
    #[serde(default)]
    pub(super) graph: GraphSource,
    /// The number of combinations that are jobs, drawn at random, in place of all.
    #[serde(default)]
    pub(super) sample: Option<SampledJobs>,
    /// The point from which readings count.
    #[serde(default)]
    pub(super) readings_from: ReadingsFrom,
    /// Values by factor; all combinations are jobs.
    #[serde(default)]
    pub(super) factors: BTreeMap<String, Values>,
    /// Values of factors that a reading does not state.
    #[serde(default)]
    pub(super) defaults: BTreeMap<String, Scalar>,
}

/// A number of jobs that are drawn from all combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SampledJobs {
    /// The number.
    jobs: NonZeroU64,
    /// The seed: the same seed draws the same jobs.
    #[serde(default)]
    seed: u64,
}

/// The point of a run from which a reading counts memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReadingsFrom {
    /// Before the first allocation.
    #[default]
    Start,
    /// Some moment while the job is set up, which is not known: what it has on the device before its first iteration may be
    /// in the reading or not.
    Setup,
    /// Before there is a process: the CUDA context is in the reading.
    Process,
}

const fn steps() -> NonZeroU32 {
    STEPS
}

/// The values of a factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Values {
    /// One by one.
    List(Vec<Scalar>),
    /// Whole numbers from the first to the last.
    Range {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
        /// The distance between two.
        #[serde(default = "one")]
        step: u64,
    },
}

const fn one() -> u64 {
    1
}

/// A value of a factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A number.
    Float(f64),
}

impl Scalar {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
        }
    }
}

impl Values {
    fn texts(&self) -> Vec<String> {
        match *self {
            Self::List(ref values) => values.iter().map(Scalar::text).collect(),
            Self::Range { from, to, step } => {
                (from..=to).step_by(step.max(1) as usize).map(|n| n.to_string()).collect()
            }
        }
    }
}

impl Matrix {
    /// Reads a matrix.
    pub(super) fn read(path: &Path) -> Result<Self, EvalFailure> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| EvalFailure::Read { path: path.to_owned(), source })?;
        let mut matrix: Self = toml::from_str(&text)
            .map_err(|source| EvalFailure::Matrix { path: path.to_owned(), source })?;
        if matrix.jobs.is_empty() {
            return Err(EvalFailure::NoJobs { path: path.to_owned() });
        }
        if matrix.estimators.is_empty() {
            matrix.estimators.insert("xmem".to_owned(), Estimator::default());
        }
        matrix.jobs.iter().try_for_each(|jobs| jobs.check(&matrix.truth))?;
        matrix.estimators.iter().try_for_each(|(name, estimator)| estimator.check(name))?;
        Ok(matrix)
    }
}

impl Jobs {
    fn check(&self, truth: &Truth) -> Result<(), EvalFailure> {
        let family = || self.family.clone();
        if self.command.is_empty() {
            return Err(EvalFailure::NoCommand { family: family() });
        }
        let known =
            |factor: &str| self.factors.contains_key(factor) || self.defaults.contains_key(factor);
        let used = self.placeholders().into_iter().chain(self.graph.factors());
        let used = used.chain(truth.factors());
        if let Some(factor) = used.into_iter().find(|&factor| !known(factor)) {
            return Err(EvalFailure::Placeholder { family: family(), factor: factor.to_owned() });
        }
        if !known(DEVICE) {
            return Err(EvalFailure::NoDevice { family: family() });
        }
        match self.factors.iter().find(|(_, values)| values.texts().is_empty()) {
            Some((factor, _)) => {
                Err(EvalFailure::Range { family: family(), factor: factor.clone() })
            }
            None => Ok(()),
        }
    }

    /// The factors in the command, in its order.
    pub(super) fn placeholders(&self) -> Vec<&str> {
        self.command.iter().flat_map(|argument| placeholders(argument)).collect()
    }

    /// All combinations of the values; factors in the order of the command, then the others.
    pub(super) fn grid(&self) -> Grid {
        let order = self.placeholders();
        let place =
            |factor: &str| order.iter().position(|&one| one == factor).unwrap_or(usize::MAX);
        let factors = self.factors.iter().map(|(factor, values)| (factor.clone(), values.texts()));
        let mut factors: Vec<_> = factors.collect();
        factors.sort_by_key(|(factor, _)| place(factor));
        Grid(factors)
    }

    /// The combinations of the values that are jobs: all, or those that are drawn.
    pub(super) fn combinations(&self) -> Combinations {
        let grid = self.grid();
        match self.sample {
            None => Combinations::All(grid),
            Some(SampledJobs { jobs, seed }) => {
                let drawn = sample(grid.len(), jobs.get(), seed);
                Combinations::Drawn(drawn.into_iter().map(|number| grid.get(number)).collect())
            }
        }
    }

    /// Returns whether a measured run is one of these jobs: it states all factors of the command and a device, and of a factor
    /// whose values are texts it has one of them. Numbers may be others.
    pub(super) fn has(&self, run: &Configuration) -> bool {
        if run.value(FAMILY).is_some_and(|family| family != self.family) {
            return false;
        }
        let completed = self.completed(run.clone());
        let is_stated = |factor: &str| completed.value(factor).is_some();
        let is_known =
            |(factor, values): (&String, &Values)| match (values, completed.value(factor)) {
                (Values::List(values), Some(value)) => {
                    let texts = values.iter().filter_map(|one| match one {
                        Scalar::Text(text) => Some(text.as_str()),
                        _ => None,
                    });
                    let texts: Vec<&str> = texts.collect();
                    texts.is_empty() || texts.contains(&value)
                }
                _ => true,
            };
        is_stated(DEVICE)
            && self.placeholders().into_iter().all(is_stated)
            && self.factors.iter().all(is_known)
    }

    /// The configuration with the family, and with the defaults for factors that it lacks.
    pub(super) fn completed(&self, mut configuration: Configuration) -> Configuration {
        configuration.or_insert(FAMILY, &self.family);
        for (factor, value) in &self.defaults {
            configuration.or_insert(factor, &value.text());
        }
        configuration
    }

    /// The command of a configuration, with the files beside the matrix.
    pub(super) fn command_of(&self, configuration: &Configuration, folder: &Path) -> Vec<OsString> {
        with_values(&self.command, configuration, folder)
    }
}

/// Combinations of the values of factors.
#[derive(Clone, Debug)]
pub(super) enum Combinations {
    /// All of a grid.
    All(Grid),
    /// Some.
    Drawn(Vec<Configuration>),
}

impl Combinations {
    /// Their number.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::All(grid) => grid.len(),
            Self::Drawn(drawn) => drawn.len() as u64,
        }
    }

    /// The combination with a number below [`len`](Self::len).
    pub(super) fn get(&self, number: u64) -> Configuration {
        match self {
            Self::All(grid) => grid.get(number),
            Self::Drawn(drawn) => drawn[number as usize].clone(),
        }
    }
}

/// A command with the values of factors, and with the paths of files beside the matrix. The first word is a program.
pub(super) fn with_values(
    command: &[String],
    configuration: &Configuration,
    folder: &Path,
) -> Vec<OsString> {
    let filled = command.iter().map(|argument| {
        let mut text = argument.clone();
        for (factor, value) in configuration.iter() {
            text = text.replace(&format!("{{{factor}}}"), value);
        }
        text
    });
    filled
        .enumerate()
        .map(|(at, argument)| {
            let path = folder.join(&argument);
            if at > 0 && path.is_file() { path.into_os_string() } else { argument.into() }
        })
        .collect()
}

/// The names in braces.
pub(super) fn placeholders(argument: &str) -> impl Iterator<Item = &str> {
    argument.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(text: &str) -> Result<Matrix, EvalFailure> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("it can be written");
        Matrix::read(file.path())
    }

    const JOBS: &str = "[[jobs]]\nfamily = 'cnn'\n";

    #[test]
    fn jobs_are_all_combinations() {
        let matrix = matrix(&format!(
            "{JOBS}command = ['python', 'cnn.py', '{{model}}', '--batch={{batch}}', '{{zero_grad}}']\n\
             factors = {{ model = ['VGG16', 'VGG19'], batch = {{ from = 200, to = 700, step = 250 }}, device = ['t4-16g'] }}\n\
             defaults = {{ zero_grad = 'start' }}\n"
        ))
        .expect("a matrix");
        let jobs = &matrix.jobs[0];
        assert_eq!(jobs.grid().len(), 6);
        let last = jobs.completed(jobs.grid().get(5));
        let command = jobs.command_of(&last, Path::new("/nowhere"));
        assert_eq!(command, ["python", "cnn.py", "VGG19", "--batch=700", "start"]);
        assert_eq!(last.value("family"), Some("cnn"));
        let xmem = &matrix.estimators["xmem"];
        assert_eq!((xmem.engine, xmem.figure), (EstimatorEngine::VirtualGpu, Figure::Reserved));
        assert_eq!(xmem.recorded(&last), [last]);
    }

    #[test]
    fn a_measured_run_is_a_job_with_its_texts_and_any_numbers() {
        let matrix = matrix(&format!(
            "{JOBS}command = ['python', '{{model}}', '{{batch}}']\n\
             factors = {{ model = ['VGG16'], batch = [200, 300], device = ['t4-16g'] }}\n"
        ))
        .expect("a matrix");
        for (model, batch, device, family, is_one) in [
            ("VGG16", Some("250"), "t4-16g", "cnn", true),
            ("VGG19", Some("200"), "t4-16g", "cnn", false),
            ("VGG16", Some("200"), "a100-40g", "cnn", false),
            ("VGG16", Some("200"), "t4-16g", "transformer", false),
            ("VGG16", None, "t4-16g", "cnn", false),
        ] {
            let values = [
                ("model", Some(model)),
                ("batch", batch),
                ("device", Some(device)),
                ("family", Some(family)),
            ];
            let values =
                values.into_iter().filter_map(|(f, v)| Some((f.to_owned(), v?.to_owned())));
            let run = Configuration::new(values);
            assert_eq!(matrix.jobs[0].has(&run), is_one, "{run}");
        }
    }

    #[test]
    fn a_job_is_recorded_in_several_orders() {
        let matrix = matrix(&format!(
            "{JOBS}command = ['python', '{{seed}}']\ndefaults = {{ seed = 0, device = 't4-16g' }}\n\
             [estimators.xmem]\nover = {{ seed = [1, 2] }}\n"
        ))
        .expect("a matrix");
        let jobs = &matrix.jobs[0];
        let job = jobs.completed(jobs.grid().get(0));
        let seeds = |one: &Configuration| one.value("seed").map(str::to_owned);
        let recorded = matrix.estimators["xmem"].recorded(&job);
        assert_eq!(recorded.iter().filter_map(seeds).collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn jobs_may_be_drawn_from_all_combinations() {
        let drawn = |seed: u64| {
            let text = format!(
                "{JOBS}command = ['python', '{{height}}']\nsample = {{ jobs = 4, seed = {seed} }}\n\
                 defaults = {{ device = 't4-16g' }}\nfactors = {{ height = {{ from = 1, to = 1000 }} }}\n"
            );
            let matrix = matrix(&text).expect("a matrix");
            let drawn = matrix.jobs[0].combinations();
            (0..drawn.len()).map(|number| drawn.get(number)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1).len(), 4);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn what_is_wrong_with_a_matrix_is_named() {
        for (text, expected) in [
            (String::new(), "has no [[jobs]]"),
            (format!("{JOBS}command = []"), "the cnn jobs have no command"),
            (
                format!("{JOBS}command = ['python', '{{batch}}']"),
                "the command of the cnn jobs has {batch}, which is not one of their factors",
            ),
            (format!("{JOBS}command = ['python']"), "the cnn jobs have no device"),
            (
                format!("{JOBS}command = ['python']\nfactors = {{ device = [] }}"),
                "the range of `device` in the cnn jobs has no values",
            ),
            (format!("{JOBS}comand = ['python']"), "is not a matrix of jobs"),
        ] {
            let error = matrix(&text).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_file_beside_the_matrix_is_found_from_anywhere() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("cnn.py"), "").expect("it can be written");
        let command = ["python", "cnn.py", "--lr"].map(str::to_owned);
        let filled = with_values(&command, &Configuration::default(), folder.path());
        assert_eq!(filled[1], folder.path().join("cnn.py").into_os_string());
        assert_eq!(
            (filled[0].as_os_str(), filled[2].as_os_str()),
            ("python".as_ref(), "--lr".as_ref())
        );
    }
}
