//! A server that is killed, hangs, or comes back, under both failure policies.

use super::load::{Counts, Load, Run};
use super::{Bench, CHANGE_LIMIT, LARGE, SMALL, Scenario};
use crate::daemon::wait;
use nix::sys::signal::Signal;
use std::time::Instant;
use xmem_task::Error;

pub(super) static SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "the server is killed, Ignore: created; started again: rejected",
        needs: None,
        run: |bench| killed(bench, FailurePolicy::Ignore),
    },
    Scenario {
        name: "the server hangs, Ignore: created after the timeout",
        needs: None,
        run: |bench| hanging(bench, FailurePolicy::Ignore),
    },
    Scenario {
        name: "killed and started again during creations, Ignore: nothing is refused",
        needs: None,
        run: |bench| killed_during_creations(bench, FailurePolicy::Ignore),
    },
    Scenario {
        name: "the server is killed, Fail: refused; started again: decisions",
        needs: None,
        run: |bench| killed(bench, FailurePolicy::Fail),
    },
    Scenario {
        name: "the server hangs, Fail: refused after the timeout",
        needs: None,
        run: |bench| hanging(bench, FailurePolicy::Fail),
    },
    Scenario {
        name: "killed and started again during creations, Fail: nothing is unchecked",
        needs: None,
        run: |bench| killed_during_creations(bench, FailurePolicy::Fail),
    },
    Scenario {
        name: "ended by SIGTERM eight times during creations, Fail: no request is cut off",
        needs: None,
        run: ended_during_creations,
    },
];

/// What the API server does if the webhook cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    Ignore,
    Fail,
}

impl FailurePolicy {
    /// Returns whether this is what becomes of a Job while the server is away.
    fn explains(self, text: &str) -> bool {
        match self {
            Self::Ignore => text.contains("created (server dry run)"),
            Self::Fail => {
                text.contains("Error from server (InternalError)")
                    && text.contains("failed calling webhook \"validate.xmem.dev\"")
            }
        }
    }
}

/// Sets the policy, and waits until it is in force, which shows while the server is down.
pub(super) fn set_policy(bench: &mut Bench, policy: FailurePolicy) -> Result<(), Error> {
    let patch = format!(
        r#"[{{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "{policy:?}"}}]"#
    );
    let object = "validatingwebhookconfiguration/xmem";
    bench.kubectl.must(&["patch", object, "--type=json", "-p", &patch])?;
    bench.server.kill();
    bench.wait_for(&format!("failurePolicy {policy:?}"), "research", SMALL, |text| {
        policy.explains(text)
    })?;
    bench.server.begin()?;
    wait_for_rejections(bench)
}

fn wait_for_rejections(bench: &Bench) -> Result<(), Error> {
    bench.wait_for("rejections", "research", SMALL, |text| text.contains("denied the request"))
}

/// The server is killed and started again. What is tried in between is one Job that fits and one that does not.
fn killed(bench: &mut Bench, policy: FailurePolicy) -> Result<Vec<String>, Error> {
    set_policy(bench, policy)?;
    let mut complaints = Vec::new();
    bench.server.kill();
    for gpu in [LARGE, SMALL] {
        let text = bench.try_job("research", gpu)?;
        if !policy.explains(&text) || text.contains("Warning") {
            complaints.push(format!("killed: {text}"));
        }
    }
    // What is not gated does not need the server.
    let text = bench.try_job("unlabeled", SMALL)?;
    if !text.contains("created") {
        complaints.push(format!("not gated: {text}"));
    }
    bench.server.begin()?;
    complaints.extend(decides(bench)?);
    Ok(complaints)
}

/// Complains unless the very next Jobs are decided about.
fn decides(bench: &Bench) -> Result<Vec<String>, Error> {
    let mut complaints = Vec::new();
    for (gpu, wanted) in [(LARGE, "created"), (SMALL, "denied the request: xmem: does not fit")] {
        let text = bench.try_job("research", gpu)?;
        if !text.contains(wanted) {
            complaints.push(format!("no `{wanted}`: {text}"));
        }
    }
    Ok(complaints)
}

