//! How good the plans are, on lists of which that is known.

mod lists;

use lists::{MINIMALLOC, minimalloc};
use xmem_planner::{Limits, Planner, plan};

fn ratios(planner: Planner) -> Vec<f64> {
    let ratio = |(name, text): (&str, &[u8])| {
        let list = minimalloc(text);
        let planned = plan(&list, planner, &Limits::default());
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
        ("bestfit", [1.1523, 1.2680, 1.2510, 1.2471, 1.3965, 1.1953]),
    ] {
        let ratios = ratios(name.parse().expect(name));
        let differ = ratios.iter().zip(known).any(|(ratio, known)| (ratio - known).abs() > 5e-5);
        assert!(!differ, "{name}: {ratios:.4?} instead of {known:.4?}");
    }
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
