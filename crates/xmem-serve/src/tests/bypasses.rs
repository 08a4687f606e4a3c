//! Reviews by which objects went round the gate, as the API server sends them.

use super::client::post;
use super::reviews::recorded;
use super::{Running, SITE, patient};
use crate::{Mutation, answer};
use serde_json::{Value, json};

/// More than any GPU of the site has.
const PEAK: &str = "60000000000";

/// A review of a pod that a user creates, with a controlling owner if one is given.
fn pod(user: &str, owner: Option<(&str, &str)>) -> Value {
    let mut review: Value = serde_json::from_str(recorded("pod-create")).expect("JSON");
    review["request"]["userInfo"]["username"] = json!(user);
    let metadata = &mut review["request"]["object"]["metadata"];
    metadata["annotations"] = json!({"xmem.dev/peak-bytes": PEAK});
    if let Some((version, kind)) = owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": version, "kind": kind, "name": "train", "controller": true,
            "uid": "1cf7da8e-6ddc-4ff3-a2b6-ad0d05e9e98d", "blockOwnerDeletion": true,
        }]);
    }
    review
}

/// A review of an object of some kind that is created with this template at a path of its `spec`.
fn workload(version: &str, kind: &str, path: &str, template: &Value) -> Value {
    let mut spec = template.clone();
    for key in path.split('.').rev() {
        spec = if key == "0" { json!([spec]) } else { json!({key: spec}) };
    }
    let group = version.split_once('/').map_or("", |(group, _)| group);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "kind": kind},
        "namespace": "research", "name": "x", "operation": "CREATE",
        "userInfo": {"username": "alice@example.org"},
        "object": {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec},
    }})
}

fn template(limit: &Value, annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}, "spec": {
        "nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"},
        "containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": limit}}}],
    }})
}

async fn is_allowed(server: &Running, review: &Value) -> bool {
    let (status, body) = server.client().await.ask(&post("/validate", &review.to_string())).await;
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    answer["response"]["allowed"].as_bool().expect("a decision")
}

#[tokio::test]
async fn pods_with_forged_owners_went_unchecked() {
    let server = Running::start(patient()).await;
    let owners = [
        ("batch/v1", "Job"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "DaemonSet"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("kubeflow.org/v2beta1", "MPIJob"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("example.org/v1", "Nothing"),
    ];
    assert!(!is_allowed(&server, &pod("alice@example.org", None)).await);
    for owner in owners {
        for user in [
            "alice@example.org",
            "system:serviceaccount:research:default",
            "system:serviceaccount:research:job-controller",
            "system:serviceaccount:volcano-system:volcano-controllers",
            "system:serviceaccount:argo:argo",
        ] {
            assert!(!is_allowed(&server, &pod(user, Some(owner))).await, "{user} {owner:?}");
        }
    }
    // What Kubernetes itself makes was decided about with its owner.
    for (name, owner) in [
        ("job-controller", owners[0]),
        ("replicaset-controller", owners[1]),
        ("daemon-set-controller", owners[2]),
    ] {
        let user = format!("system:serviceaccount:kube-system:{name}");
        assert!(is_allowed(&server, &pod(&user, Some(owner))).await, "{name}");
        assert!(!is_allowed(&server, &pod(&user, Some(owners[3]))).await, "{name}");
        assert!(!is_allowed(&server, &pod(&user, None)).await, "{name}");
    }
}

#[tokio::test]
async fn pods_of_operators_that_the_site_names_are_not_decided_twice() {
    let user = "system:serviceaccount:volcano-system:volcano-controllers";
    let site = format!("controllers = [\"{user}\"]\n{SITE}");
    let server = Running::with(&site, patient(), Mutation::Off, answer::decide).await;
    let owner = Some(("batch.volcano.sh/v1alpha1", "Job"));
    assert!(is_allowed(&server, &pod(user, owner)).await);
    assert!(!is_allowed(&server, &pod("alice@example.org", owner)).await);
    assert!(!is_allowed(&server, &pod(user, Some(("argoproj.io/v1alpha1", "Workflow")))).await);
}

#[tokio::test]
async fn kinds_that_were_not_asked_about_are_decided() {
    let server = Running::start(patient()).await;
    let template = template(&json!(1), &json!({"xmem.dev/peak-bytes": PEAK}));
    for (version, kind, path) in [
        ("v1", "ReplicationController", "template"),
        ("apps/v1", "ReplicaSet", "template"),
        ("apps/v1", "DaemonSet", "template"),
        ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs.Worker.template"),
        ("kubeflow.org/v1", "JAXJob", "jaxReplicaSpecs.Worker.template"),
        ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs.Worker.template"),
        ("batch.volcano.sh/v1alpha1", "Job", "tasks.0.template"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderWorkerTemplate.workerTemplate"),
    ] {
        assert!(!is_allowed(&server, &workload(version, kind, path, &template)).await, "{kind}");
    }
}

#[tokio::test]
async fn seven_of_ten_spellings_of_a_gpu_counted_as_none() {
    let site = SITE.replace("policy = \"reject\"", "policy = \"reject\"\nfail-closed = true");
    let server = Running::with(&site, patient(), Mutation::Off, answer::decide).await;
    let job = |limit: &Value, annotations: &Value| {
        workload("batch/v1", "Job", "template", &template(limit, annotations))
    };
    for limit in [
        json!(1),
        json!("1"),
        json!("1k"),
        json!("1e0"),
        json!("1E0"),
        json!("1000m"),
        json!("+1"),
        json!("1.0"),
        json!(2.0),
        json!("0.001Ki"),
        // No quantity: an unknown request.
        json!("one"),
        json!("-1"),
        json!("1e"),
        json!(null),
        json!([1]),
    ] {
        assert!(!is_allowed(&server, &job(&limit, &json!({}))).await, "{limit}");
        let annotations = json!({"xmem.dev/peak-bytes": PEAK});
        assert!(!is_allowed(&server, &job(&limit, &annotations)).await, "{limit}");
    }
    for limit in [json!(0), json!("0"), json!("0e9"), json!("-0"), json!("0.0Gi")] {
        assert!(is_allowed(&server, &job(&limit, &json!({}))).await, "{limit}");
    }
}

#[tokio::test]
async fn gpus_of_init_and_sidecar_containers_are_decided_about() {
    let server = Running::start(patient()).await;
    let mut template = template(&json!("0"), &json!({"xmem.dev/peak-bytes": PEAK}));
    template["spec"]["initContainers"] = json!([{
        "name": "side", "restartPolicy": "Always",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }]);
    let review = workload("batch/v1", "Job", "template", &template);
    assert!(!is_allowed(&server, &review).await);
}
