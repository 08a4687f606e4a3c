//! The generated ValidatingAdmissionPolicy, evaluated as the API server does it, decides as the webhook.

#![expect(clippy::disallowed_types, reason = "the variables of an evaluation are a HashMap")]

use cel::{Context, Program};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use xmem_gate::kubernetes::{admission_policy, check_object};
use xmem_gate::{Action, Manifest, Site};

const SITE: &str = r#"
policy = "reject"
margin = "5%"

[[gpu]]
device = "t4-16g"
products = ["Tesla-T4", "NVIDIA-Any"]

[[gpu]]
device = "a100-40g"
products = ["NVIDIA-A100-SXM4-40GB", "NVIDIA-Any"]

[[gpu]]
device = "a100-40g-mig-1g.5gb"
resources = ["nvidia.com/mig-1g.5gb"]

[namespace.closed]
fail-closed = true

[namespace.teaching]
gpu = "t4-16g"

[namespace.off]
policy = "off"

[namespace.soft]
policy = "warn"
"#;

/// What a policy does with an object.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Admitted,
    Warned(String),
    Denied(String),
}

/// The documents of a policy, by kind and name.
struct Policy(BTreeMap<(String, String), Value>);

impl Policy {
    fn of(text: &str) -> Self {
        let documents = Manifest::parse(text).expect("YAML").values();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let key = |document: &Value| (text(&document["kind"]), text(&document["metadata"]["name"]));
        Self(documents.into_iter().map(|document| (key(&document), document)).collect())
    }

    fn get(&self, kind: &str, name: &str) -> &Value {
        &self.0[&(kind.to_owned(), name.to_owned())]
    }

    /// The bindings whose selector has a namespace.
    fn bindings(&self, namespace: &str) -> Vec<&Value> {
        let bindings = self.0.iter().filter(|((kind, _), _)| kind.ends_with("Binding"));
        let selected = |binding: &&Value| {
            let selector = &binding["spec"]["matchResources"]["namespaceSelector"];
            selector["matchExpressions"].as_array().into_iter().flatten().all(|expression| {
                assert_eq!(expression["key"], "kubernetes.io/metadata.name");
                let named = expression["values"].as_array().expect("names");
                named.iter().any(|name| name == namespace) == (expression["operator"] == "In")
            })
        };
        bindings.map(|(_, binding)| binding).filter(selected).collect()
    }

    fn answer(&self, object: &Value, namespace: &str) -> Answer {
        self.answer_to("alice", object, namespace)
    }

    /// Conditions, variables and validations in their order (Kubernetes, ValidatingAdmissionPolicySpec).
    fn answer_to(&self, user: &str, object: &Value, namespace: &str) -> Answer {
        let bindings = self.bindings(namespace);
        let [binding] = bindings.as_slice() else {
            assert!(bindings.is_empty(), "{namespace}");
            return Answer::Admitted;
        };
        let policy = self.get("ValidatingAdmissionPolicy", "xmem-gpu-memory");
        let table = binding["spec"]["paramRef"]["name"].as_str().expect("a name");
        let mut context = Context::default();
        context.add_variable("object", object).expect("an object");
        context.add_variable("params", self.get("ConfigMap", table)).expect("a table");
        let request = json!({"userInfo": {"username": user}});
        context.add_variable("request", &request).expect("a request");
        for condition in policy["spec"]["matchConditions"].as_array().expect("conditions") {
            if evaluated(&condition["expression"], &context) == cel::Value::from(false) {
                return Answer::Admitted;
            }
        }
        let mut variables: HashMap<String, cel::Value> = HashMap::new();
        for variable in policy["spec"]["variables"].as_array().expect("variables") {
            context.add_variable_from_value("variables", variables.clone());
            let value = evaluated(&variable["expression"], &context);
            variables.insert(variable["name"].as_str().expect("a name").to_owned(), value);
        }
        context.add_variable_from_value("variables", variables);
        for validation in policy["spec"]["validations"].as_array().expect("validations") {
            if evaluated(&validation["expression"], &context) == cel::Value::from(false) {
                let message = evaluated(&validation["messageExpression"], &context);
                let cel::Value::String(message) = message else { panic!("{message:?}") };
                let message = message.to_string();
                return match &binding["spec"]["validationActions"][0] {
                    action if action == "Deny" => Answer::Denied(message),
                    action if action == "Warn" => Answer::Warned(message),
                    action => panic!("{action}"),
                };
            }
        }
        Answer::Admitted
    }
}

