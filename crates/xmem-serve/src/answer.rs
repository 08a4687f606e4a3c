//! From a review to its response.

use crate::review::{Response, Review};
use crate::words;
use serde_json::{Value, json};
use xmem_gate::kubernetes::{TemplateCheck, check_object, find_templates, is_from_decided_owner};
use xmem_gate::{Action, Policy, Site};

/// The annotation that `/mutate` adds: the name of the worst decision about the object's templates.
const DECISION: &str = "xmem.dev/decision";

/// The most warnings of a response. Kubernetes drops what goes beyond 4,096 characters in all.
const MAX_WARNINGS: usize = 10;

/// The decisions about the pods of an object. Empty if there is nothing to decide: the object makes no
/// pods with GPUs, is going away, asks for what it asked for before, or is from an owner about which was decided.
pub(crate) fn decide(review: &Review, site: &Site) -> Vec<TemplateCheck> {
    let of_pods = review.sub_resource.as_deref().unwrap_or_default().is_empty();
    let wanted = matches!(review.operation.as_str(), "CREATE" | "UPDATE");
    if !of_pods || !wanted || is_deleted(&review.object) || is_unchanged(review, site) {
        return Vec::new();
    }
    if is_from_decided_owner(&review.object, &review.user_info.username, site) {
        return Vec::new();
    }
    check_object(&review.object, &review.namespace, site)
}

fn is_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// An update of labels or finalizers is not held up by a decision that came too late.
fn is_unchanged(review: &Review, site: &Site) -> bool {
    let templates = |object| find_templates(object, &|group, kind| site.templates_of(group, kind));
    review.operation == "UPDATE" && templates(&review.object) == templates(&review.old_object)
}

/// What follows from decisions: the strictest action.
pub(crate) fn action(checks: &[TemplateCheck]) -> Action {
    checks.iter().map(|check| check.action).max().unwrap_or(Action::Admit)
}

/// The response of `/validate`.
pub(crate) fn validated(checks: &[TemplateCheck], site: &Site) -> Response {
    let help = site.help.as_deref();
    let of = |wanted| checks.iter().filter(move |check| check.action == wanted);
    let rejected: Vec<&TemplateCheck> = of(Action::Reject).collect();
    let rejection = (!rejected.is_empty()).then(|| words::rejection(&rejected, help));
    let mut warnings: Vec<String> = Vec::new();
    for check in of(Action::Warn) {
        let text = words::warning(&words::decision(check));
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    if let Some(help) = help.filter(|_| !warnings.is_empty() && rejection.is_none()) {
        warnings.push(words::warning(help));
    }
    Response { rejection, warnings, patch: None }
}

/// The response of `/mutate`: a new object is annotated with the worst decision about it. It is never
/// rejected here.
pub(crate) fn mutated(checks: &[TemplateCheck], review: &Review) -> Response {
    let worst = checks.iter().map(|check| check.decision).max();
    let Some(worst) = worst.filter(|_| review.operation == "CREATE") else {
        return Response::default();
    };
    let metadata = review.object.get("metadata");
    let patch = match metadata.map(|metadata| metadata.get("annotations")) {
        None => return Response::default(),
        Some(Some(Value::Object(_))) => {
            // The slash of a key is written ~1 (RFC 6901).
            let path = format!("/metadata/annotations/{}", DECISION.replace('/', "~1"));
            json!([{"op": "add", "path": path, "value": worst.name()}])
        }
        Some(_) => {
            let value = json!({DECISION: worst.name()});
            json!([{"op": "add", "path": "/metadata/annotations", "value": value}])
        }
    };
    Response { patch: Some(patch), ..Response::default() }
}

/// The response after an internal error: the object is let through with a warning, unless its namespace
/// fails closed.
pub(crate) fn internal_error(review: &Review, site: &Site) -> (Action, Response) {
    let text = "xmem: GPU memory not checked: internal error of the gate";
    let rules = site.rules_of_namespace(&review.namespace);
    match rules.policy.unwrap_or_default() {
        Policy::Off => (Action::Admit, Response::default()),
        Policy::Reject if rules.fail_closed == Some(true) => {
            (Action::Reject, Response { rejection: Some(text.to_owned()), ..Response::default() })
        }
        _ => (Action::Warn, Response { warnings: vec![text.to_owned()], ..Response::default() }),
    }
}
