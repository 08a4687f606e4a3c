//! Requests that are no reviews, too long, too slow or too many; and the end of the server.

use super::client::{Client, post, roots};
use super::reviews::recorded;
use super::{Running, connect, patient, until};
use crate::Limits;
use std::time::Duration;

fn head(more: &str) -> Vec<u8> {
    format!("POST /validate HTTP/1.1\r\nhost: x\r\n{more}\r\n").into_bytes()
}

#[tokio::test]
async fn what_is_no_review_is_refused() {
    let server = Running::start(patient()).await;
    let json = "content-type: application/json\r\n";
    let body = |kind: &str, text: &str| {
        let mut request =
            head(&format!("content-type: {kind}\r\ncontent-length: {}\r\n", text.len()));
        request.extend_from_slice(text.as_bytes());
        request
    };
    let review = recorded("job-create");
    for (request, status) in [
        (body("application/json", review), 200),
        (body("application/json; charset=utf-8", review), 200),
        (body("text/plain", review), 415),
        (body("application/x-www-form-urlencoded", review), 415),
        (head("content-length: 0\r\n"), 415),
        (body("application/json", ""), 400),
        (body("application/json", "{\"kind\": \"AdmissionReview\""), 400),
        (body("application/json", "null"), 400),
        (body("application/json", &review[..review.len() / 2]), 400),
        (
            body("application/json", &review.replace("admission.k8s.io/v1", "admission.k8s.io/v2")),
            400,
        ),
        (body("application/json", &"[".repeat(100_000)), 400),
        (head(&format!("{json}content-length: x\r\n")), 400),
        (b"GET /validate HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 405),
        (b"GET /else HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 404),
        (post("/mutate", review), 404),
        (b"nonsense\r\n\r\n".to_vec(), 400),
    ] {
        let (found, text) = server.client().await.ask(&request).await;
        assert_eq!(
            found,
            status,
            "{}: {text}",
            String::from_utf8_lossy(&request[..80.min(request.len())])
        );
        assert!(text.len() < 2000 || status == 200);
    }
    // The server goes on.
    assert_eq!(server.review(review).await.0, 200);
}

#[tokio::test]
async fn a_body_of_100_mb_is_not_read() {
    let server = Running::start(patient()).await;
    let json = "content-type: application/json\r\n";
    let (status, _) =
        server.client().await.ask(&head(&format!("{json}content-length: 100000000\r\n"))).await;
    assert_eq!(status, 413);
    // Without a length: the limit ends it long before.
    let mut client = server.client().await;
    client.send(&head(&format!("{json}transfer-encoding: chunked\r\n"))).await.expect("sent");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let mut sent = 0;
    while sent < 100 && client.send(chunk.as_bytes()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "the server read {sent} MiB");
    assert!(server.counts("xmem_refused_requests_total{reason=\"too_large\"} 2"));
    assert_eq!(server.review(recorded("job-create")).await.0, 200);
}

#[tokio::test]
async fn slow_heads_and_bodies_are_cut_off() {
    let limits = Limits {
        head: Duration::from_millis(200),
        request: Some(Duration::from_millis(200)),
        handshake: Duration::from_millis(200),
        ..patient()
    };
    let server = Running::start(limits).await;
    // A head that never ends, a byte at a time.
    let mut slow = server.client().await;
    let mut sent = 0;
    while slow.send(b"G").await.is_ok() && sent < 10_000 {
        sent += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(sent < 10_000);
    // A body that never ends.
    let mut slow = server.client().await;
    let request = post("/validate", recorded("job-create"));
    slow.send(&request[..request.len() - 10]).await.expect("sent");
    assert_eq!(slow.answer().await.map(|(status, _)| status), Some(408));
    // A connection that says nothing.
    let idle = tokio::net::TcpStream::connect(server.address).await.expect("connected");
    until(async || server.counts("xmem_tls_handshake_failures_total 1")).await;
    drop(idle);
    assert!(server.counts("xmem_refused_requests_total{reason=\"timeout\"} 1"));
}

#[tokio::test]
async fn reviews_wait_for_their_turn() {
    let limits = Limits { reviews: 1, request: Some(Duration::from_millis(300)), ..patient() };
    let server = Running::start(limits).await;
    let turn = server.state.permits.acquire().await.expect("open");
    let (status, text) = server.review(recorded("job-create")).await;
    assert_eq!((status, text.as_str()), (503, "too many reviews\n"));
    drop(turn);
    assert_eq!(server.review(recorded("job-create")).await.0, 200);
    assert!(server.counts("xmem_refused_requests_total{reason=\"busy\"} 1"));
    // Probes need no turn.
    let _turn = server.state.permits.acquire().await.expect("open");
    assert_eq!(server.get("/healthz").await, (200, "ok\n".to_owned()));
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = Running::start(Limits { connections: 1, ..patient() }).await;
    let first = server.client().await;
    let trusted = [&server.identity];
    let second = connect(server.address, &trusted);
    let mut second = Box::pin(second);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut second).await;
    assert!(early.is_err());
    drop(first);
    assert_eq!(second.await.ask(&post("/validate", recorded("job-create"))).await.0, 200);
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered_before_the_end() {
    let mut server = Running::start(patient()).await;
    let request = post("/validate", recorded("job-create"));
    let mut client = server.client().await;
    client.send(&request[..request.len() / 2]).await.expect("sent");
    until(async || server.counts("xmem_reviews_in_flight 1")).await;
    let mut idle = server.client().await;
    assert_eq!(idle.ask(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.0, 200);
    server.stop();
    // Idle connections are closed, new ones are not accepted.
    assert_eq!(idle.answer().await, None);
    until(async || Client::with_roots(server.address, roots(&[&server.identity])).await.is_err())
        .await;
    assert!(server.state.is_stopping());
    client.send(&request[request.len() / 2..]).await.expect("sent");
    let (status, body) = client.answer().await.expect("an answer");
    assert_eq!(status, 200);
    assert!(body.contains("\"allowed\":false"), "{body}");
    server.ended().await;
}

#[tokio::test]
async fn requests_that_do_not_end_are_given_up_after_the_grace() {
    let limits = Limits { grace: Duration::from_millis(100), ..patient() };
    let mut server = Running::start(limits).await;
    let request = post("/validate", recorded("job-create"));
    let mut client = server.client().await;
    client.send(&request[..request.len() / 2]).await.expect("sent");
    until(async || server.counts("xmem_reviews_in_flight 1")).await;
    server.stop();
    server.ended().await;
}
