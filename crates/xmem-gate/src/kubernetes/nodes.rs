//! The nodes that a pod may run on, as far as labels of GPU feature discovery say which GPU they have.

use serde_json::Value;
use xmem::{Bytes, Device};

/// The label with the name of the GPU (NVIDIA, GPU feature discovery, "Generated labels").
const PRODUCT: &str = "nvidia.com/gpu.product";

/// The label with its memory in MiB (the same).
const MEMORY: &str = "nvidia.com/gpu.memory";

/// One alternative of the nodes that a pod may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTerm {
    /// The GPU has one of these names; none if any will do.
    pub products: Option<Vec<String>>,
    /// The GPU has none of these names.
    pub excluded: Vec<String>,
    /// The GPU has more memory than this.
    pub above: Option<Bytes>,
    /// The GPU has less memory than this.
    pub below: Option<Bytes>,
    /// The GPU has one of these sizes of memory.
    pub among: Option<Vec<Bytes>>,
}

impl NodeTerm {
    /// The alternatives of a pod: its selector, and with it each of the terms that its affinity requires
    /// (Kubernetes, PodSpec: terms are alternatives, their expressions hold together). At least one.
    #[must_use]
    pub fn of_pod(spec: &Value) -> Vec<Self> {
        let mut selector = Self::default();
        for (key, value) in
            spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten()
        {
            selector.require(key, "In", &[text(value)]);
        }
        let terms = spec
            .pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")
            .and_then(|required| required.get("nodeSelectorTerms"))
            .and_then(Value::as_array);
        let terms: Vec<Self> =
            terms.into_iter().flatten().map(|term| selector.clone().and(term)).collect();
        if terms.is_empty() { vec![selector] } else { terms }
    }

    fn and(mut self, term: &Value) -> Self {
        let expressions = term.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let field = |name| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let values = expression.get("values").and_then(Value::as_array);
            let values: Vec<String> = values.into_iter().flatten().map(text).collect();
            self.require(field("key"), field("operator"), &values);
        }
        self
    }

    /// Adds a requirement (Kubernetes, NodeSelectorRequirement). What says nothing about the GPU is left
    /// out.
    fn require(&mut self, key: &str, operator: &str, values: &[String]) {
        let sizes = || values.iter().filter_map(|value| mebibytes(value));
        match (key, operator) {
            (PRODUCT, "In") => {
                let known = self.products.take();
                let both = |name: &&String| known.as_ref().is_none_or(|all| all.contains(name));
                self.products = Some(values.iter().filter(both).cloned().collect());
            }
            (PRODUCT, "NotIn") => self.excluded.extend_from_slice(values),
            (MEMORY, "In") => self.among = Some(sizes().collect()),
            (MEMORY, "Gt") => self.above = self.above.max(sizes().next()),
            (MEMORY, "Lt") => {
                let limit = sizes().next();
                self.below = match (self.below, limit) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            _ => {}
        }
    }

    /// Returns whether the term says something about memory.
    pub(super) fn restricts_memory(&self) -> bool {
        self.above.is_some() || self.below.is_some() || self.among.is_some()
    }

    /// Returns whether nodes with a device may match, apart from [`Self::products`]. The label has the
    /// driver's figure, which lies between what a process can see and what the name of the device says.
    pub(super) fn allows(&self, device: &Device) -> bool {
        let (low, high) = (device.memory, device.nominal_memory());
        let is_excluded = |name: &String| {
            xmem::devices::find_all(unshared(name)).iter().any(|d| d.name == device.name)
        };
        self.above.is_none_or(|limit| high > limit)
            && self.below.is_none_or(|limit| low < limit)
            && self
                .among
                .as_ref()
                .is_none_or(|all| all.iter().any(|size| (low..=high).contains(size)))
            && !self.excluded.iter().any(is_excluded)
    }
}

/// The name of a GPU without the suffix of time slicing (NVIDIA, k8s-device-plugin, "Shared access to
/// GPUs").
pub(super) fn unshared(product: &str) -> &str {
    product.strip_suffix("-SHARED").unwrap_or(product)
}

fn mebibytes(text: &str) -> Option<Bytes> {
    text.trim().parse().ok().filter(|size| *size < 1 << 30).map(Bytes::mib)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"key": key, "operator": operator, "values": values})
    }

    fn allowed(spec: &Value) -> Vec<String> {
        let terms = NodeTerm::of_pod(spec);
        ["t4-16g", "a100-40g", "a100-80g"]
            .iter()
            .filter(|name| {
                let device = xmem::find(name).expect("device");
                terms.iter().any(|term| {
                    let named = term.products.as_ref().is_none_or(|all| {
                        all.iter().any(|p| xmem::find(p).is_ok_and(|found| found.name == **name))
                    });
                    named && term.allows(device)
                })
            })
            .map(|name| (*name).to_owned())
            .collect()
    }

    fn required(terms: &[Vec<Value>]) -> Value {
        let terms: Vec<Value> = terms.iter().map(|all| json!({"matchExpressions": all})).collect();
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference":
                {"matchExpressions": [expression(PRODUCT, "In", &["Tesla-T4"])]}}],
        }}})
    }

    #[test]
    fn selectors_and_affinities_restrict_the_gpu() {
        let all = ["t4-16g", "a100-40g", "a100-80g"];
        let a100 = expression(PRODUCT, "In", &["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"]);
        for (spec, expected) in [
            (json!({}), &all[..]),
            (json!({"nodeSelector": {"disk": "ssd"}}), &all),
            (json!({"nodeSelector": {PRODUCT: "Tesla-T4"}}), &["t4-16g"]),
            // The label of an A100 with 40 GB is 40960, of which a process sees 40337 MiB.
            (json!({"nodeSelector": {MEMORY: "40960"}}), &["a100-40g"]),
            (json!({"nodeSelector": {MEMORY: 40960}}), &["a100-40g"]),
            (required(&[vec![expression(MEMORY, "Gt", &["40000"])]]), &["a100-40g", "a100-80g"]),
            (required(&[vec![expression(MEMORY, "Gt", &["40960"])]]), &["a100-80g"]),
            (required(&[vec![expression(MEMORY, "Lt", &["40961"])]]), &["t4-16g", "a100-40g"]),
            (
                required(&[vec![
                    expression(MEMORY, "Gt", &["20000"]),
                    expression(MEMORY, "Lt", &["50000"]),
                ]]),
                &["a100-40g"],
            ),
            (required(&[vec![a100.clone()]]), &["a100-40g", "a100-80g"]),
            (
                required(&[vec![
                    a100.clone(),
                    expression(PRODUCT, "NotIn", &["NVIDIA-A100-SXM4-40GB"]),
                ]]),
                &["a100-80g"],
            ),
            (
                required(&[
                    vec![expression(PRODUCT, "In", &["Tesla-T4"])],
                    vec![expression(MEMORY, "Gt", &["50000"])],
                ]),
                &["t4-16g", "a100-80g"],
            ),
            (
                required(&[vec![a100, expression(PRODUCT, "In", &["NVIDIA-A100-SXM4-40GB"])]]),
                &["a100-40g"],
            ),
            // A number that cannot be read restricts nothing.
            (required(&[vec![expression(MEMORY, "Gt", &["much"])]]), &all),
        ] {
            assert_eq!(allowed(&spec), expected, "{spec}");
        }
    }
}
