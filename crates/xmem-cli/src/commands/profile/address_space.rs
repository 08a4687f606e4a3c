//! The limit to the address space of a process (`ulimit -v`), which a recorded command inherits.

use xmem::Bytes;

/// Advice for a command that failed, if it ran with such a limit.
pub(super) fn advice() -> Option<String> {
    limit().map(of_limit)
}

fn of_limit(limit: Bytes) -> String {
    format!(
        "`ulimit -v` limits the address space of the command to {limit}, and torch may end with an abort when \
         it needs more: remove the limit first, with `ulimit -v unlimited`"
    )
}

/// The limit, if there is one.
#[cfg(target_os = "linux")]
fn limit() -> Option<Bytes> {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (limit != RLIM_INFINITY).then_some(Bytes(limit))
}

#[cfg(not(target_os = "linux"))]
fn limit() -> Option<Bytes> {
    None
}
