//! The paths of the server.

use crate::Mutation;
use crate::answer;
use crate::body::BodyError;
use crate::metrics::Refusal;
use crate::review::{Response as Answer, Review};
use crate::state::State;
use crate::tls::Peer;
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::map_response_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use xmem::types::printable;
use xmem_gate::Action;

/// A review's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Validate,
    Mutate,
}

impl Endpoint {
    const fn name(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
        }
    }
}

/// All paths.
pub(crate) fn router(state: Arc<State>) -> Router {
    let mutation = state.mutation;
    let mut router = Router::new()
        .route("/validate", post(|state, request| review(state, Endpoint::Validate, request)))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics));
    if mutation == Mutation::Annotate {
        let mutate = post(|state, request| review(state, Endpoint::Mutate, request));
        router = router.route("/mutate", mutate);
    }
    router.layer(map_response_with_state(Arc::clone(&state), ending)).with_state(state)
}

/// Ends a connection with its answer once the server stops: the client does not use it again. One that was
/// closed without that may be in the middle of a request that is on its way.
async fn ending(Shared(state): Shared<Arc<State>>, response: Response) -> Response {
    match state.is_stopping() {
        true => ([(header::CONNECTION, "close")], response).into_response(),
        false => response,
    }
}

async fn ready(Shared(state): Shared<Arc<State>>) -> Response {
    match state.is_stopping() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
        false => "ok\n".into_response(),
    }
}

async fn metrics(Shared(state): Shared<Arc<State>>) -> Response {
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([kind], state.metrics.page()).into_response()
}

async fn review(
    Shared(state): Shared<Arc<State>>,
    endpoint: Endpoint,
    request: Request,
) -> Response {
    let start = Instant::now();
    let is_waiting = AtomicBool::new(false);
    let limit = state.request_limit(request.uri().query());
    let answered = answered(&state, endpoint, request, &is_waiting);
    let refused = match tokio::time::timeout(limit, answered).await {
        Ok(Ok(body)) => {
            state.metrics.took(start.elapsed());
            return ([(header::CONTENT_TYPE, "application/json")], body).into_response();
        }
        Ok(Err(refused)) => refused,
        // Memory that was never free is told from a body that never ended.
        Err(_) if is_waiting.load(Ordering::Relaxed) => {
            Refused::new(Refusal::Busy, "too many long reviews")
        }
        Err(_) => Refused::new(Refusal::Timeout, "the request took too long"),
    };
    state.metrics.refused(refused.refusal);
    tracing::warn!(endpoint = endpoint.name(), reason = %refused.text, "refused");
    let close = [(header::CONNECTION, "close")];
    (refused.status(), close, refused.text + "\n").into_response()
}

/// A request that gets no review.
struct Refused {
    refusal: Refusal,
    text: String,
}

impl Refused {
    fn new(refusal: Refusal, text: &str) -> Self {
        Self { refusal, text: printable(text).into_owned() }
    }

    /// Any of these is a failure to the API server, which then does what the `failurePolicy` says.
    const fn status(&self) -> StatusCode {
        match self.refusal {
            Refusal::Malformed => StatusCode::BAD_REQUEST,
            Refusal::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Timeout => StatusCode::REQUEST_TIMEOUT,
            Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Unverified => StatusCode::UNAUTHORIZED,
        }
    }
}

async fn answered(
    state: &State,
    endpoint: Endpoint,
    request: Request,
    is_waiting: &AtomicBool,
) -> Result<Vec<u8>, Refused> {
    if request.extensions().get() == Some(&Peer::Unverified) {
        let text = "the client has no certificate of the authority that `--client-ca` names";
        return Err(Refused::new(Refusal::Unverified, text));
    }
    accept_head(state, &request)?;
    let _counted = state.metrics.in_flight.during();
    let read = state.bodies.read(request.into_body(), state.limits.body, is_waiting).await;
    let body = read.map_err(|error| match error {
        BodyError::TooLong => too_large(),
        BodyError::Broken(text) => Refused::new(Refusal::Malformed, &text),
    })?;
    let review = Review::parse(&body.bytes);
    let review = review.map_err(|text| Refused::new(Refusal::Malformed, &text))?;
    Ok(decided(state, endpoint, &review))
}

/// Refuses a request by its head: nothing of a body that is too long is read.
fn accept_head(state: &State, request: &Request) -> Result<(), Refused> {
    let field = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let kind = field(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refused::new(Refusal::ContentType, "the content type is not application/json"));
    }
    let length = field(header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let is_long =
        |length| usize::try_from(length).map_or(true, |length| length > state.limits.body);
    if length.is_some_and(is_long) { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> Refused {
    Refused::new(Refusal::TooLarge, "the body is too long")
}

/// The body of the response. Nothing that happens on the way ends the connection.
fn decided(state: &State, endpoint: Endpoint, review: &Review) -> Vec<u8> {
    let site = state.site();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let checks = (state.decide)(review, &site);
        let response = match endpoint {
            Endpoint::Validate => answer::validated(&checks, &site),
            Endpoint::Mutate => answer::mutated(&checks, review),
        };
        (checks, response)
    }));
    let (action, response) = match outcome {
        Ok((checks, response)) => {
            let action = answer::action(&checks);
            if endpoint == Endpoint::Validate {
                state.metrics.reviewed(action, checks.iter().map(|check| check.decision));
            }
            (action, response)
        }
        Err(_) => {
            state.metrics.internal_errors.add();
            let (action, response) = answer::internal_error(review, &site);
            match endpoint {
                Endpoint::Validate => (action, response),
                Endpoint::Mutate => (Action::Admit, Answer::default()),
            }
        }
    };
    tracing::info!(
        endpoint = endpoint.name(),
        uid = %printable(&review.uid),
        namespace = %printable(&review.namespace),
        group = %printable(&review.kind.group),
        kind = %printable(&review.kind.kind),
        name = %printable(&review.name),
        operation = %printable(&review.operation),
        dry_run = review.dry_run.unwrap_or(false),
        action = action.name(),
        message = response.rejection.as_deref().or(response.warnings.first().map(String::as_str)).unwrap_or("reviewed"),
    );
    response.body(&review.uid)
}
