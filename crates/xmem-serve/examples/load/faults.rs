//! What goes wrong around a server, while reviews are asked.

use crate::client::{Client, Identity, post};
use crate::clock::Times;
use crate::process::ServerProcess;
use crate::{Outcome, REVIEWS, is_right, runtime};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// What clients saw.
#[derive(Debug, Default)]
struct Seen {
    answered: Cell<usize>,
    wrong: Cell<usize>,
    failed: Cell<usize>,
    certificates: RefCell<BTreeSet<Vec<u8>>>,
    times: RefCell<Vec<Duration>>,
}

fn count(number: &Cell<usize>) {
    number.set(number.get() + 1);
}

impl Seen {
    /// Asks until `done`, on a new connection for every `per_connection` reviews.
    async fn ask(
        &self,
        server: &RefCell<&mut ServerProcess>,
        per_connection: usize,
        done: &Cell<bool>,
    ) {
        let mut client: Option<(Client, usize)> = None;
        for number in 0.. {
            if done.get() {
                return;
            }
            sleep(Duration::from_millis(4)).await;
            let (body, allowed) = REVIEWS[number % REVIEWS.len()];
            let start = Instant::now();
            let (mut open, asked) = match client.take().filter(|(_, asked)| *asked < per_connection)
            {
                Some(open) => open,
                None => {
                    // The connection is not made while the server is being replaced.
                    let connecting = {
                        let server = server.borrow();
                        connect(&server)
                    };
                    match connecting.await {
                        Ok(client) => {
                            let certificate = client.certificate().to_vec();
                            self.certificates.borrow_mut().insert(certificate);
                            (client, 0)
                        }
                        Err(_) => {
                            count(&self.failed);
                            continue;
                        }
                    }
                }
            };
            let sent = open.send(&post("/validate", body)).await.is_ok();
            let answer = if sent { open.answer().await } else { None };
            match answer {
                Some(answer) => {
                    count(&self.answered);
                    if !is_right(&answer, allowed) {
                        count(&self.wrong);
                    }
                    self.times.borrow_mut().push(start.elapsed());
                    client = Some((open, asked + 1));
                }
                None => count(&self.failed),
            }
        }
    }

    fn shown(&self) {
        println!(
            "  {} answered, {} without an answer, {} wrong; {}",
            self.answered.get(),
            self.failed.get(),
            self.wrong.get(),
            Times(self.times.take()).shown(),
        );
    }
}

fn connect(server: &ServerProcess) -> impl Future<Output = std::io::Result<Client>> + use<> {
    let (address, roots) = server.whom_to_trust();
    async move { Client::with_roots(address, roots).await }
}

/// SIGKILL and a restart a fifth of a second later, ten times under load. What gets no answer is admitted
/// by `failurePolicy: Ignore`, and refused by `Fail`.
pub(crate) fn restart(server: &mut ServerProcess) -> Outcome {
    const KILLS: u32 = 10;
    let (seen, done) = (Seen::default(), Cell::new(false));
    let server = RefCell::new(server);
    let mut starts = Vec::new();
    runtime().block_on(async {
        let load = async || seen.ask(&server, usize::MAX, &done).await;
        let faults = async {
            for _ in 0..KILLS {
                sleep(Duration::from_secs(2)).await;
                server.borrow_mut().kill();
                sleep(Duration::from_millis(200)).await;
                starts.push(server.borrow_mut().restart());
            }
            sleep(Duration::from_secs(2)).await;
            done.set(true);
        };
        tokio::join!(load(), load(), load(), load(), faults);
    });
    seen.shown();
    let slowest = starts.iter().max().expect("restarts");
    println!("  {KILLS} kills; the server listens {slowest:.0?} after its start at the latest");
    match seen.wrong.get() {
        0 => Ok(()),
        wrong => Err(format!("{wrong} wrong answers")),
    }
}

