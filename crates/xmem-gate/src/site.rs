//! The table of a cluster: its GPUs under the names that jobs use for them, and the rules of the gate.

mod ineffective;

use crate::decision::Policy;
use crate::margin::Margin;
use crate::request::{GpuRequest, JobRequest};
use crate::suggestion::with_suggestion;
use crate::template_path::TemplatePath;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use xmem::devices::DeviceNameError;
use xmem::{Bytes, Device};

/// A site's GPUs and rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The GPUs, in the order of the file.
    pub gpus: Vec<SiteGpu>,
    /// The rules where no partition or namespace has its own.
    pub rules: Rules,
    /// Rules of Slurm's partitions.
    pub partitions: BTreeMap<String, Rules>,
    /// Slurm's default partition: that of jobs that name none.
    pub default_partition: Option<String>,
    /// Rules of namespaces of Kubernetes.
    pub namespaces: BTreeMap<String, Rules>,
    /// The GPUs of the flavors behind each of Kueue's local queues: indices of [`SiteGpu`].
    pub queues: BTreeMap<String, Vec<usize>>,
    /// Kinds of Kubernetes' objects that make pods, beside the built-in ones.
    pub workloads: Vec<Workload>,
    /// Users of Kubernetes, service accounts as a rule, who are controllers: what they make for an owner of a known
    /// kind was decided about with the owner.
    pub controllers: Vec<String>,
    /// The longest time that a gate waits for an answer.
    pub timeout: Duration,
    /// A line for users whose job is rejected.
    pub help: Option<String>,
    /// The path of xmem where users submit, if it is not on their `PATH`.
    pub program: Option<String>,
}

/// A GPU of a site, under all names by which jobs ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteGpu {
    /// The device; its memory may be the site's own figure.
    pub device: Device,
    /// The types in `Gres=gpu:TYPE:COUNT` of slurm.conf, in lower case.
    pub gres: Vec<String>,
    /// The features of nodes that have it, in lower case.
    pub features: Vec<String>,
    /// The values of the node label `nvidia.com/gpu.product`.
    pub products: Vec<String>,
    /// The resources of Kubernetes by which it is requested (`nvidia.com/mig-1g.5gb`).
    pub resources: Vec<String>,
}

/// A kind of Kubernetes' objects that make pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The API group (`example.org`); empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The paths of its pod templates.
    pub templates: Vec<TemplatePath>,
}

/// The rules of a partition, a namespace or the site; what is not set is that of the site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What happens to jobs that do not fit.
    pub policy: Option<Policy>,
    /// Memory that is to stay free.
    pub margin: Option<Margin>,
    /// True if a job about which nothing is known is rejected.
    pub fail_closed: Option<bool>,
    /// The GPU of requests that name none: the index of a [`SiteGpu`].
    pub gpu: Option<usize>,
}

/// The reason why a site file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// Not TOML, or a key is unknown, missing or of the wrong type.
    #[error("{message}{}", line_text(*.line))]
    Form {
        /// What is wrong.
        message: String,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// A name that is not that of one device.
    #[error(transparent)]
    Device(#[from] DeviceNameError),
    /// A value that is not one of its key.
    #[error("`{key}`: {reason}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
}

fn line_text(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(" (line {line})"))
}

/// The devices on which a job may be started, the smallest memory first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// The devices; never empty.
    pub devices: Vec<&'a Device>,
    /// The number of GPUs that the job asks for.
    pub count: u32,
}

