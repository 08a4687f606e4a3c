//! Offloading on the recorded networks of the papers: what they report, on their networks, as far as it shows here.
//! What does not is in docs/results/offloading.md, with its figures. The device is of the papers' time, and the link theirs.

use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::types::{Nanos, Request, RequestKind};
use xmem::{Bytes, Device, Estimate, Job, ReadOptions, find};
use xmem_studies::offload::{
    BlockRole, Direction, EventKind, Graph, LayerKind, Link, Memory, Moves, Placement, Policy, Run,
    StepId, SuperNeurons, Work, depth_first, place, simulate, smallest_capacity,
};
use xmem_studies::offloading::TrainingStep;
use xmem_studies::planner::Limits;
use xmem_studies::timing::TimeModel;

const LINEAR: [&str; 2] = ["alexnet", "vgg16"];
const NONLINEAR: [&str; 6] =
    ["googlenet", "inception_v3", "inception_v4", "resnet101", "resnet32", "resnet50"];

fn job(network: &str) -> Job {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/networks");
    let path = traces.join(format!("{network}.json.zst"));
    Job::from_path(path, &ReadOptions::default()).expect("a trace")
}

fn device() -> Device {
    find("p100-16g").expect("known").clone()
}

fn estimate() -> Estimate {
    Estimate::builder(device()).convolutions(Arc::new(FittedModel)).build()
}

/// The step of a job on the estimate's device.
fn step_of(estimate: &Estimate, job: &Job) -> TrainingStep {
    let predicted = estimate.predict(job).expect("a prediction");
    let prediction = predicted.prediction();
    TrainingStep::of(prediction, &TimeModel::of(&estimate.target().device)).expect("a step")
}

fn step(network: &str) -> TrainingStep {
    step_of(&estimate(), &job(network))
}

fn link() -> Link {
    let model = TimeModel::of(&device());
    Link {
        bandwidth: Bytes(model.pcie.get()),
        latency: model.transfer_latency,
        duplex: xmem_studies::offload::Duplex::Half,
    }
}

fn run(step: &TrainingStep, policy: Policy) -> Run {
    simulate(&step.graph, policy, &link(), Memory::Unlimited)
}

fn peak(run: &Run, placement: Placement) -> f64 {
    place(run, placement, &Limits::default()).expect("placed").peak.get() as f64
}

fn live(run: &Run) -> f64 {
    run.peak_live().get() as f64
}

/// With the layers that the paper of each policy names.
const SUPERNEURONS: Policy = Policy::SuperNeurons(SuperNeurons {
    moves: Moves::Paper,
    tensor_cache: false,
    recompute: false,
});
const SERIAL: Policy = Policy::Serial(Moves::Paper);
const VDNN: Policy = Policy::VdnnAll(Moves::Paper);
const DYMEM: Policy = Policy::Dymem(Moves::Paper);

#[test]
fn layers_and_their_uses_are_found() {
    for (network, convolutions, joins) in [
        ("alexnet", 5, 0),
        ("vgg16", 13, 0),
        ("googlenet", 57, 9),
        ("inception_v3", 94, 15),
        ("inception_v4", 149, 25),
        ("resnet32", 33, 15),
        ("resnet32_bottleneck", 34, 10),
        ("resnet50", 53, 16),
        ("resnet101", 104, 33),
    ] {
        let step = step(network);
        let count = |kind| step.graph.layers().iter().filter(|l| l.kind == kind).count();
        assert_eq!(
            (count(LayerKind::Conv), count(LayerKind::Join)),
            (convolutions, joins),
            "{network}"
        );
        let matches = step.matches;
        assert_eq!(matches.missing, 0, "{network}");
        let unexplained = matches.kept - matches.explained;
        assert!(unexplained.get() * 200 < matches.kept.get(), "{network}: {unexplained}");
    }
}

/// Every residual block reads its input twice: the first convolution, and the addition or the shortcut.
#[test]
fn residual_blocks_are_forks_that_join() {
    let step = step("resnet50");
    let layers = step.graph.layers();
    let joins = layers.iter().filter(|layer| layer.kind == LayerKind::Join);
    assert!(joins.clone().all(|join| join.inputs.len() == 2));
    let forks = step.graph.blocks().iter().filter(|block| block.readers.len() > 1);
    // 4 of the 16 blocks have a convolution in the shortcut, and the others the input itself.
    assert_eq!(forks.count(), 16);
}