/// Certificates that change while connections come and go; none may fail.
pub(crate) fn rotation(server: &mut ServerProcess) -> Outcome {
    const ROTATIONS: usize = 8;
    server.identities.extend((0..ROTATIONS).map(|_| Identity::new()));
    let (seen, done) = (Seen::default(), Cell::new(false));
    let server = RefCell::new(server);
    runtime().block_on(async {
        let load = async || seen.ask(&server, 10, &done).await;
        let faults = async {
            for version in 1..=ROTATIONS {
                server.borrow().rotate(version);
                // Longer than the time between two looks at the files.
                sleep(Duration::from_secs(6)).await;
            }
            done.set(true);
        };
        tokio::join!(load(), load(), load(), load(), faults);
    });
    seen.shown();
    let certificates = seen.certificates.borrow().len();
    println!("  {ROTATIONS} new certificates, {certificates} seen with the first");
    match (seen.wrong.get() + seen.failed.get(), certificates) {
        (0, seen) if seen == ROTATIONS + 1 => Ok(()),
        (0, seen) => Err(format!("{seen} certificates instead of {}", ROTATIONS + 1)),
        (wrong, _) => Err(format!("{wrong} reviews without the right answer")),
    }
}

/// Connections that write a byte a second, as many as there may be and more, and bodies of 100 MB.
pub(crate) fn hostile(server: &mut ServerProcess) -> Outcome {
    const SLOW: usize = 400;
    const MANY: usize = 700;
    let server = RefCell::new(server);
    let (before, _) = server.borrow().memory();
    for count in [SLOW, MANY] {
        let (seen, done) = (Seen::default(), Cell::new(false));
        let closed = runtime().block_on(async {
            let mut slow = Vec::new();
            for _ in 0..count {
                let connecting = connect(&server.borrow());
                slow.push(tokio::spawn(async move { trickle(connecting).await }));
            }
            let stop = async {
                let mut closed = 0;
                for slow in slow {
                    closed += usize::from(slow.await.expect("no panic"));
                }
                done.set(true);
                closed
            };
            let (closed, ()) = tokio::join!(stop, seen.ask(&server, 1, &done));
            closed
        });
        println!(
            "  {count} connections of a byte a second, {closed} closed by the server; beside them"
        );
        seen.shown();
        if seen.wrong.get() > 0 || closed < count {
            return Err("a slow connection stayed open, or a review beside it failed".to_owned());
        }
    }
    let statuses = runtime().block_on(async {
        let mut statuses = Vec::new();
        for chunked in [false, true].repeat(10) {
            let connecting = connect(&server.borrow());
            statuses.push(long_body(connecting.await.expect("connected"), chunked).await);
        }
        statuses
    });
    let refused = statuses.iter().filter(|status| matches!(status, None | Some(413))).count();
    let (now, most) = server.borrow().memory();
    println!("  20 bodies of 100 MB: {refused} refused");
    println!(
        "  memory of the server in MiB: {before:.1} before, {now:.1} after, {most:.1} at most"
    );
    if refused < statuses.len() {
        return Err(format!("{statuses:?}"));
    }
    Ok(())
}

/// Writes the head of a request, a byte a second. Returns whether the server closed the connection.
async fn trickle(connecting: impl Future<Output = std::io::Result<Client>>) -> bool {
    let Ok(mut client) = connecting.await else { return true };
    for byte in post("/validate", "{}") {
        if client.send(&[byte]).await.is_err() {
            return true;
        }
        // An answer would be that of a request that has ended: there is none yet.
        if tokio::time::timeout(Duration::from_secs(1), client.answer()).await.is_ok() {
            return true;
        }
    }
    false
}

/// The status for a body of 100 MB; none if the server closes the connection first.
async fn long_body(mut client: Client, chunked: bool) -> Option<u16> {
    let length = match chunked {
        true => "transfer-encoding: chunked".to_owned(),
        false => "content-length: 100000000".to_owned(),
    };
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    );
    let mut chunk = vec![b'['; 100_000];
    if chunked {
        chunk.splice(..0, *b"186a0\r\n");
        chunk.extend_from_slice(b"\r\n");
    }
    client.send(head.as_bytes()).await.ok()?;
    for _ in 0..1000 {
        if client.send(&chunk).await.is_err() {
            break;
        }
    }
    client.answer().await.map(|(status, _)| status)
}