/// The reason why it is not known on which device a job will run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// The type of a request is neither in the site file nor that of a built-in device.
    #[error("the GPU type `{0}` is not known: add it to `gres` of a [[gpu]] in the site file")]
    Kind(String),
    /// The request names no type, and the site has several GPUs.
    #[error("the request names no type of GPU, and the site has several")]
    NoKind,
    /// The request names no type, and the GPUs of the site are not known.
    #[error("the request names no type of GPU, and no site file says which there are")]
    NoSite,
    /// The job asks for no GPU.
    #[error("the job asks for no GPU")]
    NoGpu,
    /// The resource is not known.
    #[error("the resource `{0}` is not known: add it to `resources` of a [[gpu]] in the site file")]
    Resource(String),
    /// The quantity of a resource is no number of Kubernetes, or negative.
    #[error("the quantity of `{0}` cannot be read")]
    Quantity(String),
    /// The node selector excludes all GPUs that are known.
    #[error("no GPU of the site is on the nodes that the job selects")]
    Nodes,
}

impl Default for Site {
    /// A site of which nothing is known: GPUs are found by the names of built-in devices.
    fn default() -> Self {
        Self {
            gpus: Vec::new(),
            rules: Rules::default(),
            partitions: BTreeMap::new(),
            default_partition: None,
            namespaces: BTreeMap::new(),
            queues: BTreeMap::new(),
            workloads: Vec::new(),
            controllers: Vec::new(),
            timeout: Duration::from_secs(2),
            help: None,
            program: None,
        }
    }
}

impl Site {
    /// Reads a site file.
    ///
    /// # Errors
    /// If it is not TOML of this form, or names an unknown device.
    pub fn from_toml(text: &str) -> Result<Self, SiteError> {
        let dto: SiteDto = toml::from_str(text).map_err(|error| SiteError::Form {
            message: with_suggestion(error.message()),
            line: error.span().map(|span| 1 + text[..span.start].matches('\n').count()),
        })?;
        dto.into_site()
    }

    /// The rules of a job that names these partitions: where they differ, those that let less through, as
    /// the job may start in any of them, and its user can name one more.
    #[must_use]
    pub fn rules_of_partitions(&self, partitions: &[String]) -> Rules {
        let of = |name: &String| self.overlaid(self.partitions.get(name));
        self.named_or_default(partitions)
            .iter()
            .map(of)
            .reduce(Rules::stricter)
            .unwrap_or_else(|| self.overlaid(None))
    }

    fn named_or_default<'a>(&'a self, partitions: &'a [String]) -> &'a [String] {
        if partitions.is_empty() { self.default_partition.as_slice() } else { partitions }
    }

    /// The rules of a namespace.
    #[must_use]
    pub fn rules_of_namespace(&self, namespace: &str) -> Rules {
        self.overlaid(self.namespaces.get(namespace))
    }

    /// The paths of the pod templates in a kind of Kubernetes' objects, if the site names it.
    #[must_use]
    pub fn templates_of(&self, group: &str, kind: &str) -> Vec<TemplatePath> {
        let named = self.workloads.iter().filter(|w| w.group == group && w.kind == kind);
        named.flat_map(|workload| workload.templates.iter().cloned()).collect()
    }

    fn overlaid(&self, own: Option<&Rules>) -> Rules {
        let own = own.cloned().unwrap_or_default();
        Rules {
            policy: own.policy.or(self.rules.policy),
            margin: own.margin.or(self.rules.margin),
            fail_closed: own.fail_closed.or(self.rules.fail_closed),
            gpu: own.gpu.or(self.rules.gpu),
        }
    }