fn evaluated(expression: &Value, context: &Context<'_, '_>) -> cel::Value {
    let expression = expression.as_str().expect("text");
    let program = Program::compile(expression).expect(expression);
    program.execute(context).expect(expression)
}

/// An object of a kind whose pods have these annotations, limits and product.
fn object(kind: &str, annotations: &Value, limits: &Value, product: &str) -> Value {
    let mut spec = json!({"containers": [
        {"name": "side"},
        {"name": "train", "resources": {"limits": limits}},
    ]});
    if !product.is_empty() {
        spec["nodeSelector"] = json!({"nvidia.com/gpu.product": product});
    }
    let pod = json!({"metadata": {"annotations": annotations}, "spec": spec});
    let (version, spec) = match kind {
        "Pod" => {
            return json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"name": "x", "annotations": annotations}, "spec": pod["spec"]});
        }
        "CronJob" => ("batch/v1", json!({"jobTemplate": {"spec": {"template": pod}}})),
        "Job" => ("batch/v1", json!({"template": pod})),
        _ => ("apps/v1", json!({"template": pod})),
    };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn the_policy_decides_as_the_webhook() {
    let site = Site::from_toml(SITE).expect("a site");
    let policy = Policy::of(&admission_policy(&site));
    let kinds = ["Pod", "Job", "CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"];
    let denied: usize = std::thread::scope(|scope| {
        let compared =
            kinds.map(|kind| scope.spawn(|| denied_as_the_webhook(&policy, &site, kind)));
        compared.map(|kind| kind.join().expect("the same")).into_iter().sum()
    });
    assert!(denied > 300, "{denied}");
}

/// Compares the policy with the webhook for objects of a kind; returns how many both deny.
fn denied_as_the_webhook(policy: &Policy, site: &Site, kind: &str) -> usize {
    let mut denied = 0;
    for namespace in ["default", "closed", "teaching", "off", "soft"] {
        for limits in [
            json!({"cpu": "4"}),
            json!({"nvidia.com/gpu": 1}),
            json!({"nvidia.com/gpu": "2", "memory": "64Gi"}),
            json!({"nvidia.com/mig-1g.5gb": 1}),
        ] {
            for product in ["", "Tesla-T4", "NVIDIA-A100-SXM4-40GB", "NVIDIA-Any", "Radeon"] {
                let is_slice = limits.get("nvidia.com/mig-1g.5gb").is_some();
                if is_slice && !product.is_empty() {
                    // By the product of the whole GPU the webhook finds the slice; the policy need not.
                    continue;
                }
                for peak in ["", "4 GiB", "1000", "5000000000", "15000000000", "60000000000"] {
                    let annotations = match peak {
                        "" => json!({}),
                        peak => json!({"xmem.dev/peak-bytes": peak}),
                    };
                    let object = object(kind, &annotations, &limits, product);
                    let answer = policy.answer(&object, namespace);
                    let checks = check_object(&object, namespace, site);
                    let refused = checks.iter().any(|check| check.action == Action::Reject);
                    let case = format!("{kind} {namespace} {limits} {product} {peak}");
                    assert_eq!(matches!(answer, Answer::Denied(_)), refused, "{case}: {answer:?}");
                    denied += usize::from(refused);
                    if let Answer::Warned(_) = answer {
                        assert_eq!(namespace, "soft", "{case}");
                    }
                }
            }
        }
    }
    denied
}

