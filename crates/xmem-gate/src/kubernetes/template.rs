//! A pod template: the GPUs it asks for, the nodes it may run on, and its annotations.

use super::annotations::{Annotations, ParseAnnotationError};
use super::nodes::NodeTerm;
use super::quantity::whole_units;
use crate::manifest::AnnotationPlace;
use crate::template_path::PathStep;
use serde_json::{Value, json};
use xmem::Bytes;

/// A pod template of an object, or a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTemplate {
    /// The path in the object.
    pub path: Vec<PathStep>,
    /// The resources that its containers ask for, in the order of their first mention, with the sum of
    /// their counts. All resources are here, not only GPUs.
    pub resources: Vec<(String, u64)>,
    /// The resources whose quantity cannot be read in one of its containers.
    pub unreadable: Vec<String>,
    /// The part of a GPU's memory that a container may use, if it is limited: the least of all containers.
    pub gpu_memory: Option<GpuMemory>,
    /// The nodes on which it may run: alternatives, at least one.
    pub nodes: Vec<NodeTerm>,
    /// The local queue of Kueue in which its object waits (label `kueue.x-k8s.io/queue-name`).
    pub queue: Option<String>,
    /// The map at the path that has its annotations.
    holder: &'static str,
    /// True if its containers use claims of devices (dynamic resource allocation).
    pub claims_devices: bool,
    /// Its annotations, with those of the object where it has none.
    pub annotations: Result<Annotations, ParseAnnotationError>,
}

/// A limit of a GPU's memory, as vGPU schedulers know it (Project-HAMi, HAMi: `nvidia.com/gpumem` and
/// `nvidia.com/gpumem-percentage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuMemory {
    /// A size.
    Size(Bytes),
    /// Hundredths of the GPU's memory.
    Percent(u8),
}

/// The limit of memory in MiB.
pub(super) const MEMORY: &str = "nvidia.com/gpumem";

/// The limit of memory in hundredths.
pub(super) const PERCENT: &str = "nvidia.com/gpumem-percentage";

/// The queue that the labels of an object or of a template name (Kueue, "Run a Job": jobs; "Run plain pods": pods).
fn queue(object: &Value) -> Option<String> {
    let name = object.get("metadata")?.get("labels")?.get("kueue.x-k8s.io/queue-name")?;
    name.as_str().map(str::to_owned)
}

impl PodTemplate {
    /// The template at `path` of `object`.
    pub(super) fn new(path: Vec<PathStep>, template: &Value, object: &Value) -> Self {
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let own = Annotations::of_metadata(template.get("metadata"));
        let annotations =
            own.and_then(|own| Ok(own.or(Annotations::of_metadata(object.get("metadata"))?)));
        let mut found = Self {
            path,
            resources: Vec::new(),
            unreadable: Vec::new(),
            gpu_memory: None,
            nodes: NodeTerm::of_pod(spec),
            queue: queue(template).or_else(|| queue(object)),
            holder: "metadata",
            claims_devices: false,
            annotations,
        };
        for list in ["initContainers", "containers"] {
            for container in spec.get(list).and_then(Value::as_array).into_iter().flatten() {
                found.add(container);
            }
        }
        found
    }

    /// What a `TrainJob` of Kubeflow Trainer says of its nodes' pods (trainer.kubeflow.org/v1alpha1, TrainJobSpec): resources
    /// of a node, selectors in overrides, annotations for the JobSet that is made of it. None if it leaves the resources
    /// to its runtime.
    pub(super) fn of_train_job(job: &Value) -> Option<Self> {
        let spec = job.get("spec")?;
        let resources = spec.get("trainer")?.get("resourcesPerNode")?;
        let overrides = spec.get("podTemplateOverrides").and_then(Value::as_array);
        let is_about_nodes = |one: &&Value| {
            let targets = one.get("targetJobs").and_then(Value::as_array);
            let is_node = |target: &Value| target.get("name").is_none_or(|name| name == "node");
            targets.is_none_or(|all| all.is_empty() || all.iter().any(is_node))
        };
        // The later ones come first.
        let selectors = overrides.into_iter().flatten().filter(is_about_nodes).rev();
        let nodes = selectors
            .filter_map(|one| one.get("spec"))
            .find(|pod| pod.get("nodeSelector").is_some() || pod.get("affinity").is_some());
        let template = json!({
            "metadata": { "annotations": spec.get("annotations"), "labels": spec.get("labels") },
            "spec": {
                "containers": [{ "resources": resources }],
                "nodeSelector": nodes.and_then(|pod| pod.get("nodeSelector")),
                "affinity": nodes.and_then(|pod| pod.get("affinity")),
            },
        });
        Some(Self { holder: "spec", ..Self::new(Vec::new(), &template, job) })
    }

    /// Where its annotations are written in a manifest.
    #[must_use]
    pub fn annotation_place(&self, document: usize) -> AnnotationPlace {
        AnnotationPlace { document, path: self.path.clone(), holder: self.holder }
    }