#[test]
fn without_a_policy_memory_is_that_of_the_prediction() {
    for network in ["alexnet", "resnet32", "inception_v4"] {
        let job = job(network);
        let estimate = estimate();
        let predicted = estimate.predict(&job).expect("a prediction");
        let prediction = predicted.prediction();
        let (mut sizes, mut live, mut expected) = (Vec::new(), 0u64, Vec::new());
        let starts = prediction.iteration_starts();
        for (row, Request { block, kind }) in prediction.requests().iter().enumerate() {
            let before = *starts.last().expect("an iteration") > row;
            match kind {
                RequestKind::Alloc { size, .. } => {
                    sizes.resize(sizes.len().max(block.index() + 1), 0);
                    sizes[block.index()] = size.get().div_ceil(512) * 512;
                    live += sizes[block.index()];
                }
                RequestKind::Free => live -= sizes[block.index()],
            }
            if !before {
                expected.push(Bytes(live));
            }
        }
        let step = step(network);
        let run = run(&step, Policy::None);
        let found: Vec<Bytes> =
            run.live().filter(|(event, _)| event.step > StepId(0)).map(|(_, live)| live).collect();
        // What follows the iteration is not part of it.
        assert!(!found.is_empty() && expected.starts_with(&found), "{network}");
        assert!(expected.len() - found.len() < 10, "{network}");
    }
}

/// Dymem, figure 11: VGG-16 and AlexNet; Dymem somewhat above vDNN on AlexNet, as it prefetches more.
#[test]
fn dymem_linear_networks_need_the_same_with_all_policies() {
    for network in LINEAR {
        let step = step(network);
        let vdnn = live(&run(&step, VDNN));
        for policy in [DYMEM, SUPERNEURONS] {
            let ratio = live(&run(&step, policy)) / vdnn;
            assert!((0.97..1.09).contains(&ratio), "{network} {policy}: {ratio}");
        }
    }
    let alexnet = step("alexnet");
    assert!(live(&run(&alexnet, DYMEM)) > live(&run(&alexnet, VDNN)));
}

/// Dymem, section 3.3: what waits for a join fragments a pool.
#[test]
fn dymem_gtbm_gains_more_than_a_tenth_on_networks_with_joins() {
    for (network, policy) in
        [("resnet32", DYMEM), ("inception_v4", SERIAL), ("inception_v3", SERIAL)]
    {
        let run = run(&step(network), policy);
        let ratio = peak(&run, Placement::Gtbm) / peak(&run, Placement::BestFit);
        assert!(ratio < 0.9, "{network} {policy}: {ratio}");
    }
    let vgg = run(&step("vgg16"), DYMEM);
    let ratio = peak(&vgg, Placement::Gtbm) / peak(&vgg, Placement::BestFit);
    assert!((0.99..1.01).contains(&ratio), "VGG-16: {ratio}");
}

/// Dymem, figures 12 and 13: Inception-V4 needs 31 % less than with vDNN.
#[test]
fn dymem_runs_inception_v4_in_less_memory_than_vdnn_and_superneurons() {
    let graph = step("inception_v4").graph;
    let smallest = |policy, placement| {
        smallest_capacity(&graph, policy, &link(), placement).expect("online").get() as f64
    };
    let dymem = smallest(DYMEM, Placement::Gtbm);
    for policy in [VDNN, SUPERNEURONS] {
        let ratio = dymem / smallest(policy, Placement::BestFit);
        assert!((0.6..0.75).contains(&ratio), "{policy}: {ratio}");
    }
}

/// Dymem, figure 14.
#[test]
fn dymem_overlaps_more_than_vdnn_and_serial_nothing() {
    for network in LINEAR.into_iter().chain(NONLINEAR) {
        let step = step(network);
        let [serial, vdnn, dymem] = [SERIAL, VDNN, DYMEM].map(|policy| run(&step, policy));
        assert_eq!(serial.overlapped(), Nanos::ZERO);
        assert_eq!(serial.step_time, serial.compute() + serial.copying());
        let share = |run: &Run| run.overlapped().get() as f64 / run.step_time.get() as f64;
        assert!(share(&dymem) > share(&vdnn) && share(&vdnn) > 0.0, "{network}");
        assert!(dymem.step_time.get() * 100 < serial.step_time.get() * 80, "{network}");
    }
}

