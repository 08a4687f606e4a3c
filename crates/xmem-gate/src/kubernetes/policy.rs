//! A ValidatingAdmissionPolicy for a site: the API server itself compares annotations with the memory of
//! GPUs (Kubernetes, "Validating Admission Policy", 1.30).

use crate::decision::Policy;
use crate::site::{Rules, Site};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use xmem::Device;

/// The policy: expressions in CEL, which the tables of a site are parameters of.
const POLICY: &str = include_str!("policy.yaml");

/// The name of the policy, and the first part of the names of its tables and bindings.
const NAME: &str = "xmem-gpu-memory";

/// The key of requests that name no product.
const ANY: &str = "any";

/// The key that says whether jobs without an annotation are rejected.
const FAIL_CLOSED: &str = "fail-closed";

/// The domain of the resources that the policy knows.
const DOMAIN: &str = "nvidia.com/";

/// The manifests for a site: the policy, and for the site and for each namespace with rules of its own a
/// table of memory and a binding.
///
/// A job is refused if it needs more memory than any GPU has that it may get, as by the webhook; what
/// needs part of the margin is admitted.
#[must_use]
pub fn admission_policy(site: &Site) -> String {
    let mut page = String::from(
        "# Written by `xmem config --format admission-policy` from the site file. Do not edit.\n\
         # In the tables: the memory in bytes that a job may use, without the CUDA context.\n",
    );
    page += POLICY;
    let namespaces: Vec<&str> = site.namespaces.keys().map(String::as_str).collect();
    part(&mut page, NAME, &site.rules, site, &Selected::AllBut(&namespaces));
    for namespace in &namespaces {
        let name = format!("{NAME}-{namespace}");
        let rules = site.rules_of_namespace(namespace);
        part(&mut page, &name, &rules, site, &Selected::One(namespace));
    }
    page
}

/// The namespaces of a binding, of those with the label of the gate.
enum Selected<'a> {
    One(&'a str),
    AllBut(&'a [&'a str]),
}

/// A table and its binding; nothing if the policy is off.
fn part(page: &mut String, name: &str, rules: &Rules, site: &Site, selected: &Selected<'_>) {
    let action = match rules.policy.unwrap_or_default() {
        Policy::Off => return,
        Policy::Warn => "Warn",
        Policy::Reject => "Deny",
    };
    let mut table = String::new();
    for (key, limit) in limits(rules, site) {
        let _ = writeln!(table, "  {key}: \"{limit}\"");
    }
    let closed = action == "Deny" && rules.fail_closed == Some(true);
    let (operator, values) = match selected {
        Selected::One(namespace) => ("In", vec![*namespace]),
        Selected::AllBut(namespaces) => ("NotIn", namespaces.to_vec()),
    };
    let expression = match values.is_empty() {
        true => String::new(),
        false => format!(
            "\n      matchExpressions:\n      - key: kubernetes.io/metadata.name\n        \
             operator: {operator}\n        values: [\"{}\"]",
            values.join("\", \""),
        ),
    };
    let _ = write!(
        page,
        "\
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: xmem-system
  labels:
    app.kubernetes.io/name: xmem
data:
{table}  {FAIL_CLOSED}: \"{closed}\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: xmem
spec:
  policyName: {NAME}
  validationActions: [\"{action}\"]
  paramRef:
    name: {name}
    namespace: xmem-system
    parameterNotFoundAction: Allow
  matchResources:
    namespaceSelector:
      matchLabels:
        xmem.dev/gate: enabled{expression}
"
    );
}

/// The largest memory of a job for each name of a GPU.
fn limits(rules: &Rules, site: &Site) -> BTreeMap<String, u64> {
    let mut limits = BTreeMap::new();
    let mut add = |name: &str, device: &Device| {
        let limit = (device.memory - device.context).get();
        let known: &mut u64 = limits.entry(name.to_owned()).or_default();
        *known = limit.max(*known);
    };
    for gpu in &site.gpus {
        let parts = gpu.resources.iter().filter_map(|name| name.strip_prefix(DOMAIN));
        for name in gpu.products.iter().map(String::as_str).chain(parts) {
            if is_key(name) {
                add(name, &gpu.device);
            }
        }
    }
    let whole: Vec<_> = site.gpus.iter().filter(|gpu| gpu.resources.is_empty()).collect();
    let default = match (rules.gpu.and_then(|index| site.gpus.get(index)), whole.as_slice()) {
        (None, [only]) => Some(*only),
        (named, _) => named,
    };
    if let Some(gpu) = default {
        add(ANY, &gpu.device);
    }
    limits
}

/// Returns whether a table may have this key (Kubernetes API reference, ConfigMap), which all values of
/// labels and names of resources are that exist.
fn is_key(name: &str) -> bool {
    let is_taken = [ANY, FAIL_CLOSED, "gpu"].contains(&name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    !name.is_empty() && !is_taken && name.chars().all(allowed)
}
