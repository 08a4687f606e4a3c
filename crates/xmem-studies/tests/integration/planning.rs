//! What papers about planned memory found, on recorded networks: Sekiyama et al., "Profile-guided memory optimization
//! for deep neural networks"; Gergov, "Algorithms for compile-time memory optimization"; Gao et al., "Estimating GPU
//! memory consumption of deep learning models" (DNNMem).

use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Estimate, Job, ReadOptions, find};
use xmem_studies::planner::{BlockList, PlannedBlock, plan};
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{
    DnnMemCategory, FollowInput, JobPlan, PlanBlocks, PlanScope, PlanSettings,
};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces");

/// Convolutional networks in training.
const TRAINED: [&str; 16] = [
    "networks/alexnet.json.zst",
    "networks/googlenet.json.zst",
    "networks/inception_v3.json.zst",
    "networks/inception_v4.json.zst",
    "networks/resnet32.json.zst",
    "networks/resnet50.json.zst",
    "networks/resnet101.json.zst",
    "networks/vgg16.json.zst",
    "big_densenet121_sgdm_b24/trace.json.zst",
    "big_resnet50_adamw_b100/trace.json.zst",
    "big_vgg16_rmsprop_b100/trace.json.zst",
    "mobilenetv3s_rmsprop_pos0/trace.json.zst",
    "resnet18_sgdm/trace.json.zst",
    "shufflenet_v2_adamax_pos0/trace.json.zst",
    "squeezenet_sgd/trace.json.zst",
    "unet_adam/trace.json.zst",
];

/// The blocks of a recorded job.
fn blocks(name: &str, scope: PlanScope) -> PlanBlocks {
    let job = Job::from_path(format!("{TRACES}/{name}"), &ReadOptions::default()).expect(name);
    let device = find("a100-40g").expect("a known device").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let predicted = estimate.predict(&job).expect(name);
    let prediction = predicted.prediction();
    PlanBlocks::of_prediction(prediction, scope).expect(name)
}

fn peak(list: &BlockList, planner: Planner) -> Bytes {
    plan(list, planner, &Limits::default()).expect("a plan").plan.peak()
}

fn named(name: &str) -> Planner {
    name.parse().expect("a planner")
}

/// What a plan saves of what the pool of the allocator reserves, from 0 to 1.
fn saving(name: &str) -> f64 {
    let settings = PlanSettings { planners: vec![Planner::BestFit], ..PlanSettings::default() };
    let answer = settings.compare(blocks(name, PlanScope::Iteration));
    let planned = answer.best().expect("a plan").plan.peak();
    1.0 - planned.get() as f64 / answer.pytorch.reserved.get() as f64
}

#[test]
fn without_reuse_more_than_the_pool_and_the_pool_more_than_a_plan() {
    for name in TRAINED {
        let settings = PlanSettings {
            planners: vec![Planner::Bump, Planner::BestFit],
            ..PlanSettings::default()
        };
        let answer = settings.compare(blocks(name, PlanScope::Iteration));
        let peak = |at: usize| answer.planners[at].result.as_ref().expect(name).plan.peak();
        let (bump, pool, planned) = (peak(0), answer.pytorch.reserved, peak(1));
        assert!(bump > pool && pool > planned, "{name}: {bump}, {pool}, {planned}");
        assert!(answer.tensorflow.reserved > planned, "{name}");
    }
}

#[test]
fn networks_with_branches_gain_more_than_residual_ones() {
    let savings = |names: &[&str]| -> Vec<f64> {
        names.iter().map(|name| saving(&format!("networks/{name}.json.zst"))).collect()
    };
    let branches = savings(&["googlenet", "inception_v3", "inception_v4"]);
    let residual = savings(&["resnet50", "resnet101"]);
    for gain in &branches {
        assert!(residual.iter().all(|other| other < gain), "{branches:?} {residual:?}");
    }
}

#[test]
fn best_fit_is_optimal_on_alexnet_and_googlenet_in_inference() {
    for name in ["alexnet", "googlenet"] {
        let name = format!("networks/{name}_inference.json.zst");
        let list = blocks(&name, PlanScope::Iteration).list;
        assert_eq!(peak(&list, Planner::BestFit), list.lower_bound(), "{name}");
    }
}

#[test]
fn greedy_by_size_is_near_the_bound_in_inference() {
    for name in ["alexnet", "googlenet"] {
        let name = format!("networks/{name}_inference.json.zst");
        let list = blocks(&name, PlanScope::Iteration).list;
        let ratio =
            peak(&list, named("greedy-by-size")).get() as f64 / list.lower_bound().get() as f64;
        assert!(ratio < 1.05, "{name}: {ratio}");
    }
}

#[test]
fn gergovs_plans_are_within_three_times_the_bound_and_above_best_fit() {
    for name in TRAINED {
        let list = blocks(name, PlanScope::Iteration).list;
        let gergov = peak(&list, named("gergov"));
        assert!(gergov <= list.lower_bound() * 3, "{name}: {gergov}");
        assert!(gergov >= peak(&list, Planner::BestFit), "{name}: {gergov}");
    }
}

#[test]
fn an_iteration_has_fewer_blocks_than_the_profile() {
    for name in ["networks/googlenet.json.zst", "resnet18_sgdm/trace.json.zst"] {
        let one = blocks(name, PlanScope::Iteration).list;
        let all = blocks(name, PlanScope::All).list;
        assert!(one.len() < all.len() && one.lower_bound() < all.lower_bound(), "{name}");
    }
}

