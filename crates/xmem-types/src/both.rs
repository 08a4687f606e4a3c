//! Two pieces of work that have nothing to do with each other.

/// Runs two pieces of work and gives both results: at the same time inside a pool of rayon's, one after
/// the other elsewhere. So it is the program that decides how many threads there are, by where it runs
/// the whole.
pub fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if rayon::current_thread_index().is_some() { rayon::join(one, other) } else { (one(), other()) }
}

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
}
