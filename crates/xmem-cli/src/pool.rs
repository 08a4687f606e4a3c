//! The threads of a command: as many as are useful, and one where no more can be had.

use std::num::NonZeroUsize;
use std::thread;

/// The stack size of threads: that of the main thread, as a trace may be read on any of them.
pub(crate) const STACK_SIZE: usize = 8 << 20;

/// More threads than this are never useful on a small machine; tests use up to so many.
const ALWAYS_ALLOWED: usize = 16;

/// The number of cores.
pub(crate) fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Runs `work` with the number of threads that it may use, inside a pool of as many, by default one per core.
/// Where threads cannot be started (`ulimit -u`, or too little memory for their stacks), `work` runs with one.
pub(crate) fn run<T: Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce(NonZeroUsize) -> T + Send,
) -> T {
    let threads = threads.unwrap_or_else(cores);
    if threads == NonZeroUsize::MIN {
        return work(threads);
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.get());
    match builder.stack_size(STACK_SIZE).build() {
        Ok(pool) => pool.install(|| work(threads)),
        Err(error) => {
            tracing::warn!(%error, "cannot start {threads} threads: one is used");
            work(NonZeroUsize::MIN)
        }
    }
}

/// Lowers numbers of threads that no machine of this size can use, and returns a note about each. Each is given with its
/// option.
pub(crate) fn limit(options: Vec<(&'static str, &mut Option<NonZeroUsize>)>) -> Vec<String> {
    let cores = cores();
    let most = cores.saturating_mul(NonZeroUsize::MIN.saturating_add(3)).get().max(ALWAYS_ALLOWED);
    let lower = |(option, given): (&'static str, &mut Option<NonZeroUsize>)| {
        let too_many = given.filter(|given| given.get() > most)?;
        *given = NonZeroUsize::new(most);
        Some(format!(
            "note: {option} {too_many} is more than {cores} cores can use: {most} are used"
        ))
    };
    options.into_iter().filter_map(lower).collect()
}
