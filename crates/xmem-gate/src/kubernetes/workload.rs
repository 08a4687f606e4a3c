//! The kinds of objects that make pods, and where their pod templates are.

use super::template::PodTemplate;
use crate::template_path::{PathStep, TemplatePath};
use serde_json::Value;

/// A kind of object, and the paths of its pod templates.
struct Kind {
    group: &'static str,
    kind: &'static str,
    paths: &'static [&'static str],
}

const fn kind(group: &'static str, kind: &'static str, paths: &'static [&'static str]) -> Kind {
    Kind { group, kind, paths }
}

/// Kinds with pods, from the API references of Kubernetes 1.34, JobSet v1alpha2, the Kubeflow training
/// operator v1, MPI operator v2beta1, KubeRay v1, Volcano v1alpha1 and LeaderWorkerSet v1.
const KINDS: [Kind; 20] = [
    kind("", "Pod", &[""]),
    kind("", "ReplicationController", &["spec.template"]),
    kind("batch", "Job", &["spec.template"]),
    kind("batch", "CronJob", &["spec.jobTemplate.spec.template"]),
    kind("apps", "Deployment", &["spec.template"]),
    kind("apps", "ReplicaSet", &["spec.template"]),
    kind("apps", "StatefulSet", &["spec.template"]),
    kind("apps", "DaemonSet", &["spec.template"]),
    kind("jobset.x-k8s.io", "JobSet", &["spec.replicatedJobs.*.template.spec.template"]),
    kind("kubeflow.org", "PyTorchJob", &["spec.pytorchReplicaSpecs.*.template"]),
    kind("kubeflow.org", "TFJob", &["spec.tfReplicaSpecs.*.template"]),
    kind("kubeflow.org", "XGBoostJob", &["spec.xgbReplicaSpecs.*.template"]),
    kind("kubeflow.org", "PaddleJob", &["spec.paddleReplicaSpecs.*.template"]),
    kind("kubeflow.org", "JAXJob", &["spec.jaxReplicaSpecs.*.template"]),
    kind("kubeflow.org", "MPIJob", &["spec.mpiReplicaSpecs.*.template"]),
    kind(
        "ray.io",
        "RayCluster",
        &["spec.headGroupSpec.template", "spec.workerGroupSpecs.*.template"],
    ),
    kind(
        "ray.io",
        "RayJob",
        &[
            "spec.rayClusterSpec.headGroupSpec.template",
            "spec.rayClusterSpec.workerGroupSpecs.*.template",
        ],
    ),
    kind(
        "ray.io",
        "RayService",
        &[
            "spec.rayClusterConfig.headGroupSpec.template",
            "spec.rayClusterConfig.workerGroupSpecs.*.template",
        ],
    ),
    kind("batch.volcano.sh", "Job", &["spec.tasks.*.template"]),
    kind(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        &["spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"],
    ),
];

/// A kind without pod templates, which says what its pods ask for. The JobSet that is made of it is decided as well, as the
/// resources may be those of its runtime.
const TRAIN_JOB: (&str, &str) = ("trainer.kubeflow.org", "TrainJob");

/// The pod templates of an object, or of the objects of a `List`. `configured` gives the paths for kinds
/// of the site, by API group and kind; they come before the built-in ones.
#[must_use]
pub fn find_templates(
    object: &Value,
    configured: &dyn Fn(&str, &str) -> Vec<TemplatePath>,
) -> Vec<PodTemplate> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if group.is_empty() && kind == "List" {
        let items = object.get("items").and_then(Value::as_array);
        let items = items.into_iter().flatten().enumerate();
        return items.flat_map(|(at, item)| of_item(at, item, configured)).collect();
    }
    let mut paths = configured(group, kind);
    if paths.is_empty() {
        if (group, kind) == TRAIN_JOB {
            return PodTemplate::of_train_job(object).into_iter().collect();
        }
        paths = built_in(group, kind);
    }
    let found = paths.iter().flat_map(|path| path.values(object));
    found.map(|(path, value)| PodTemplate::new(path, value, object)).collect()
}

/// A list in a list is not looked into.
fn of_item(
    at: usize,
    item: &Value,
    configured: &dyn Fn(&str, &str) -> Vec<TemplatePath>,
) -> Vec<PodTemplate> {
    if item.get("kind").and_then(Value::as_str) == Some("List") {
        return Vec::new();
    }
    let mut found = find_templates(item, configured);
    for template in &mut found {
        let own = std::mem::take(&mut template.path);
        template.path = [PathStep::Key("items".to_owned()), PathStep::Index(at)]
            .into_iter()
            .chain(own)
            .collect();
    }
    found
}

fn built_in(group: &str, kind: &str) -> Vec<TemplatePath> {
    find(group, kind).map_or_else(Vec::new, |known| {
        known.paths.iter().map(|text| TemplatePath::known(text)).collect()
    })
}

fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.group == group && known.kind == kind)
}

/// Returns whether the pod templates of a kind are built in.
pub(super) fn is_workload(group: &str, kind: &str) -> bool {
    find(group, kind).is_some()
}

