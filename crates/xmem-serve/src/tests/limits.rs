//! Requests that are no reviews, too long, too slow or too many; and the end of the server.

use super::client::{Client, post, roots};
use super::reviews::recorded;
use super::{Running, patient, until};
use crate::Limits;
use std::sync::atomic::AtomicBool;
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
async fn idle_connections_were_ended_while_the_api_server_kept_them() {
    let short = Duration::from_millis(200);
    let server = Running::start(Limits { head: short, ..patient() }).await;
    let mut client = server.client().await;
    for _ in 0..2 {
        assert_eq!(client.ask(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.0, 200);
        tokio::time::sleep(3 * short).await;
    }
    assert_eq!(client.ask(&post("/validate", recorded("job-create"))).await.0, 200);
    // Not for ever.
    let server = Running::start(Limits { idle: short, ..patient() }).await;
    let mut client = server.client().await;
    assert_eq!(client.ask(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.0, 200);
    assert_eq!(client.answer().await, None);
}

#[tokio::test]
async fn ninety_connections_that_announce_20_mb_and_send_a_byte_stalled_reviews() {
    let server = Running::start(Limits { request: None, ..patient() }).await;
    let head = head(&format!("content-type: application/json\r\ncontent-length: {}\r\n", 20 << 20));
    let mut slow = Vec::new();
    for _ in 0..90 {
        let mut client = server.client().await;
        client.send(&head).await.expect("sent");
        client.send(b"{").await.expect("sent");
        slow.push(client);
    }
    until(async || !server.counts("xmem_reviews_in_flight 0")).await;
    let (status, body) = server.review(recorded("job-create")).await;
    assert_eq!(status, 200, "{body}");
    // The same without an announced length.
    let mut client = server.client().await;
    client
        .send(&self::head("content-type: application/json\r\ntransfer-encoding: chunked\r\n"))
        .await
        .expect("sent");
    client.send(b"1\r\n{\r\n").await.expect("sent");
    assert_eq!(server.review(recorded("job-create")).await.0, 200);
    // They get their answer before the API server gives up.
    for mut client in slow {
        assert_eq!(client.answer().await.map(|(status, _)| status), Some(408));
    }
}

#[tokio::test]
async fn long_bodies_wait_for_memory_and_short_ones_do_not() {
    let limits = Limits { bodies: 1 << 20, request: Some(Duration::from_millis(500)), ..patient() };
    let server = Running::start(limits).await;
    let review = recorded("job-create");
    let long = |length: usize| format!("{review}{}", " ".repeat(length - review.len()));
    // One that fills the memory, and one that goes beyond it.
    let fill = axum::body::Body::from(long((1 << 20) + (64 << 10)));
    let waits = AtomicBool::new(false);
    let held = server.state.bodies.read(fill, 20 << 20, &waits).await;
    let beyond = axum::body::Body::from(long(20 << 20));
    let last = server.state.bodies.read(beyond, 20 << 20, &waits).await;
    assert!(held.is_ok() && last.is_ok());
    let (status, text) = server.review(&long(70 << 10)).await;
    assert_eq!((status, text.as_str()), (503, "too many long reviews\n"));
    assert!(server.counts("xmem_refused_requests_total{reason=\"busy\"} 1"));
    assert_eq!(server.review(&long(60 << 10)).await.0, 200);
    assert_eq!(server.get("/healthz").await, (200, "ok\n".to_owned()));
    drop((held, last));
    assert_eq!(server.review(&long(70 << 10)).await.0, 200);
}

#[tokio::test]
async fn an_update_of_the_largest_object_is_reviewed() {
    let server = Running::start(patient()).await;
    // As the API server writes `<`. Of such an object, 1.5 MiB are stored.
    let long = format!("\"annotations\": {{\"x\": \"{}\",", "\\u003c".repeat(3 << 19));
    let long = recorded("job-update-of-labels").replace("\"annotations\": {", &long);
    assert!(long.len() > 18 << 20, "both objects have annotations");
    let (status, text) = server.review(&long).await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = Running::start(Limits { connections: 1, ..patient() }).await;
    let mut first = server.client().await;
    assert_eq!(first.ask(&post("/validate", recorded("job-create"))).await.0, 200);
    let mut second = server.client().await;
    second.send(&post("/validate", recorded("job-create"))).await.expect("sent");
    let early = tokio::time::timeout(Duration::from_millis(100), second.answer()).await;
    assert!(early.is_err());
    drop(first);
    assert_eq!(second.ask(&[]).await.0, 200);
}

#[tokio::test]
async fn connections_that_say_nothing_give_way_to_new_ones() {
    let server = Running::start(Limits { unverified: 4, ..patient() }).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(tokio::net::TcpStream::connect(server.address).await.expect("connected"));
    }
    until(async || server.counts("xmem_unverified_connections_ended_total 46")).await;
    assert_eq!(server.review(recorded("job-create")).await.0, 200);
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
async fn a_request_on_an_open_connection_is_answered_after_the_signal() {
    let mut server = Running::start(Limits { drain: Duration::from_secs(600), ..patient() }).await;
    let request = post("/validate", recorded("job-create"));
    let mut client = server.client().await;
    assert_eq!(client.ask(&request).await.0, 200);
    server.stop();
    until(async || server.state.is_stopping()).await;
    // It is the last on this connection, and on any other.
    assert_eq!(client.ask(&request).await.0, 200);
    assert_eq!(client.answer().await, None);
    let mut client = server.client().await;
    assert_eq!(client.ask(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.0, 503);
    assert_eq!(client.answer().await, None);
}

#[tokio::test]
async fn a_connection_made_after_the_signal_is_not_closed_before_its_request() {
    let limits = Limits { drain: Duration::from_secs(2), ..patient() };
    let mut server = Running::start(limits).await;
    let mut open = server.client().await;
    assert_eq!(open.ask(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.0, 200);
    server.stop();
    until(async || server.state.is_stopping()).await;
    let mut client = server.client().await;
    let trusted = [&server.identity];
    until(async || Client::with_roots(server.address, roots(&trusted)).await.is_err()).await;
    assert_eq!(client.ask(&post("/validate", recorded("job-create"))).await.0, 200);
    assert_eq!(client.answer().await, None);
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
