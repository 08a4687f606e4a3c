//! Two independent pieces of work at the same time, where the program has threads.
//!
//! The only link between rayon and the crates that compute: `xmem-types`, which all crates use, stays
//! free of it, so that the simulator has no thread in reach.
#![forbid(unsafe_code)]

/// Runs two pieces of work and returns both results: at the same time inside a pool of rayon's, one
/// after the other elsewhere. The program thus decides how many threads it uses by the pool in which
/// it calls the library; no pool is started here.
pub fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if rayon::current_thread_index().is_some() { rayon::join(one, other) } else { (one(), other()) }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_inside_a_pool_and_outside() {
        let work = || both(|| "one", || 2);
        assert_eq!(work(), ("one", 2));
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            assert_eq!(pool.expect("a pool").install(work), ("one", 2));
        }
    }

    #[test]
    fn outside_a_pool_everything_runs_on_the_calling_thread() {
        let here = std::thread::current().id();
        let on = || std::thread::current().id();
        assert_eq!(both(on, on), (here, here));
    }
}