/// The server accepts connections, and says nothing.
fn hanging(bench: &mut Bench, policy: FailurePolicy) -> Result<Vec<String>, Error> {
    set_policy(bench, policy)?;
    let mut complaints = Vec::new();
    bench.server.signal(Signal::SIGSTOP);
    let start = Instant::now();
    let text = bench.try_job("research", SMALL);
    let seconds = start.elapsed().as_secs_f64();
    bench.server.signal(Signal::SIGCONT);
    let text = text?;
    if !policy.explains(&text) {
        complaints.push(text);
    }
    // Two webhooks, two seconds each.
    if !(2.0..20.0).contains(&seconds) {
        complaints.push(format!("it took {seconds:.1} s"));
    }
    wait("decisions of a server that goes on", CHANGE_LIMIT, || {
        decides(bench).is_ok_and(|complaints| complaints.is_empty())
    })?;
    Ok(complaints)
}

/// The server is killed and started again while Jobs are created. What ran before and after it is decided about
/// as ever.
fn killed_during_creations(bench: &mut Bench, policy: FailurePolicy) -> Result<Vec<String>, Error> {
    set_policy(bench, policy)?;
    let load = Load::start(bench)?;
    load.wait_for_runs()?;
    let killed = Instant::now();
    bench.server.kill();
    load.wait_for_runs()?;
    bench.server.begin()?;
    let ready = Instant::now();
    load.wait_for_runs()?;
    let runs = load.finish()?;

    let parts = |holds: fn(&Run, Instant, Instant) -> bool| {
        Counts::sum(runs.iter().filter(|run| holds(run, killed, ready)))
    };
    let before = parts(|run, killed, _| run.end < killed);
    let during = parts(|run, killed, ready| run.end >= killed && run.start <= ready);
    let after = parts(|run, _, ready| run.start > ready);
    let mut complaints = Vec::new();
    for (name, counts) in [("before", &before), ("after", &after)] {
        if counts.rejected == 0 || counts.created != counts.rejected || !counts.is_decided() {
            complaints.push(format!("{name} the outage: {counts:?}"));
        }
    }
    let as_expected = match policy {
        FailurePolicy::Ignore => during.unchecked > 0 && during.refused == 0,
        FailurePolicy::Fail => during.refused > 0 && during.unchecked == 0,
    };
    if !as_expected || !during.others.is_empty() {
        complaints.push(format!("during the outage: {during:?}"));
    }
    println!(
        "        {} Jobs, {} of them in the outage: {} created, {} rejected, {} unchecked, {} refused",
        [&before, &during, &after].map(Counts::jobs).iter().sum::<usize>(),
        during.jobs(),
        during.created,
        during.rejected,
        during.unchecked,
        during.refused
    );
    Ok(complaints)
}

/// The server is ended and started again, as when a node is drained. It may be away, but it breaks no
/// connection on which a request is on its way.
fn ended_during_creations(bench: &mut Bench) -> Result<Vec<String>, Error> {
    set_policy(bench, FailurePolicy::Fail)?;
    let load = Load::start(bench)?;
    for _ in 0..8 {
        let reviews = bench.server.asked() + 40;
        wait("reviews by a server that was started again", CHANGE_LIMIT, || {
            bench.server.asked() >= reviews
        })?;
        bench.server.stop();
        bench.server.begin()?;
    }
    load.wait_for_runs()?;
    let counts = Counts::sum(&load.finish()?);
    set_policy(bench, FailurePolicy::Ignore)?;
    println!(
        "        {} Jobs: {} created, {} rejected, {} refused, {} of them cut off",
        counts.jobs(),
        counts.created,
        counts.rejected,
        counts.refused,
        counts.cut_off.len()
    );
    let as_expected =
        counts.cut_off.is_empty() && counts.unchecked == 0 && counts.others.is_empty();
    Ok(if as_expected { Vec::new() } else { vec![format!("{counts:?}")] })
}