/// Dymem, section 5.3: more throughput than vDNN, where both move the same blocks.
#[test]
fn dymem_is_faster_than_vdnn_on_networks_without_normalization() {
    for network in ["alexnet", "vgg16", "resnet32"] {
        let step = step(network);
        let (dymem, vdnn) = (run(&step, DYMEM), run(&step, VDNN));
        assert!(dymem.step_time < vdnn.step_time, "{network}");
    }
}

/// The GPU of Dymem's measurements.
const TITAN_X: &str = include_str!("../../../../traces/networks/titan-x.toml");

/// The step of a network on the [`TITAN_X`].
fn step_on_titan_x(network: &str) -> TrainingStep {
    let device = Device::from_toml(TITAN_X).expect("a device");
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    step_of(&estimate, &job(network))
}

/// The link that Dymem's authors name: PCI Express with 16 GB/s.
fn fast_link() -> Link {
    Link { bandwidth: Bytes(16_000_000_000), ..link() }
}

/// The comparison was between different jobs: Dymem moved the inputs of normalization layers, and vDNN did not, so that
/// Dymem moved 2.1 times the bytes on ResNet-50.
#[test]
fn dymem_moved_twice_the_bytes_of_vdnn() {
    for network in LINEAR.into_iter().chain(NONLINEAR) {
        let graph = step(network).graph;
        let moved =
            |policy| simulate(&graph, policy, &link(), Memory::Unlimited).moved(Direction::ToHost);
        let same = Moves::Same;
        let superneurons = Policy::SuperNeurons(SuperNeurons::default());
        for policy in [Policy::Serial(same), Policy::VdnnAll(same), superneurons] {
            assert_eq!(moved(policy), moved(Policy::Dymem(same)), "{network} {policy}");
        }
        assert!(moved(VDNN) <= moved(DYMEM), "{network}");
    }
}

/// Dymem, figure 12: up to 42 % more throughput than vDNN on networks with joins, where both move the same tensors, on a
/// GPU of the paper's time.
#[test]
fn dymem_has_more_throughput_than_vdnn_on_its_own_gpu_where_both_move_the_same() {
    for (network, percent) in [
        ("googlenet", 20..35),
        ("inception_v3", 20..35),
        ("inception_v4", 25..40),
        ("resnet32", 15..30),
        ("resnet32_bottleneck", 12..25),
        ("resnet50", 20..32),
        ("resnet101", 25..40),
    ] {
        let graph = step_on_titan_x(network).graph;
        let time = |policy| {
            let run = simulate(&graph, policy, &fast_link(), Memory::Unlimited);
            run.step_time.get() as f64
        };
        let gain = time(Policy::VdnnAll(Moves::Same)) / time(Policy::Dymem(Moves::Same));
        let gain = (100.0 * (gain - 1.0)) as i64;
        assert!(percent.contains(&gain), "{network}: {gain} %");
    }
}

/// Dymem, figure 15: groups against best fit, for the events of Dymem itself.
#[test]
fn dymem_gtbm_gains_a_fifth_on_inception_on_its_own_gpu() {
    for (network, least) in [("inception_v3", 0.20), ("inception_v4", 0.15)] {
        let graph = step_on_titan_x(network).graph;
        let run = simulate(&graph, Policy::Dymem(Moves::Same), &fast_link(), Memory::Unlimited);
        let gain = 1.0 - peak(&run, Placement::Gtbm) / peak(&run, Placement::BestFit);
        assert!((least..0.3).contains(&gain), "{network}: {gain}");
    }
}