/// The API groups and kinds of which is known what their pods ask for.
pub fn workload_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|known| (known.group, known.kind)).chain([TRAIN_JOB])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(object: &Value) -> Vec<String> {
        let configured = |group: &str, kind: &str| match (group, kind) {
            ("example.org", "Sweep") => vec!["spec.trials.*.pod".parse().expect("path")],
            _ => Vec::new(),
        };
        find_templates(object, &configured).iter().map(PodTemplate::place).collect()
    }

    #[test]
    fn a_train_job_says_what_its_nodes_ask_for() {
        let job = |spec: Value| {
            let object = json!({
                "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
                "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}, "spec": spec,
            });
            find_templates(&object, &|_, _| Vec::new())
        };
        let selector = |name: &str, product: &str| {
            json!({"targetJobs": [{"name": name}],
                   "spec": {"nodeSelector": {"nvidia.com/gpu.product": product}}})
        };
        let found = job(json!({
            "annotations": {"xmem.dev/peak-bytes": "7"},
            "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}},
            "podTemplateOverrides":
                [selector("node", "Tesla-T4"), selector("dataset-initializer", "none"), selector("node", "NVIDIA-L4")],
        }));
        let [template] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(template.resources, [("nvidia.com/gpu".to_owned(), 4)]);
        assert_eq!(template.nodes[0].products.as_deref(), Some(&["NVIDIA-L4".to_owned()][..]));
        assert_eq!(template.queue.as_deref(), Some("team-a"));
        assert_eq!(
            template.annotations.as_ref().expect("read").peak.map(xmem::Bytes::get),
            Some(7)
        );
        // The resources of its runtime are not known here.
        assert_eq!(job(json!({"trainer": {"numNodes": 2}})), []);
    }

    #[test]
    fn templates_are_found_in_every_kind() {
        let pod = || json!({"spec": {"containers": []}});
        for (version, kind, spec, expected) in [
            ("v1", "Pod", json!({"containers": []}), &[""][..]),
            ("batch/v1", "Job", json!({"template": pod()}), &["spec.template"]),
            (
                "batch/v1",
                "CronJob",
                json!({"jobTemplate": {"spec": {"template": pod()}}}),
                &["spec.jobTemplate.spec.template"],
            ),
            ("apps/v1", "Deployment", json!({"template": pod()}), &["spec.template"]),
            ("apps/v1", "StatefulSet", json!({"template": pod()}), &["spec.template"]),
            (
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                json!({"replicatedJobs": [
                    {"name": "a", "template": {"spec": {"template": pod()}}},
                    {"name": "b", "template": {"spec": {"template": pod()}}},
                ]}),
                &[
                    "spec.replicatedJobs[0].template.spec.template",
                    "spec.replicatedJobs[1].template.spec.template",
                ],
            ),
            (
                "kubeflow.org/v1",
                "PyTorchJob",
                json!({"pytorchReplicaSpecs": {"Master": {"template": pod()}, "Worker": {"template": pod()}}}),
                &[
                    "spec.pytorchReplicaSpecs.Master.template",
                    "spec.pytorchReplicaSpecs.Worker.template",
                ],
            ),
            (
                "ray.io/v1",
                "RayCluster",
                json!({"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [{"template": pod()}]}),
                &["spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"],
            ),
            (
                "ray.io/v1",
                "RayJob",
                json!({"rayClusterSpec": {"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [{"template": pod()}, {}]}}),
                &[
                    "spec.rayClusterSpec.headGroupSpec.template",
                    "spec.rayClusterSpec.workerGroupSpecs[0].template",
                ],
            ),
            (
                "batch.volcano.sh/v1alpha1",
                "Job",
                json!({"tasks": [{"template": pod()}]}),
                &["spec.tasks[0].template"],
            ),
            (
                "example.org/v2",
                "Sweep",
                json!({"trials": [{"pod": pod()}]}),
                &["spec.trials[0].pod"],
            ),
            // The same kind in another group, and what makes no pods.
            ("example.org/v2", "Job", json!({"template": pod()}), &[]),
            ("v1", "Service", json!({}), &[]),
        ] {
            let object = json!({"apiVersion": version, "kind": kind, "spec": spec});
            assert_eq!(places(&object), expected, "{kind}");
            let list = json!({"apiVersion": "v1", "kind": "List", "items": [{}, object]});
            let in_list = expected.iter().map(|place| match *place {
                "" => "items[1]".to_owned(),
                place => format!("items[1].{place}"),
            });
            assert_eq!(places(&list), in_list.collect::<Vec<_>>(), "{kind}");
        }
    }

    #[test]
    fn odd_objects_have_no_templates() {
        for object in [
            json!(null),
            json!([]),
            json!({"apiVersion": 1, "kind": ["Job"]}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": []}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": null}}),
            json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": "x"}}),
        ] {
            let found = find_templates(&object, &|_, _| Vec::new());
            assert!(found.iter().all(|template| template.resources.is_empty()), "{object}");
        }
    }
}
