//! How good the plans are, on lists of which that is known.

use crate::lists;

use lists::{MINIMALLOC, minimalloc};
use std::time::Duration;
use xmem_planner::{BlockList, Limits, Planner, plan};

fn ratios(planner: Planner, limits: &Limits) -> Vec<f64> {
    let ratio = |(name, text): (&str, &[u8])| {
        let list = minimalloc(text);
        let planned = plan(&list, planner, limits);
        planned.unwrap_or_else(|refused| panic!("{planner} on {name}: {refused}")).ratio()
    };
    MINIMALLOC.map(|(name, text)| ratio((name, text))).to_vec()
}

/// Ratios to four digits, where the tie rules leave no choice.
#[test]
fn planners_without_a_choice_reach_the_known_ratios() {
    for (name, known) in [
        ("bump", [14.3730, 20.6631, 16.2178, 19.4053, 46.5908, 75.3457]),
        ("greedy-by-size", [1.3105, 1.3635, 1.4014, 1.3623, 1.4102, 1.3330]),
        ("greedy-by-size:first", [1.2900, 1.3635, 1.3691, 1.3623, 1.4102, 1.2773]),
        ("gergov", [1.9824, 1.8808, 2.8564, 2.4961, 2.9160, 2.9883]),
        ("bestfit", [1.1523, 1.2680, 1.2510, 1.2471, 1.3965, 1.1953]),
    ] {
        let ratios = ratios(name.parse().expect(name), &Limits::default());
        let differ = ratios.iter().zip(known).any(|(ratio, known)| (ratio - known).abs() > 5e-5);
        assert!(!differ, "{name}: {ratios:.4?} instead of {known:.4?}");
    }
}

/// At most these ratios, of planners that search or choose between equal plans. Steps are limited, so that the
/// ratios are the same on any machine; a limit has some room above the ratio, for another version of the generator of random
/// numbers.
#[test]
fn planners_that_search_are_as_good_as_known() {
    for (name, steps, mean, worst) in [
        ("skyline-multi", 40, 1.17, 1.25),
        ("skyline-ils", 10_000, 1.12, 1.17),
        ("mincost-flow", 1000, 2.9, 4.0),
    ] {
        let limits =
            Limits { nodes: Some(steps), time: Duration::from_secs(600), ..Limits::default() };
        let ratios = ratios(name.parse().expect(name), &limits);
        let average = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let most = ratios.iter().copied().fold(0.0, f64::max);
        assert!(average <= mean && most <= worst, "{name}: {ratios:.4?}, {average:.4} on average");
    }
}

/// Passes of `skyline-multi` run at the same time, and end early when another one was better. Parts of lists
/// have several passes that are equally good.
#[test]
fn the_number_of_threads_does_not_matter() {
    let mut lists = Vec::new();
    for whole in MINIMALLOC.map(|(_, text)| minimalloc(text)) {
        for count in [20, 40, 60, 100, 140] {
            lists.push(BlockList::new(whole.blocks()[..count].to_vec()).expect("a list"));
        }
        lists.push(whole);
    }
    let plans = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let plan = |list| {
            let planned = plan(list, Planner::SkylineMulti, &Limits::default()).expect("a plan");
            (planned.plan, planned.nodes)
        };
        pool.install(|| lists.iter().map(plan).collect::<Vec<_>>())
    };
    let alone = plans(1);
    for _ in 0..5 {
        assert!(plans(4) == alone, "four threads give what one gives");
    }
}

/// More steps continue the same search. The last one stalls, and begins again from its first order.
#[test]
fn more_steps_are_not_worse() {
    let list = minimalloc(MINIMALLOC[0].1);
    let peaks = [40, 100, 1000, 20_100, 90_000].map(|steps| {
        let limits =
            Limits { nodes: Some(steps), time: Duration::from_secs(600), ..Limits::default() };
        let planned = plan(&list, Planner::SkylineIls, &limits).expect("a plan");
        assert_eq!(planned.nodes, steps, "no plan at the lower bound ends the search");
        planned.plan.peak()
    });
    assert!(peaks.is_sorted_by(|fewer, more| fewer >= more), "{peaks:?}");
    assert!(peaks[0] > peaks[2], "steps help: {peaks:?}");
}

/// A list in which nothing but the order of a layer's temporaries is hard.
#[test]
fn best_fit_plans_a_training_job_at_its_lower_bound() {
    for seed in 0..4 {
        let list = lists::training(5000, seed);
        let planned = plan(&list, Planner::BestFit, &Limits::default()).expect("a plan");
        assert_eq!(planned.plan.peak(), list.lower_bound(), "seed {seed}");
    }
}