/// Dymem's pool has feature maps only: with gradients in it, offloading costs memory on VGG-16.
#[test]
fn offloading_costs_memory_on_vgg_16_unless_gradients_are_preallocated() {
    let graph = step_on_titan_x("vgg16").graph;
    let paper = graph.with_preallocated_gradients().expect("a graph").without_workspaces();
    let smallest = |graph: &Graph, policy, placement| {
        smallest_capacity(graph, policy, &fast_link(), placement).expect("online").get() as f64
    };
    let policies = [
        (Policy::None, Placement::BestFit),
        (Policy::VdnnAll(Moves::Same), Placement::BestFit),
        (Policy::Dymem(Moves::Same), Placement::Gtbm),
    ];
    let [none, vdnn, dymem] = policies.map(|(policy, at)| smallest(&graph, policy, at));
    assert!(vdnn > 1.05 * none && dymem > 1.05 * none, "{none} {vdnn} {dymem}");
    let [none, vdnn, dymem] = policies.map(|(policy, at)| smallest(&paper, policy, at));
    assert!(vdnn < 0.95 * none && dymem < 0.95 * none, "{none} {vdnn} {dymem}");
}

/// Dymem, section 5.3, on a GPU of the paper's time, which hides more of the copies than a P100 does, and with its link.
#[test]
fn dymem_is_faster_than_vdnn_on_its_own_gpu_where_joins_are_inception_or_residual_without_normalization()
 {
    for (network, gain) in [
        ("inception_v3", 0.98),
        ("inception_v4", 0.94),
        ("resnet32", 0.85),
        ("resnet32_bottleneck", 0.87),
    ] {
        let graph = step_on_titan_x(network).graph;
        let time = |policy| {
            let run = simulate(&graph, policy, &fast_link(), Memory::Unlimited);
            run.step_time.get() as f64
        };
        let ratio = time(DYMEM) / time(VDNN);
        assert!((gain - 0.05..gain).contains(&ratio), "{network}: {ratio}");
    }
}

/// What vDNN does not move, and Dymem does, are the inputs of normalization layers. Without them, Dymem is the faster one
/// on all networks, on any GPU.
#[test]
fn dymem_is_faster_than_vdnn_on_all_networks_if_it_keeps_the_inputs_of_normalization() {
    for network in LINEAR.into_iter().chain(NONLINEAR) {
        let graph = without_normalization(&step(network).graph);
        let [dymem, vdnn] =
            [DYMEM, VDNN].map(|policy| simulate(&graph, policy, &link(), Memory::Unlimited));
        assert!(dymem.step_time < vdnn.step_time, "{network}");
    }
}

/// The same step with normalization layers that no policy knows.
fn without_normalization(graph: &Graph) -> Graph {
    let mut layers = graph.layers().to_vec();
    for layer in layers.iter_mut().filter(|layer| layer.kind == LayerKind::Norm) {
        layer.kind = LayerKind::Other;
    }
    Graph::new(layers, graph.steps().to_vec(), graph.blocks().to_vec()).expect("a graph")
}

/// Dymem: a ResNet-32 of blocks with convolutions of 1 x 1 and 3 x 3, as the paper shows them. 26 % there.
#[test]
fn dymem_runs_a_resnet_32_of_bottlenecks_in_less_memory_than_vdnn_and_superneurons() {
    let graph = step("resnet32_bottleneck").graph;
    let smallest = |policy, placement| {
        smallest_capacity(&graph, policy, &link(), placement).expect("online").get() as f64
    };
    let dymem = smallest(DYMEM, Placement::Gtbm);
    let ratio = dymem / smallest(VDNN, Placement::BestFit);
    assert!((0.8..0.84).contains(&ratio), "{ratio}");
    assert!(dymem < 0.95 * smallest(SUPERNEURONS, Placement::BestFit));
}

/// Dymem, section 5.3: SuperNeurons moves least on linear networks, and is the fastest where copies are not hidden. It runs
/// out of memory first.
#[test]
fn superneurons_is_the_fastest_on_linear_networks_behind_a_slow_link_and_needs_most_memory() {
    for network in LINEAR {
        let graph = step(network).graph;
        let slow = Link { bandwidth: Bytes(8_000_000_000), ..link() };
        let time = |policy, link| simulate(&graph, policy, link, Memory::Unlimited).step_time;
        let superneurons = time(SUPERNEURONS, &slow);
        for policy in [DYMEM, VDNN] {
            assert!(superneurons < time(policy, &slow), "{network} {policy}");
        }
        assert!(time(DYMEM, &link()) < time(SUPERNEURONS, &link()), "{network}");
        let smallest = |policy| smallest_capacity(&graph, policy, &link(), Placement::BestFit);
        for policy in [DYMEM, VDNN] {
            assert!(smallest(SUPERNEURONS) > smallest(policy), "{network} {policy}");
        }
    }
}