#[test]
fn gpus_of_init_and_sidecar_containers_were_not_seen() {
    let site = Site::from_toml(SITE).expect("a site");
    let policy = Policy::of(&admission_policy(&site));
    let annotations = json!({"xmem.dev/peak-bytes": "60000000000"});
    for kind in ["Pod", "Job", "CronJob"] {
        for limits in [json!({"nvidia.com/gpu": 1}), json!({"nvidia.com/mig-1g.5gb": "1"})] {
            let mut object = object(kind, &annotations, &json!({"cpu": "1"}), "");
            let spec = match kind {
                "Pod" => "/spec",
                "Job" => "/spec/template/spec",
                _ => "/spec/jobTemplate/spec/template/spec",
            };
            let spec = object.pointer_mut(spec).expect("a spec");
            if limits.get("nvidia.com/gpu").is_some() {
                spec["nodeSelector"] = json!({"nvidia.com/gpu.product": "Tesla-T4"});
            }
            spec["initContainers"] = json!([
                {"name": "prepare"},
                {"name": "side", "restartPolicy": "Always", "resources": {"limits": limits}},
            ]);
            let checks = check_object(&object, "default", &site);
            assert!(checks.iter().any(|check| check.action == Action::Reject), "{object}");
            let answer = policy.answer(&object, "default");
            assert!(matches!(answer, Answer::Denied(_)), "{answer:?} {object}");
        }
    }
}

#[test]
fn pods_of_controllers_are_admitted_and_forged_owners_are_not() {
    let policy = Policy::of(&admission_policy(&Site::from_toml(SITE).expect("a site")));
    // The annotation was on the Job itself, whose pods have none.
    let mut pod = object("Pod", &json!({}), &json!({"nvidia.com/gpu": 1}), "Tesla-T4");
    pod["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": true},
    ]);
    let account = "system:serviceaccount:kube-system:job-controller";
    assert_eq!(policy.answer_to(account, &pod, "closed"), Answer::Admitted);
    for user in ["alice", "system:serviceaccount:closed:job-controller"] {
        let answer = policy.answer_to(user, &pod, "closed");
        assert!(matches!(answer, Answer::Denied(_)), "{user}: {answer:?}");
    }
}

#[test]
fn annotations_of_the_object_count_where_the_pods_have_none() {
    let policy = Policy::of(&admission_policy(&Site::from_toml(SITE).expect("a site")));
    let mut job = object("Job", &json!({}), &json!({"nvidia.com/gpu": 1}), "Tesla-T4");
    assert_eq!(policy.answer(&job, "default"), Answer::Admitted);
    job["metadata"]["annotations"] = json!({"xmem.dev/peak-bytes": "16000000000"});
    let message = "xmem: does not fit: needs 15258 MiB of 14740 MiB on Tesla-T4".to_owned();
    assert_eq!(policy.answer(&job, "default"), Answer::Denied(message.clone()));
    assert_eq!(policy.answer(&job, "soft"), Answer::Warned(message));
    let missing = object("Job", &json!({}), &json!({"nvidia.com/gpu": 1}), "Tesla-T4");
    let message = "xmem: GPU memory not checked: no annotation xmem.dev/peak-bytes".to_owned();
    assert_eq!(policy.answer(&missing, "closed"), Answer::Denied(message));
}

#[test]
fn a_site_without_namespaces_and_with_one_gpu_has_one_table() {
    let site = Site::from_toml("[[gpu]]\ndevice = 't4-16g'\nproducts = ['Tesla-T4']\n");
    let policy = Policy::of(&admission_policy(&site.expect("a site")));
    assert_eq!(policy.0.len(), 3);
    let table = policy.get("ConfigMap", "xmem-gpu-memory")["data"].as_object().expect("a table");
    assert_eq!(table["any"], table["Tesla-T4"]);
    assert_eq!(table["fail-closed"], "false");
}
