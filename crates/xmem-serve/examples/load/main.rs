//! Load and faults for `xmem serve`, on the loopback: reviews at a fixed rate, kill and restart, rotation
//! of the certificate, slow and long requests, and a day of reviews.
//!
//! `cargo run --release -p xmem-serve --example load -- target/release/xmem [rate|restart|rotation|hostile|day]…`
//!
//! Times are printed and not judged. What ends with an error: a wrong or missing answer, or memory that
//! grows.
#![expect(clippy::print_stdout, reason = "shows the figures")]

#[path = "../../tests/support/client.rs"]
mod client;
mod clock;
mod faults;
mod process;
mod rate;

use process::ServerProcess;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reviews as the API server sends them, and whether the server's site file allows them.
const REVIEWS: [(&str, bool); 4] = [
    (include_str!("../../tests/reviews/job-create.json"), false),
    (include_str!("../../tests/reviews/pod-create.json"), true),
    (include_str!("../../tests/reviews/pytorchjob-create.json"), false),
    (include_str!("../../tests/reviews/service-create.json"), true),
];

type Scenario = (&'static str, fn(&mut ServerProcess) -> Outcome);

/// What went wrong, if something did.
type Outcome = Result<(), String>;

const SCENARIOS: [Scenario; 5] = [
    ("rate", rate::rate),
    ("restart", faults::restart),
    ("rotation", faults::rotation),
    ("hostile", faults::hostile),
    ("day", rate::day),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(program) = args.next().map(PathBuf::from) else {
        println!("usage: load PROGRAM [rate|restart|rotation|hostile|day]…");
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = args.collect();
    if let Some(unknown) =
        wanted.iter().find(|name| SCENARIOS.iter().all(|(known, _)| known != name))
    {
        println!("no scenario `{unknown}`");
        return ExitCode::from(2);
    }
    let mut failed = false;
    for (name, scenario) in SCENARIOS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("{name}");
        let mut server = ServerProcess::start(&program);
        if let Err(error) = scenario(&mut server) {
            println!("  FAILED: {error}");
            failed = true;
        }
    }
    ExitCode::from(u8::from(failed))
}

/// The runtime of the client: one thread, so that the server has the others.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Returns whether the answer is the expected one.
fn is_right(answer: &(u16, String), allowed: bool) -> bool {
    answer.0 == 200 && answer.1.contains(&format!("\"allowed\":{allowed}"))
}