/// Dymem, section 5.3: in the memory that Dymem needs, vDNN does not run with any workspaces.
#[test]
fn dymem_runs_deep_residual_networks_where_vdnn_cannot() {
    for (network, mebibytes) in [("resnet50", 1400), ("resnet101", 1800), ("inception_v4", 2700)] {
        let graph = step_on_titan_x(network).graph;
        let runs = |policy, graph: &Graph| {
            let mut space = Placement::BestFit.space(Some(Bytes::mib(mebibytes)));
            let run = simulate(graph, policy, &fast_link(), Memory::Limited(space.as_mut()));
            run.out_of_memory.is_none()
        };
        assert!(runs(DYMEM, &graph), "{network}");
        for policy in [Policy::None, Policy::VdnnConv, VDNN, SUPERNEURONS] {
            assert!(!runs(policy, &graph.without_workspaces()), "{network} {policy}");
        }
    }
}

/// Dymem, section 2: copying the input of a pooling layer takes longer than computing it, that of a convolution
/// mostly does not.
#[test]
fn dymem_pooling_waits_for_its_copy_and_convolution_hides_it() {
    let graph = step("vgg16").graph;
    let (mut pools, mut convolutions, mut hidden) = (0, 0, 0);
    for (row, work) in graph.steps().iter().enumerate() {
        let Work::Forward(layer) = work.work else { continue };
        let kind = graph.layers()[layer.index()].kind;
        let input = graph.blocks().iter().find(|block| {
            block.role == BlockRole::Data && block.readers.contains(&StepId::new(row))
        });
        let Some(copy) = input.map(|block| link().time(block.size)) else { continue };
        match kind {
            LayerKind::Pool => {
                pools += 1;
                assert!(copy > work.duration);
            }
            LayerKind::Conv => {
                convolutions += 1;
                hidden += usize::from(copy < work.duration);
            }
            _ => {}
        }
    }
    assert!(pools >= 5 && convolutions == 13);
    assert!(hidden >= 10, "{hidden} of 13");
}

/// Dymem, section 2: a tensor that several layers read is copied once, with its last reader. In a residual block that is
/// the join, which computes too briefly to hide the copy: there, vDNN waits.
#[test]
fn dymem_vdnn_waits_at_the_joins_of_residual_blocks() {
    for network in ["resnet32", "resnet50", "resnet101"] {
        let graph = step(network).graph;
        let run = simulate(&graph, VDNN, &link(), Memory::Unlimited);
        let mut joined = 0;
        for id in graph.ids().filter(|&id| graph.block(id).readers.len() > 1) {
            let block = graph.block(id);
            let copies = |direction| {
                run.transfers.iter().filter(move |c| c.block == id && c.direction == direction)
            };
            if block.backward.is_empty() || copies(Direction::ToHost).count() == 0 {
                continue;
            }
            assert_eq!(copies(Direction::ToHost).count(), 1, "{network} {id:?}");
            assert_eq!(copies(Direction::ToDevice).count(), 1, "{network} {id:?}");
            let copy = copies(Direction::ToHost).next().expect("a copy");
            let last = *block.readers.last().expect("readers");
            let (start, end) = run.computing[last.index()];
            assert!(copy.issued == start, "{network} {id:?}");
            if graph.kind(last) == Some(LayerKind::Join) {
                joined += 1;
                // The next layer begins when the copy is done, and not when the join is.
                assert!(copy.end > end && run.computing[last.index() + 1].0 >= copy.end);
            }
        }
        assert!(joined >= 12, "{network}: {joined} shortcuts");
        // The average wait in the forward pass after a layer of a kind.
        let wait = |run: &Run, of: LayerKind| {
            let of_kind = |row: &usize| {
                let is_forward = matches!(graph.steps()[*row].work, Work::Forward(_));
                is_forward && graph.kind(StepId::new(*row)) == Some(of)
            };
            let rows: Vec<usize> = (0..graph.steps().len()).filter(of_kind).collect();
            let wait = |&row: &usize| (run.computing[row + 1].0 - run.computing[row].1).get();
            rows.iter().map(wait).sum::<i64>() as f64 / rows.len() as f64
        };
        let (join, convolution) = (wait(&run, LayerKind::Join), wait(&run, LayerKind::Conv));
        assert!(join > 1.9 * convolution, "{network}: {join} {convolution}");
        let dymem = simulate(&graph, DYMEM, &link(), Memory::Unlimited);
        assert!(wait(&dymem, LayerKind::Join) == 0.0, "{network}: Dymem waits for no copy");
    }
}

