//! AdmissionReview of admission.k8s.io/v1: a request in, a response out (Kubernetes API reference,
//! "Dynamic Admission Control").

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that is spoken.
const VERSION: &str = "admission.k8s.io/v1";

/// The kind of requests and responses.
const KIND: &str = "AdmissionReview";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewDto {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Review>,
}

/// A request to review an object, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Review {
    /// The identity of the request, which the response repeats.
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) kind: ObjectKind,
    #[serde(default)]
    pub(crate) sub_resource: Option<String>,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    /// The object; `null` if it is deleted.
    #[serde(default)]
    pub(crate) object: Value,
    /// The object before an update.
    #[serde(default)]
    pub(crate) old_object: Value,
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
}

/// The kind of an object.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ObjectKind {
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) kind: String,
}

/// Who a request is from, as the API server has authenticated.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct UserInfo {
    #[serde(default)]
    pub(crate) username: String,
}

impl Review {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// If it is not a review of this version, with a sentence that says so.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, String> {
        let dto: ReviewDto = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not an {KIND}: {error}"))?;
        if dto.api_version != VERSION || dto.kind != KIND {
            return Err(format!("the body is not an {KIND} of {VERSION}"));
        }
        let review = dto.request.ok_or_else(|| format!("the {KIND} has no request"))?;
        if review.uid.is_empty() {
            return Err("the request has no uid".to_owned());
        }
        Ok(review)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseReviewDto<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: ResponseDto<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseDto<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusDto<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

#[derive(Serialize)]
struct StatusDto<'a> {
    code: u16,
    reason: &'static str,
    message: &'a str,
}

/// A response to a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// Why the object is rejected, if it is.
    pub(crate) rejection: Option<String>,
    /// Lines for the user.
    pub(crate) warnings: Vec<String>,
    /// A JSON Patch (RFC 6902).
    pub(crate) patch: Option<Value>,
}

impl Response {
    /// The body of the response to the request `uid`.
    pub(crate) fn body(&self, uid: &str) -> Vec<u8> {
        let status = self.rejection.as_deref();
        let encode =
            |patch: &Value| base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        let dto = ResponseReviewDto {
            api_version: VERSION,
            kind: KIND,
            response: ResponseDto {
                uid,
                allowed: status.is_none(),
                status: status.map(|message| StatusDto { code: 403, reason: "Forbidden", message }),
                warnings: &self.warnings,
                patch_type: self.patch.as_ref().map(|_| "JSONPatch"),
                patch: self.patch.as_ref().map(encode),
            },
        };
        serde_json::to_vec(&dto).expect("text and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_reviews_of_the_version_are_read() {
        let review = |version: &str, kind: &str, request: Value| {
            json!({"apiVersion": version, "kind": kind, "request": request}).to_string()
        };
        let request = json!({"uid": "1", "dryRun": null, "options": {"kind": "CreateOptions"}});
        assert!(Review::parse(review(VERSION, KIND, request.clone()).as_bytes()).is_ok());
        for (body, error) in [
            (String::new(), "the body is not an AdmissionReview: EOF"),
            ("{".to_owned(), "the body is not an AdmissionReview: EOF"),
            ("[]".to_owned(), "the body is not an AdmissionReview"),
            (review("admission.k8s.io/v1beta1", KIND, request.clone()), "of admission.k8s.io/v1"),
            (review(VERSION, "Pod", request), "of admission.k8s.io/v1"),
            (review(VERSION, KIND, Value::Null), "has no request"),
            (review(VERSION, KIND, json!({"uid": ""})), "has no uid"),
            (review(VERSION, KIND, json!({})), "missing field `uid`"),
            (
                format!("{}{}", "[".repeat(200), "]".repeat(200)),
                "the body is not an AdmissionReview",
            ),
        ] {
            let found = Review::parse(body.as_bytes()).expect_err(error);
            assert!(found.contains(error), "{found}");
        }
    }
}