    /// The devices on which a job may be started, the smallest first.
    ///
    /// # Errors
    /// If the job asks for no GPU, or for one of which the site file says nothing.
    pub fn candidates(&self, request: &JobRequest) -> Result<Candidates<'_>, Unresolved> {
        if !request.asks_for_gpus() {
            return Err(Unresolved::NoGpu);
        }
        let mut devices: Vec<&Device> = Vec::new();
        for gpu in request.gpus.iter().filter(|gpu| gpu.count > 0) {
            devices.extend(self.of_gpu(gpu, request)?);
        }
        for (name, _) in request.resources.iter().filter(|(_, count)| *count > 0) {
            devices.extend(self.of_resource(name, request)?);
        }
        devices.sort_by(|a, b| (a.memory, &a.name).cmp(&(b.memory, &b.name)));
        devices.dedup();
        let gpus = request.gpus.iter().map(|gpu| gpu.count).sum::<u32>();
        let resources = request.resources.iter().map(|(_, count)| *count).sum::<u64>();
        let count = gpus.saturating_add(u32::try_from(resources).unwrap_or(u32::MAX));
        Ok(Candidates { devices, count })
    }

    fn of_gpu(&self, gpu: &GpuRequest, job: &JobRequest) -> Result<Vec<&Device>, Unresolved> {
        let Some(kind) = &gpu.kind else { return self.of_any(job) };
        let named = self.devices_where(|site| site.gres.contains(kind));
        if !named.is_empty() {
            return Ok(self.with_features(named, job));
        }
        known(kind).ok_or_else(|| Unresolved::Kind(kind.clone()))
    }

    /// The devices of a request without a type: those with the features or products that the job asks
    /// for, else that of its partitions, else the only one.
    fn of_any(&self, job: &JobRequest) -> Result<Vec<&Device>, Unresolved> {
        let by_product =
            self.devices_where(|gpu| gpu.products.iter().any(|p| job.products.contains(p)));
        if !by_product.is_empty() {
            return Ok(by_product);
        }
        if !job.products.is_empty() {
            let found = |name: &String| known(name).ok_or_else(|| Unresolved::Kind(name.clone()));
            let found = job.products.iter().map(found).collect::<Result<Vec<_>, _>>()?;
            return Ok(found.concat());
        }
        let by_feature = self.devices_where(|gpu| has_features(&gpu.features, &job.features));
        if !by_feature.is_empty() {
            return Ok(by_feature);
        }
        let of_partition = |name: &String| self.overlaid(self.partitions.get(name)).gpu;
        let mut defaults: Vec<usize> =
            self.named_or_default(&job.partitions).iter().filter_map(of_partition).collect();
        if defaults.is_empty() {
            defaults.extend(self.rules.gpu);
        }
        if !defaults.is_empty() {
            return Ok(defaults.into_iter().map(|index| &self.gpus[index].device).collect());
        }
        match &self.gpus[..] {
            [only] => Ok(vec![&only.device]),
            [] => Err(Unresolved::NoSite),
            _ => Err(Unresolved::NoKind),
        }
    }

    fn of_resource(&self, name: &str, job: &JobRequest) -> Result<Vec<&Device>, Unresolved> {
        let named = self.devices_where(|gpu| gpu.resources.iter().any(|known| known == name));
        match name {
            _ if !named.is_empty() => Ok(named),
            "nvidia.com/gpu" => self.of_any(job),
            _ => Err(Unresolved::Resource(name.to_owned())),
        }
    }

    /// Of GPUs of one type, those on nodes with the features that the job asks for; all if none has them.
    fn with_features<'a>(&'a self, named: Vec<&'a Device>, job: &JobRequest) -> Vec<&'a Device> {
        let mut fitting = self.devices_where(|gpu| has_features(&gpu.features, &job.features));
        fitting.retain(|device| named.contains(device));
        if fitting.is_empty() { named } else { fitting }
    }

    fn devices_where(&self, wanted: impl Fn(&SiteGpu) -> bool) -> Vec<&Device> {
        self.gpus.iter().filter(|gpu| wanted(gpu)).map(|gpu| &gpu.device).collect()
    }

    /// The devices of the site, the smallest first.
    #[must_use]
    pub fn devices(&self) -> Vec<&Device> {
        let mut devices: Vec<&Device> = self.gpus.iter().map(|gpu| &gpu.device).collect();
        devices.sort_by(|a, b| (a.memory, &a.name).cmp(&(b.memory, &b.name)));
        devices.dedup();
        devices
    }
}

/// The built-in devices that a type or a product may be: an `a100` of a cluster whose GPUs are not known has 40 or 80 GB.
fn known(name: &str) -> Option<Vec<&'static Device>> {
    Some(xmem::devices::find_all(name)).filter(|found| !found.is_empty())
}