/// Dymem, table 4: twice the layers, less than twice the memory.
#[test]
fn dymem_memory_grows_less_than_the_depth_of_resnet() {
    for policy in [SERIAL, VDNN, DYMEM] {
        let [shallow, deep] =
            ["resnet50", "resnet101"].map(|network| live(&run(&step(network), policy)));
        assert!(deep > shallow && deep / shallow < 101.0 / 50.0, "{policy}: {}", deep / shallow);
    }
}

#[test]
fn less_is_live_the_more_vdnn_moves() {
    for network in LINEAR.into_iter().chain(NONLINEAR) {
        let step = step(network);
        let [all, conv, none] =
            [VDNN, Policy::VdnnConv, Policy::None].map(|policy| run(&step, policy).peak_live());
        assert!(all <= conv && conv <= none, "{network}: {all} {conv} {none}");
    }
}

#[test]
fn no_block_is_away_when_it_is_used() {
    for network in ["alexnet", "googlenet", "resnet32"] {
        let step = step(network);
        for policy in Policy::ALL {
            let run = run(&step, policy);
            let mut pieces = vec![(Nanos::MAX, Nanos::MAX); run.pieces.len()];
            for event in &run.events {
                match event.kind {
                    EventKind::Alloc => pieces[event.piece.index()].0 = event.time,
                    EventKind::Free => pieces[event.piece.index()].1 = event.time,
                }
            }
            for id in step.graph.ids() {
                let block = step.graph.block(id);
                let uses = block.writers.iter().chain(&block.readers).chain(&block.backward);
                for used in uses {
                    let (start, end) = run.computing[used.index()];
                    let is_there = pieces.iter().zip(&run.pieces).any(|(&(from, to), piece)| {
                        piece.block == id && from <= start && end <= to
                    });
                    assert!(is_there, "{network} {policy} {id:?} at {used:?}");
                }
            }
        }
    }
}

/// torchvision's and timm's modules run a branch to its end before the next one.
#[test]
fn recorded_networks_are_in_depth_first_order_but_for_shortcuts() {
    let linear = step("vgg16").graph;
    assert_eq!(depth_first(&linear).expect("an order"), linear);
    let inception = step("inception_v4").graph;
    let ordered = depth_first(&inception).expect("an order");
    let none = |graph| simulate(graph, Policy::None, &link(), Memory::Unlimited).peak_live();
    let (before, after) = (none(&inception).get() as f64, none(&ordered).get() as f64);
    assert!((0.95..1.05).contains(&(after / before)), "{}", after / before);
}
/// Traces of the CPU are lowered first; what the backward pass keeps is then found as in recordings of a GPU.
#[test]
fn uses_are_found_in_traces_of_the_cpu() {
    for (case, percent) in [
        ("gpt2_adamw", 99),
        ("llama_sgd_pos0", 94),
        ("mlp_adam", 99),
        ("mobilenetv3s_rmsprop_pos0", 99),
        ("resnet18_sgdm", 99),
        ("unet_adam", 99),
    ] {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
        let path = traces.join(case).join("trace.json.zst");
        let job = Job::from_path(path, &ReadOptions::default()).expect("a trace");
        let step = step_of(&estimate(), &job);
        let matches = step.matches;
        assert!(
            matches.explained.get() * 100 >= matches.kept.get() * percent,
            "{case}: {matches:?}"
        );
        let moved = run(&step, Policy::SaveOnCpu).moved(Direction::ToHost);
        assert!(moved.get() * 100 >= matches.kept.get() * 85, "{case}: {moved}");
    }
}