    fn add(&mut self, container: &Value) {
        let resources = container.get("resources");
        let claims = resources.and_then(|resources| resources.get("claims"));
        self.claims_devices |= claims.and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        // Of extended resources, requests equal limits (Kubernetes, "Schedule GPUs").
        let limits = resources.and_then(|resources| resources.get("limits"));
        for (name, value) in limits.and_then(Value::as_object).into_iter().flatten() {
            let Some(count) = whole_units(value) else {
                if !self.unreadable.contains(name) {
                    self.unreadable.push(name.clone());
                }
                continue;
            };
            match name.as_str() {
                _ if count == 0 => {}
                MEMORY => self.limit(GpuMemory::Size(Bytes::mib(count.min(1 << 40)))),
                PERCENT => self.limit(GpuMemory::Percent(count.min(100) as u8)),
                _ => match self.resources.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum = sum.saturating_add(count),
                    None => self.resources.push((name.clone(), count)),
                },
            }
        }
    }

    /// A size says more than a share.
    fn limit(&mut self, limit: GpuMemory) {
        self.gpu_memory = Some(match (self.gpu_memory, limit) {
            (Some(GpuMemory::Size(a)), GpuMemory::Size(b)) => GpuMemory::Size(a.min(b)),
            (Some(GpuMemory::Percent(a)), GpuMemory::Percent(b)) => GpuMemory::Percent(a.min(b)),
            (Some(size @ GpuMemory::Size(_)), _) => size,
            (_, limit) => limit,
        });
    }

    /// The path as text (`spec.replicatedJobs[0].template`); empty for a pod.
    #[must_use]
    pub fn place(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                PathStep::Key(key) if text.is_empty() => text += key,
                PathStep::Key(key) => text += &format!(".{key}"),
                PathStep::Index(at) => text += &format!("[{at}]"),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(value: Value) -> PodTemplate {
        PodTemplate::new(Vec::new(), &value, &value)
    }

    fn limits(containers: &[Value]) -> PodTemplate {
        let containers: Vec<Value> =
            containers.iter().map(|limits| json!({"resources": {"limits": limits}})).collect();
        template(json!({"spec": {"containers": containers}}))
    }

    #[test]
    fn limits_of_all_containers_are_added() {
        let found = limits(&[
            json!({"nvidia.com/gpu": 1, "cpu": "500m", "memory": "16Gi"}),
            json!({"nvidia.com/gpu": "2"}),
            json!({"nvidia.com/mig-1g.5gb": "1"}),
        ]);
        let gpus: Vec<(&str, u64)> = found
            .resources
            .iter()
            .filter(|(name, _)| name.starts_with("nvidia.com/"))
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        assert_eq!(gpus, [("nvidia.com/gpu", 3), ("nvidia.com/mig-1g.5gb", 1)]);
        assert_eq!(found.gpu_memory, None);
    }

    #[test]
    fn the_least_limit_of_memory_counts() {
        let mib = |size| Some(GpuMemory::Size(Bytes::mib(size)));
        for (containers, expected) in [
            (vec![json!({"nvidia.com/gpumem": "3000"})], mib(3000)),
            (vec![json!({"nvidia.com/gpumem": "3k"})], mib(3000)),
            (
                vec![json!({"nvidia.com/gpumem": 4000}), json!({"nvidia.com/gpumem": 3000})],
                mib(3000),
            ),
            (vec![json!({"nvidia.com/gpumem-percentage": "50"})], Some(GpuMemory::Percent(50))),
            (
                vec![json!({"nvidia.com/gpumem-percentage": 50}), json!({"nvidia.com/gpumem": 9})],
                mib(9),
            ),
            (vec![json!({"nvidia.com/gpumem": "2.5k"})], mib(2500)),
            (vec![json!({"nvidia.com/gpumem": "0"})], None),
            (vec![json!({"nvidia.com/gpumem": "-1"})], None),
            (vec![json!({"nvidia.com/gpumem": "99999999999G"})], mib(1 << 40)),
            (vec![json!({"nvidia.com/gpumem": "18446744073709551615"})], mib(1 << 40)),
        ] {
            assert_eq!(limits(&containers).gpu_memory, expected, "{containers:?}");
        }
    }

    #[test]
    fn spellings_of_a_quantity_that_counted_as_none() {
        for value in [
            json!("1e0"),
            json!("1E0"),
            json!("1000m"),
            json!("+1"),
            json!("1.0"),
            json!("0.001k"),
            json!(1.0),
        ] {
            let found = limits(&[json!({"nvidia.com/gpu": value})]);
            assert_eq!(found.resources, [("nvidia.com/gpu".to_owned(), 1)], "{value}");
        }
        let found = limits(&[json!({"nvidia.com/gpu": 2.0}), json!({"nvidia.com/gpu": "1"})]);
        assert_eq!(found.resources, [("nvidia.com/gpu".to_owned(), 3)]);
    }

    #[test]
    fn a_quantity_that_cannot_be_read_is_named() {
        let limit = json!({"nvidia.com/gpu": "one", "cpu": "4"});
        let found = limits(&[limit.clone(), json!({"nvidia.com/gpu": 1}), limit]);
        assert_eq!(found.unreadable, ["nvidia.com/gpu"]);
        assert_eq!(found.resources, [("cpu".to_owned(), 8), ("nvidia.com/gpu".to_owned(), 1)]);
    }

    #[test]
    fn init_and_sidecar_containers_are_read() {
        let gpu = json!({"limits": {"nvidia.com/gpu": 1}});
        let spec = json!({"spec": {
            "initContainers": [{"restartPolicy": "Always", "resources": gpu}, {"resources": gpu}],
            "containers": [{}],
        }});
        assert_eq!(template(spec).resources, [("nvidia.com/gpu".to_owned(), 2)]);
    }

    #[test]
    fn claims_of_devices_are_seen() {
        let claims =
            json!({"spec": {"containers": [{"resources": {"claims": [{"name": "gpu"}]}}]}});
        assert!(template(claims).claims_devices);
        assert!(!limits(&[json!({"nvidia.com/gpu": 1})]).claims_devices);
    }
}
