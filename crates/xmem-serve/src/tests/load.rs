//! A measurement, not a test: reviews a second, and their latency on the loopback.

use super::client::post;
use super::reviews::recorded;
use super::{Running, patient};
use std::time::{Duration, Instant};

/// Connections that ask one review after the other.
const CONNECTIONS: usize = 16;

/// Reviews on each.
const REVIEWS: usize = 2000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p xmem-serve -- --ignored --nocapture load"]
#[expect(clippy::print_stderr, reason = "shows the figures")]
async fn load() {
    let server = Running::start(patient()).await;
    let request = post("/validate", recorded("job-create"));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(server.client().await);
    }
    let start = Instant::now();
    let tasks = clients.into_iter().map(|mut client| {
        let request = request.clone();
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(REVIEWS);
            for _ in 0..REVIEWS {
                let begin = Instant::now();
                assert_eq!(client.ask(&request).await.0, 200);
                times.push(begin.elapsed());
            }
            times
        })
    });
    let mut times: Vec<Duration> = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await.expect("no panic"));
    }
    let took = start.elapsed();
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    eprintln!(
        "{} reviews of {} bytes in {took:.2?}: {:.0} a second; median {:.2?}, p99 {:.2?}, longest {:.2?}",
        times.len(),
        request.len(),
        times.len() as f64 / took.as_secs_f64(),
        at(500),
        at(990),
        at(1000),
    );
}