/// Returns whether nodes with `features` are among those that a constraint names. Features that say
/// nothing about the GPU are not in the site file, so that one known feature of an alternative is enough.
fn has_features(features: &[String], constraint: &[Vec<String>]) -> bool {
    constraint.iter().any(|all| all.iter().any(|wanted| features.contains(wanted)))
}

impl Rules {
    /// Jobs of which nothing is known are rejected where one of both rejects them.
    fn stricter(self, other: Self) -> Self {
        let policy = |rules: &Self| rules.policy.unwrap_or_default();
        let closed =
            |rules: &Self| policy(rules) == Policy::Reject && rules.fail_closed == Some(true);
        Self {
            policy: Some(policy(&self).max(policy(&other))),
            margin: match (self.margin, other.margin) {
                (Some(Margin::PerMille(a)), Some(Margin::PerMille(b))) => {
                    Some(Margin::PerMille(a.max(b)))
                }
                (Some(Margin::Size(a)), Some(Margin::Size(b))) => Some(Margin::Size(a.max(b))),
                // Which of a share and a size is larger depends on the device. That of the partition named first.
                (a, b) => a.or(b),
            },
            fail_closed: Some(closed(&self) || closed(&other)),
            gpu: if self.gpu == other.gpu { self.gpu } else { None },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SiteDto {
    policy: Option<String>,
    margin: Option<String>,
    fail_closed: Option<bool>,
    gpu_default: Option<String>,
    timeout: Option<f64>,
    help: Option<String>,
    program: Option<String>,
    default_partition: Option<String>,
    #[serde(default)]
    controllers: Vec<String>,
    #[serde(default)]
    gpu: Vec<GpuDto>,
    #[serde(default)]
    partition: BTreeMap<String, RulesDto>,
    #[serde(default)]
    namespace: BTreeMap<String, RulesDto>,
    #[serde(default)]
    queue: BTreeMap<String, QueueDto>,
    #[serde(default)]
    workload: Vec<WorkloadDto>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct QueueDto {
    gpus: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WorkloadDto {
    #[serde(default)]
    group: String,
    kind: String,
    templates: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GpuDto {
    device: String,
    memory: Option<String>,
    #[serde(default)]
    gres: Vec<String>,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    products: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RulesDto {
    policy: Option<String>,
    margin: Option<String>,
    fail_closed: Option<bool>,
    gpu: Option<String>,
}

impl SiteDto {
    fn into_site(self) -> Result<Site, SiteError> {
        let gpus = self.gpu.into_iter().map(GpuDto::into_gpu).collect::<Result<Vec<_>, _>>()?;
        let rules = |path: &str, dto: RulesDto| dto.into_rules(path, &gpus);
        let tables = |kind: &str, dtos: BTreeMap<String, RulesDto>| {
            let read = dtos.into_iter().map(|(name, dto)| {
                let path = format!("{kind}.{name}.");
                Ok((name, rules(&path, dto)?))
            });
            read.collect::<Result<BTreeMap<_, _>, SiteError>>()
        };
        let own = RulesDto {
            policy: self.policy,
            margin: self.margin,
            fail_closed: self.fail_closed,
            gpu: self.gpu_default,
        };
        let timeout = match self.timeout {
            None => Site::default().timeout,
            Some(seconds) if (0.1..=60.0).contains(&seconds) => Duration::from_secs_f64(seconds),
            Some(_) => return Err(value("timeout", "expected seconds from 0.1 to 60")),
        };
        if let Some(name) = self.namespace.keys().find(|name| !is_namespace(name)) {
            let reason =
                "not the name of a namespace: at most 63 lower-case letters, digits and `-`";
            return Err(value(&format!("namespace.{name}"), reason));
        }
        let (partitions, namespaces) =
            (tables("partition", self.partition)?, tables("namespace", self.namespace)?);
        let rules = rules("", own)?;
        let queues = self.queue.into_iter().map(|(name, dto)| {
            let of = |gpu: &String| index(gpu, &gpus, || format!("queue.{name}.gpus"));
            let found = dto.gpus.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            match found.is_empty() {
                true => Err(value(&format!("queue.{name}.gpus"), "name at least one device")),
                false => Ok((name, found)),
            }
        });
        let queues = queues.collect::<Result<BTreeMap<_, _>, SiteError>>()?;
        let (help, program, default_partition) = (self.help, self.program, self.default_partition);
        let workloads = self.workload.into_iter().map(WorkloadDto::into_workload);
        let workloads = workloads.collect::<Result<_, _>>()?;
        Ok(Site {
            gpus,
            rules,
            partitions,
            default_partition,
            namespaces,
            queues,
            workloads,
            controllers: self.controllers,
            timeout,
            help,
            program,
        })
    }
}

/// A label of RFC 1123 (Kubernetes, "Object Names and IDs").
fn is_namespace(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let at_the_ends = |c: char| c != '-';
    (1..=63).contains(&name.len())
        && name.chars().all(allowed)
        && name.starts_with(at_the_ends)
        && name.ends_with(at_the_ends)
}

fn value(key: &str, reason: impl ToString) -> SiteError {
    SiteError::Value { key: key.to_owned(), reason: reason.to_string() }
}

/// The GPU of the site with this device.
fn index(name: &str, gpus: &[SiteGpu], key: impl FnOnce() -> String) -> Result<usize, SiteError> {
    let device = xmem::find(name)?;
    let index = gpus.iter().position(|gpu| gpu.device.name == device.name);
    index.ok_or_else(|| value(&key(), format!("no [[gpu]] has the device `{name}`")))
}

impl GpuDto {
    fn into_gpu(self) -> Result<SiteGpu, SiteError> {
        let mut device = xmem::find(&self.device)?.clone();
        if let Some(memory) = self.memory {
            let memory = Bytes::of_device(&memory).map_err(|error| value("memory", error))?;
            if memory <= device.context {
                return Err(value("memory", "less than the context of the device takes"));
            }
            if memory != device.memory {
                device = device.with_memory(memory, "site file");
            }
        }
        let lower = |names: Vec<String>| names.iter().map(|n| n.to_ascii_lowercase()).collect();
        Ok(SiteGpu {
            device,
            gres: lower(self.gres),
            features: lower(self.features),
            products: self.products,
            resources: self.resources,
        })
    }
}

impl WorkloadDto {
    fn into_workload(self) -> Result<Workload, SiteError> {
        let read = |text: &String| text.parse().map_err(|error| value("templates", error));
        let templates = self.templates.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Workload { group: self.group, kind: self.kind, templates })
    }
}

impl RulesDto {
    /// `path` stands before the keys in messages.
    fn into_rules(self, path: &str, gpus: &[SiteGpu]) -> Result<Rules, SiteError> {
        let key = |name: &str| format!("{path}{name}");
        let policy = self.policy.map(|text| text.parse());
        let margin = self.margin.map(|text| text.parse());
        let gpu = self.gpu.map(|name| index(&name, gpus, || key("gpu")));
        Ok(Rules {
            policy: policy.transpose().map_err(|error: String| value(&key("policy"), error))?,
            margin: margin
                .transpose()
                .map_err(|error: crate::ParseMarginError| value(&key("margin"), error))?,
            fail_closed: self.fail_closed,
            gpu: gpu.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = r#"
policy = "reject"
margin = "5%"
help = "https://hpc.example.org/gpu-memory"

[[gpu]]
device = "a100-40g"
gres = ["a100"]
features = ["a100-40"]
products = ["NVIDIA-A100-SXM4-40GB"]

[[gpu]]
device = "a100-80g"
gres = ["a100", "a100l"]
features = ["a100-80"]

[[gpu]]
device = "v100-16g"
memory = "15GiB"
gres = ["V100"]

[[gpu]]
device = "a100-40g-mig-1g.5gb"
gres = ["1g.5gb"]
resources = ["nvidia.com/mig-1g.5gb"]

[partition.debug]
policy = "off"
gpu = "v100-16g"

[partition.strict]
fail-closed = true
margin = "10%"

[namespace.research]
policy = "warn"
"#;

    fn site() -> Site {
        Site::from_toml(SITE).expect("site")
    }

    fn names(request: &JobRequest) -> Result<String, String> {
        let site = site();
        let found = site.candidates(request).map_err(|error| error.to_string())?;
        let names: Vec<&str> = found.devices.iter().map(|device| device.name.as_str()).collect();
        Ok(format!("{} x{}", names.join(" "), found.count))
    }

    #[test]
    fn requests_lead_to_the_devices_of_the_site() {
        let ask = |gres: &str, constraint: &str, partitions: &[&str]| {
            names(&JobRequest {
                gpus: JobRequest::gres(gres).expect("gres"),
                features: JobRequest::constraint(constraint),
                partitions: partitions.iter().map(|&name| name.to_owned()).collect(),
                ..JobRequest::default()
            })
        };
        for (gres, constraint, partitions, expected) in [
            ("gpu:a100:1", "", &[][..], "a100-40g a100-80g x1"),
            ("gpu:a100:1", "a100-80", &[], "a100-80g x1"),
            ("gpu:a100:1", "infiniband", &[], "a100-40g a100-80g x1"),
            ("gpu:a100l:4", "", &[], "a100-80g x4"),
            ("gpu:v100:2,gpu:a100l:1", "", &[], "v100-16g a100-80g x3"),
            ("gpu:1g.5gb:1", "", &[], "a100-40g-mig-1g.5gb x1"),
            ("gpu:1", "a100-40|a100-80", &[], "a100-40g a100-80g x1"),
            ("gpu:1", "", &["debug"], "v100-16g x1"),
            // A built-in device that the site file does not list.
            ("gpu:h100-80g:1", "", &[], "h100-80g x1"),
        ] {
            assert_eq!(ask(gres, constraint, partitions).as_deref(), Ok(expected), "{gres}");
        }
        for (gres, error) in [
            ("gpu:radeon:1", "the GPU type `radeon` is not known"),
            ("gpu:1", "the request names no type of GPU"),
            ("gpu:0", "the job asks for no GPU"),
            ("", "the job asks for no GPU"),
        ] {
            let found = ask(gres, "", &[]).expect_err(gres);
            assert!(found.starts_with(error), "{gres}: {found}");
        }
    }

    #[test]
    fn resources_and_products_of_kubernetes_lead_to_devices() {
        let ask = |resource: &str, products: &[&str]| {
            names(&JobRequest {
                resources: vec![(resource.to_owned(), 1)],
                products: products.iter().map(|&name| name.to_owned()).collect(),
                ..JobRequest::default()
            })
        };
        for (resource, products, expected) in [
            ("nvidia.com/mig-1g.5gb", &[][..], Ok("a100-40g-mig-1g.5gb x1")),
            ("nvidia.com/gpu", &["NVIDIA-A100-SXM4-40GB"], Ok("a100-40g x1")),
            ("nvidia.com/gpu", &["Tesla-T4"], Ok("t4-16g x1")),
            (
                "nvidia.com/gpu",
                &[],
                Err("the request names no type of GPU, and the site has several"),
            ),
        ] {
            assert_eq!(
                ask(resource, products).as_deref(),
                expected.map_err(str::to_owned).as_deref()
            );
        }
        assert!(ask("amd.com/gpu", &[]).is_err());
    }

    #[test]
    fn without_a_site_file_only_a_type_names_a_device() {
        let site = Site::default();
        let ask = |gres: &str| {
            let request: JobRequest = gres.parse().expect(gres);
            let found = site.candidates(&request);
            found.map(|found| found.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>())
        };
        assert_eq!(ask("gpu:t4:1"), Ok(vec!["t4-16g"]));
        assert_eq!(ask("gpu:1"), Err(Unresolved::NoSite));
        // A model in several sizes may be any of them, and is not the first of the list.
        assert_eq!(ask("gpu:a100:1"), Ok(vec!["a100-40g", "a100-80g", "a100-pcie-80g"]));
    }

    #[test]
    fn rules_of_partitions_overlay_those_of_the_site() {
        let site = site();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let rules = site.rules_of_partitions(&names);
            (rules.policy, rules.margin, rules.fail_closed.unwrap_or(false))
        };
        let five = Some(Margin::PerMille(50));
        assert_eq!(of(&[]), (Some(Policy::Reject), five, false));
        assert_eq!(of(&["debug"]), (Some(Policy::Off), five, false));
        let site = Site { default_partition: Some("debug".to_owned()), ..site.clone() };
        assert_eq!(site.rules_of_partitions(&[]).policy, Some(Policy::Off));
        let request =
            JobRequest { gpus: JobRequest::gpus("1").expect("one"), ..JobRequest::default() };
        assert_eq!(site.candidates(&request).expect("its own").devices[0].name, "v100-16g");
        assert_eq!(of(&["strict"]), (Some(Policy::Reject), Some(Margin::PerMille(100)), true));
        // The job may start in either: a partition with laxer rules is no way round.
        let strict = (Some(Policy::Reject), Some(Margin::PerMille(100)), true);
        assert_eq!(of(&["strict", "debug"]), strict);
        assert_eq!(of(&["debug", "strict"]), strict);
        assert_eq!(of(&["debug", "other"]), (Some(Policy::Reject), five, false));
        assert_eq!(site.rules_of_namespace("research").policy, Some(Policy::Warn));
        assert_eq!(site.rules_of_namespace("other").policy, Some(Policy::Reject));
    }

    #[test]
    fn the_memory_of_the_site_replaces_that_of_the_device() {
        assert_eq!(site().gpus[2].device.memory, Bytes::gib(15));
    }

    #[test]
    fn errors_say_where_and_what_was_perhaps_meant() {
        for (text, error) in [
            ("polcy = \"warn\"", "unknown field `polcy`"),
            ("polcy = \"warn\"", "did you mean `policy`? (line 1)"),
            ("\n[partition.gpu]\nmargn = \"5%\"", "did you mean `margin`? (line 3)"),
            ("policy = \"deny\"", "`policy`: `deny` is not a policy: write off, warn or reject"),
            ("[partition.a]\nmargin = \"lots\"", "`partition.a.margin`: `lots` is not a margin"),
            ("[[gpu]]\ndevice = \"a100-40gx\"", "did you mean `a100-40g`?"),
            ("[[gpu]]\ndevice = \"a100-40g\"\nmemory = \"1MiB\"", "less than the context"),
            ("[partition.a]\ngpu = \"t4-16g\"", "no [[gpu]] has the device `t4-16g`"),
            (
                "[queue.a]\ngpus = [\"t4-16g\"]",
                "`queue.a.gpus`: no [[gpu]] has the device `t4-16g`",
            ),
            ("[queue.a]\ngpus = []", "`queue.a.gpus`: name at least one device"),
            ("[queue.a]\ngpu = \"t4-16g\"", "did you mean `gpus`?"),
            ("timeout = 1000", "expected seconds from 0.1 to 60"),
            (
                "[namespace.Research]\npolicy = \"off\"",
                "`namespace.Research`: not the name of a namespace",
            ),
            ("[namespace.-]\npolicy = \"off\"", "`namespace.-`: not the name of a namespace"),
            ("policy = ", "(line 1)"),
        ] {
            let found = Site::from_toml(text).expect_err(text).to_string();
            assert!(found.contains(error), "{text}: {found}");
        }
    }
}