#[test]
fn plans_scale_with_the_batch() {
    let list = blocks("networks/googlenet.json.zst", PlanScope::Iteration).list;
    for times in [2, 7] {
        let scaled = |block: &PlannedBlock| PlannedBlock { size: block.size * times, ..*block };
        let larger = BlockList::new(list.blocks().iter().map(scaled).collect()).expect("a list");
        assert_eq!(larger.lower_bound(), list.lower_bound() * times);
        for planner in [Planner::Bump, Planner::BestFit, named("greedy-by-size")] {
            assert_eq!(peak(&larger, planner), peak(&list, planner) * times, "{planner}");
        }
    }
}

/// Sekiyama et al., reoptimization, on a recorded job whose sequences take turns between two lengths that have other
/// requests: with a plan of one of them, the other is planned on the way; a plan of both serves both.
#[test]
fn sekiyama_a_job_with_two_lengths_is_planned_again_until_both_were_seen() {
    let job = Job::from_path(format!("{TRACES}/lengths/cpu.json.zst"), &ReadOptions::default());
    let job = job.expect("read");
    let device = find("a100-40g").expect("a known device").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let predicted = estimate.predict(&job).expect("predicted");
    let prediction = predicted.prediction();
    let input = FollowInput::of_prediction(prediction);
    let limits = Limits::default();
    let plan = JobPlan::of_prediction(prediction, Planner::BestFit, &[], &limits).expect("a plan");
    let both = plan.follow(&input, &limits).expect("followed");
    assert_eq!(both.replans, 0);
    assert!(both.total.planned * 100 > both.total.requests * 97, "{both:?}");
    assert!(both.peak < both.alone, "{both:?}");
    let one = JobPlan { iteration: plan.iteration[..plan.iteration.len() / 2].to_vec(), ..plan };
    let again = one.follow(&input, &limits).expect("followed");
    assert!(again.replans > 0 && again.total.misses() > both.total.misses(), "{again:?}");
    let last = again.runs.last().expect("runs");
    assert!(last.planned * 100 > last.requests * 90, "{again:?}");
}

/// What an allocator can know suffices: the iterations of recorded jobs follow their plan from the first one on.
#[test]
fn recorded_jobs_follow_their_plans() {
    for (name, most) in [
        ("gpt2_adamw", 0.92),
        ("resnet18_sgdm", 0.93),
        ("gru_seq2seq_nadam", 0.75),
        ("dcgan_adam", 0.90),
        ("nanogpt_accumulate_fused", 0.90),
        ("bert_fp16_scaler_adamw", 0.85),
    ] {
        let path = format!("{TRACES}/{name}/trace.json.zst");
        let job = Job::from_path(path, &ReadOptions::default()).expect(name);
        let device = find("a100-40g").expect("a known device").clone();
        let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
        let predicted = estimate.predict(&job).expect(name);
        let prediction = predicted.prediction();
        let limits = Limits::default();
        let plan =
            JobPlan::of_prediction(prediction, Planner::BestFit, &[], &limits).expect("a plan");
        let answer =
            plan.follow(&FollowInput::of_prediction(prediction), &limits).expect("followed");
        assert!(answer.total.misses() <= 1, "{name}: {answer:?}");
        assert!(answer.total.planned * 100 >= answer.total.requests * 99, "{name}: {answer:?}");
        let ratio = answer.peak.get() as f64 / answer.alone.get() as f64;
        assert!(ratio < most, "{name}: {ratio}");
    }
}

#[test]
fn shape_inference_is_below_the_complete_estimate() {
    for name in TRAINED {
        let settings = PlanSettings { planners: vec![Planner::Bump], ..PlanSettings::default() };
        let answer = settings.compare(blocks(name, PlanScope::Iteration));
        let breakdown = answer.blocks.breakdown.as_ref().expect("of a recording");
        let inferred = breakdown.shape_inference;
        let weights =
            breakdown.shares.iter().find(|share| share.category == DnnMemCategory::Weights);
        assert!(inferred.saved_outputs > weights.expect("a model").bytes, "{name}");
        assert!(inferred.saved_outputs <= inferred.all_outputs, "{name}");
        let estimate = answer.dnnmem.expect("of a recording");
        assert!(inferred.saved_outputs < estimate.with_job_allocator, "{name}: {estimate:?}");
        assert!(estimate.with_job_allocator <= breakdown.total(), "{name}: {estimate:?}");
    }
}

#[test]
fn the_breakdown_adds_up_to_what_the_device_holds() {
    for name in ["gpt2_adamw/trace.json.zst", "networks/resnet50.json.zst"] {
        let blocks = blocks(name, PlanScope::Iteration);
        let breakdown = blocks.breakdown.expect("of a recording");
        let context =
            breakdown.shares.iter().find(|share| share.category == DnnMemCategory::Context);
        let job = blocks.job.expect("of a recording");
        assert_eq!(breakdown.total(), job.reserved + context.expect("a context").bytes, "{name}");
    }
}

#[test]
fn what_an_iteration_leaves_and_what_it_frees_are_all_that_is_live() {
    for name in ["gpt2_adamw/trace.json.zst", "resnet18_sgdm/trace.json.zst"] {
        let blocks = blocks(name, PlanScope::Iteration);
        let outside = blocks.outside.expect("of an iteration");
        let by_role: Bytes = outside.by_role.iter().map(|share| share.bytes).sum();
        assert_eq!(by_role, outside.bytes, "{name}");
        assert!(outside.together <= outside.bytes + blocks.list.lower_bound(), "{name}");
        assert!(outside.together > outside.bytes, "{name}");
    }
}
