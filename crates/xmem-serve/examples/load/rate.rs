//! Many reviews.

use crate::client::post;
use crate::clock::Times;
use crate::process::{ServerProcess, own_cpu};
use crate::{Outcome, REVIEWS, is_right, runtime};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep_until;

/// Reviews a second, for this long, on so many connections.
const RATE: u32 = 10_000;
const SECONDS: u32 = 60;
const CONNECTIONS: u32 = 32;

/// Reviews at a fixed rate. A time counts from the moment at which the review was due, so that a late
/// answer makes those behind it late.
pub(crate) fn rate(server: &mut ServerProcess) -> Outcome {
    let requests: Vec<Vec<u8>> = REVIEWS.iter().map(|(body, _)| post("/validate", body)).collect();
    let requests: &'static [Vec<u8>] = requests.leak();
    let (cpu, own) = (server.cpu(), own_cpu());
    let (times, wrong, took) = LocalSet::new().block_on(&runtime(), async {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(server.client().await.expect("connected"));
        }
        let start = tokio::time::Instant::now() + Duration::from_millis(100);
        let tasks = clients.into_iter().zip(0..).map(|(mut client, own)| {
            tokio::task::spawn_local(async move {
                let (mut times, mut wrong) = (Vec::new(), 0_usize);
                for number in (own..RATE * SECONDS).step_by(CONNECTIONS as usize) {
                    let due = start + Duration::from_secs(1) * number / RATE;
                    sleep_until(due).await;
                    let kind = number as usize / CONNECTIONS as usize % REVIEWS.len();
                    let answer = client.ask(&requests[kind]).await;
                    times.push(due.elapsed());
                    wrong += usize::from(!is_right(&answer, REVIEWS[kind].1));
                }
                (times, wrong)
            })
        });
        let (mut times, mut wrong) = (Times::default(), 0);
        for task in tasks.collect::<Vec<_>>() {
            let (own, failed) = task.await.expect("no panic");
            times.0.extend(own);
            wrong += failed;
        }
        (times, wrong, start.elapsed())
    });
    let seconds = took.as_secs_f64();
    let count = times.0.len();
    println!("  {count} reviews in {seconds:.1} s: {:.0} a second", count as f64 / seconds);
    println!("  {}, from when each was due", times.shown());
    println!(
        "  cores: server {:.2}, generator {:.2}; memory of the server at most {:.1} MiB",
        (server.cpu() - cpu) / seconds,
        (own_cpu() - own) / seconds,
        server.memory().1,
    );
    if wrong > 0 { Err(format!("{wrong} wrong answers")) } else { Ok(()) }
}

/// Reviews of a day at ten a second.
const DAY: usize = 24 * 3600 * 10;

/// Reviews on a connection, after which a new one is made.
const PER_CONNECTION: usize = 500;

/// Memory that may come on top after the first tenth of the day, in MiB.
const GROWTH: f64 = 4.0;

/// A day of reviews, one after the other on four connections that are made anew from time to time.
pub(crate) fn day(server: &mut ServerProcess) -> Outcome {
    const CLIENTS: usize = 4;
    let start = Instant::now();
    let mut after_a_tenth = 0.0;
    let mut wrong = 0;
    println!("  {DAY} reviews; memory of the server in MiB after each tenth:");
    print!(" ");
    let runtime = runtime();
    for tenth in 1..=10 {
        let server = &*server;
        let ask = async |wrong: &mut usize| {
            for block in 0..DAY / 10 / CLIENTS / PER_CONNECTION {
                let mut client = server.client().await.expect("connected");
                for number in 0..PER_CONNECTION {
                    let (body, allowed) = REVIEWS[(block + number) % REVIEWS.len()];
                    let answer = client.ask(&post("/validate", body)).await;
                    *wrong += usize::from(!is_right(&answer, allowed));
                }
            }
        };
        let mut counts = [0; CLIENTS];
        let [a, b, c, d] = &mut counts;
        runtime.block_on(async { tokio::join!(ask(a), ask(b), ask(c), ask(d)) });
        wrong += counts.iter().sum::<usize>();
        let (now, _) = server.memory();
        print!(" {now:.1}");
        if tenth == 1 {
            after_a_tenth = now;
        }
    }
    println!("\n  in {:.0?}", start.elapsed());
    let growth = server.memory().0 - after_a_tenth;
    match (wrong, growth) {
        (0, growth) if growth <= GROWTH => Ok(()),
        (0, growth) => Err(format!("the server grew by {growth:.1} MiB after the first tenth")),
        (wrong, _) => Err(format!("{wrong} wrong answers")),
    }
}
