//! A predicted snapshot says what the answer says, and what the allocator did.

use expect_test::expect;
use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::orchestrator::ZeroGradPlace;
use xmem::predict::{AllocatorKind, AllocatorSettings, NoSegments, SnapshotEnd};
use xmem::simulator::AllocatorChoice;
use xmem::snapshot::Snapshot;
use xmem::{Answer, Bytes, Device, Estimate, EstimateBuilder, Job, ReadOptions, Verdict};
use xmem_simulator::{
    DeviceConfig, Event, EventAction, Framework, FrameworkAllocator, Operation, Session,
};
use xmem_snapshot::{Action, AnnotationStage, BlockState, DeviceIndex, StackId};
use xmem_types::{Addr, Nanos, Request, RequestKind};

const GPU: DeviceIndex = DeviceIndex(0);

fn job(name: &str) -> Job {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    Job::from_path(root.join(name).join("trace.json.zst"), &ReadOptions::default())
        .expect("a trace")
}

fn builder() -> EstimateBuilder {
    Estimate::builder(Device::custom(Bytes::gib(12))).convolutions(Arc::new(FittedModel))
}

fn with(kind: AllocatorKind, conf: &str) -> EstimateBuilder {
    builder().allocator(settings(kind, conf))
}

fn settings(kind: AllocatorKind, conf: &str) -> AllocatorSettings {
    let conf = Some(conf.to_owned()).filter(|conf| !conf.is_empty());
    AllocatorSettings { kind: Some(kind), conf, ..Default::default() }
}

fn recorded(estimate: &Estimate, job: &Job, end: SnapshotEnd) -> (Answer, Snapshot) {
    let answer = estimate.job(job).expect("an answer");
    (answer, estimate.predict(job).expect("a prediction").snapshot(end).expect("a snapshot"))
}

/// Every allocator that has segments, by conf.
fn allocators() -> Vec<(AllocatorKind, &'static str)> {
    vec![
        (AllocatorKind::Native, ""),
        (AllocatorKind::Native, "expandable_segments:True"),
        (AllocatorKind::Native, "max_split_size_mb:32,roundup_power2_divisions:4"),
        (AllocatorKind::Uncached, ""),
        (AllocatorKind::Bfc, ""),
        (AllocatorKind::BfcGrowth, ""),
    ]
}

/// The highest number of requested bytes that the program held, by the prediction.
fn requested_peak(requests: &[Request]) -> Bytes {
    let mut sizes = std::collections::BTreeMap::new();
    let (mut now, mut peak) = (Bytes::ZERO, Bytes::ZERO);
    for request in requests {
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                sizes.insert(request.block, size);
                now += size;
                peak = peak.max(now);
            }
            RequestKind::Free => {
                now = now.saturating_sub(sizes.remove(&request.block).expect("held"));
            }
        }
    }
    peak
}

#[test]
fn its_peaks_are_those_of_the_answer() {
    for name in ["mlp_adam", "gpt2_adamw", "resnet18_sgdm", "qwen3_adamw_ckpt"] {
        let job = job(name);
        for (kind, conf) in allocators() {
            let estimate = with(kind, conf).build();
            let (answer, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
            let (usage, odd) = snapshot.usage(GPU);
            assert!(odd.is_empty(), "{odd:?}");
            if kind == AllocatorKind::Uncached {
                // Segments are what was asked for; the answer counts the device's whole pages.
                assert_eq!(usage.reserved.peak, usage.requested.peak);
                assert!(usage.reserved.peak <= answer.memory.peak.reserved);
            } else {
                assert_eq!(
                    usage.reserved.peak, answer.memory.peak.reserved,
                    "{name} {kind:?} {conf}"
                );
            }
            assert_eq!((usage.requested.start, usage.reserved.start), (Bytes(0), Bytes(0)));
            let predicted = estimate.predict(&job).expect("a prediction");
            let prediction = predicted.prediction();
            assert_eq!(usage.requested.peak, requested_peak(prediction.requests()), "{name}");
        }
    }
}

#[test]
fn its_entries_are_the_events_of_the_allocator() {
    let job = job("gpt2_adamw");
    for (kind, conf) in allocators() {
        let estimate = with(kind, conf).build();
        let (_, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
        let predicted = estimate.predict(&job).expect("a prediction");
        let prediction = predicted.prediction();
        let expected = events(prediction.requests(), prediction.allocator(), prediction.device());
        let actions = snapshot.trace(GPU).iter().map(|e| (e.action, e.addr, e.size, e.stream));
        let expected = expected.iter().map(|e| (action(e), e.addr, e.size, e.stream));
        assert!(actions.eq(expected), "{kind:?} {conf}");
        let again = snapshot.requests(GPU);
        assert_eq!((again.frees_without_allocation, again.unrecorded_frees), (0, 0));
        assert_eq!(again.requests.len(), prediction.requests().len());
    }
}

fn events(requests: &[Request], allocator: &AllocatorChoice, device: &DeviceConfig) -> Vec<Event> {
    let device = xmem_simulator::Device::new(device);
    let mut session = Session::new(allocator.over(device, Vec::new()));
    for request in requests {
        let operation = match request.kind {
            RequestKind::Free => Operation::Free(request.block),
            RequestKind::Alloc { size, stream } => {
                Operation::Alloc { block: request.block, size, stream }
            }
        };
        session.apply(&operation).expect("a schedule makes sense");
    }
    std::mem::take(session.allocator_mut().observer_mut())
}

fn action(event: &Event) -> Action {
    match event.action {
        EventAction::Alloc => Action::Alloc,
        EventAction::FreeRequested => Action::FreeRequested,
        EventAction::FreeCompleted => Action::FreeCompleted,
        EventAction::SegmentAlloc => Action::SegmentAlloc,
        EventAction::SegmentFree => Action::SegmentFree,
        EventAction::SegmentMap => Action::SegmentMap,
        EventAction::SegmentUnmap => Action::SegmentUnmap,
        EventAction::Oom => panic!("there is room"),
    }
}

#[test]
fn its_segments_are_what_its_entries_lead_to() {
    let job = job("resnet18_sgdm");
    for (kind, conf) in allocators() {
        let (_, snapshot) = recorded(&with(kind, conf).build(), &job, SnapshotEnd::Job);
        let live = live(&snapshot);
        assert!(live.len() > 100);
        let mut found = 0;
        let mut end = Addr(0);
        for segment in &snapshot.segments {
            assert!(segment.address >= end, "in order and apart");
            end = segment.address;
            for block in &segment.blocks {
                assert_eq!(block.address, end, "no gap");
                end = Addr(end.0 + block.size.get());
                let alive = live.get(&block.address);
                assert_eq!(block.state == BlockState::ActiveAllocated, alive.is_some());
                if let Some(&(size, stack)) = alive {
                    assert_eq!((block.requested, block.stack), (Some(size), stack));
                    assert!(block.size >= size);
                    found += 1;
                }
            }
            assert_eq!(end, Addr(segment.address.0 + segment.total.get()));
            assert_ne!(segment.stack, StackId::EMPTY);
        }
        assert_eq!(found, live.len(), "{kind:?} {conf}");
    }
}

/// By address, what the entries leave allocated: size and stack.
fn live(snapshot: &Snapshot) -> std::collections::BTreeMap<Addr, (Bytes, StackId)> {
    let mut live = std::collections::BTreeMap::new();
    for entry in snapshot.trace(GPU) {
        match entry.action {
            Action::Alloc => {
                assert_eq!(live.insert(entry.addr, (entry.size, entry.stack)), None);
            }
            Action::FreeCompleted => {
                let (size, _) = live.remove(&entry.addr).expect("alive");
                assert_eq!(size, entry.size);
            }
            _ => {}
        }
    }
    live
}

#[test]
fn what_does_not_fit_ends_where_memory_runs_out_unless_asked_otherwise() {
    let job = job("gpt2_adamw");
    for (kind, conf) in allocators() {
        let device = Device::custom(Bytes::mib(600));
        let estimate = Estimate::builder(device)
            .convolutions(Arc::new(FittedModel))
            .allocator(settings(kind, conf))
            .build();
        let (answer, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
        assert_eq!(answer.verdict, Verdict::DoesNotFit, "{kind:?} {conf}");
        let told = answer.memory.out_of_memory.expect("memory ran out");
        let last = snapshot.trace(GPU).last().expect("entries");
        let Action::OutOfMemory { device_free } = last.action else { panic!("{last:?}") };
        assert_eq!((device_free, last.addr), (told.free, Addr(0)), "{kind:?} {conf}");
        assert!(last.size >= told.requested);
        let (usage, odd) = snapshot.usage(GPU);
        assert!(odd.is_empty(), "{odd:?}");
        assert_eq!((usage.requested.start, usage.reserved.start), (Bytes(0), Bytes(0)));
        let allocated: Bytes = snapshot.segments.iter().map(|s| s.allocated).sum();
        assert_eq!(allocated, told.allocated);
        let end = snapshot.annotations.iter().filter_map(|a| a.time).max();
        assert_eq!(end, last.time);

        let (_, whole) = recorded(&estimate, &job, SnapshotEnd::Job);
        let predicted = estimate.predict(&job).expect("a prediction");
        let prediction = predicted.prediction();
        assert_eq!(whole.requests(GPU).requests.len(), prediction.requests().len());
        // Without caching, segments are what was asked for; the answer counts whole pages.
        if kind != AllocatorKind::Uncached {
            let reserved: Bytes = snapshot.segments.iter().map(|s| s.total).sum();
            assert_eq!(reserved, told.reserved);
            assert_eq!(
                whole.usage(GPU).0.reserved.peak,
                answer.memory.peak.reserved,
                "{kind:?} {conf}"
            );
        }
    }
}

#[test]
fn it_ends_with_the_iterations_that_the_estimate_is_about() {
    let job = job("gpt2_adamw");
    let estimate = builder().iterations("1".parse().expect("one iteration")).build();
    let predicted = estimate.predict(&job).expect("a prediction");
    let prediction = predicted.prediction();
    let snapshot = estimate
        .predict(&job)
        .expect("a prediction")
        .snapshot(SnapshotEnd::OutOfMemory)
        .expect("a snapshot");
    assert_eq!(snapshot.requests(GPU).requests.len(), prediction.iteration_starts()[1]);
    assert!(prediction.iteration_starts()[1] < prediction.requests().len() / 2);
}

#[test]
fn an_allocator_without_segments_is_refused() {
    let estimate = with(AllocatorKind::MallocAsync, "").build();
    let refused =
        estimate.predict(&job("mlp_adam")).expect("a prediction").snapshot(SnapshotEnd::Job);
    assert!(matches!(refused, Err(NoSegments { .. })));
}

/// The frames of a stack as viewers show them.
fn shown(snapshot: &Snapshot, stack: StackId) -> Vec<String> {
    let text = |sym| snapshot.strings.resolve(sym);
    let frames = snapshot.frames.stack(stack).iter().map(|&id| snapshot.frames.frame(id));
    frames.map(|f| format!("{}:{}:{}", text(f.filename), f.line, text(f.name))).collect()
}

#[test]
fn every_entry_says_what_it_is_for() {
    let (job, estimate) = (job("resnet18_sgdm"), builder().build());
    let (_, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
    for entry in snapshot.trace(GPU) {
        let frames = shown(&snapshot, entry.stack);
        let role = frames.last().expect("a frame");
        assert!(role.starts_with("xmem:0:role: "), "{frames:?}");
        assert!(frames.iter().any(|f| f.starts_with("xmem:0:phase: ")), "{frames:?}");
    }
    let entries = |action| snapshot.trace(GPU).iter().filter(move |e| e.action == action);
    let workspace = entries(Action::Alloc)
        .map(|entry| shown(&snapshot, entry.stack))
        .find(|frames| frames.last().is_some_and(|f| f == "xmem:0:role: workspace"))
        .expect("a convolution's");
    expect![[r#"
        operator:0:aten::_convolution
        operator:0:aten::convolution
        operator:0:aten::conv2d
        torchvision/models/resnet.py:266:_forward_impl
        nn.Module: Conv2d_0:0:ResNet_0 > Conv2d_0
        nn.Module: ResNet_0:0:ResNet_0
        annotation:0:## forward ##
        annotation:0:## iter 0 ##
        xmem:0:phase: forward
        xmem:0:iteration 0
        xmem:0:rule: cudnn-convolution
        xmem:0:role: workspace"#]]
    .assert_eq(&workspace.join("\n"));
    let gradient = entries(Action::FreeRequested)
        .map(|entry| shown(&snapshot, entry.stack))
        .find(|frames| frames.last().is_some_and(|f| f == "xmem:0:role: gradient"))
        .expect("a gradient's");
    expect![[r#"
        annotation:0:Optimizer.zero_grad#SGD.zero_grad
        annotation:0:## zero_grad ##
        annotation:0:## iter 1 ##
        xmem:0:phase: zero_grad
        xmem:0:iteration 1
        xmem:0:frees what was allocated in:
        operator:0:aten::empty
        operator:0:aten::convolution_backward
        operator:0:ConvolutionBackward0
        operator:0:autograd::engine::evaluate_function: ConvolutionBackward0
        torchvision/models/resnet.py:266:_forward_impl
        nn.Module: Conv2d_0:0:ResNet_0 > Conv2d_0
        nn.Module: ResNet_0:0:ResNet_0
        annotation:0:## backward ##
        annotation:0:## iter 0 ##
        xmem:0:phase: backward
        xmem:0:iteration 0
        xmem:0:role: gradient"#]]
    .assert_eq(&gradient.join("\n"));
}

#[test]
fn a_free_that_was_moved_is_not_where_the_trace_had_it() {
    let job = job("resnet18_sgdm");
    let zeroed = |estimate: Estimate| {
        let (_, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
        let frees = snapshot.trace(GPU).iter().filter(|e| e.action == Action::FreeRequested);
        let stacks = frees.map(|entry| shown(&snapshot, entry.stack));
        let gradients = stacks.filter(|f| f.last().is_some_and(|f| f == "xmem:0:role: gradient"));
        let first = gradients.filter(|f| f[0].starts_with("annotation:0:Optimizer.zero_grad"));
        first.count()
    };
    assert!(zeroed(builder().build()) > 100);
    let place = ZeroGradPlace::BeforeBackward;
    assert_eq!(zeroed(builder().zero_grad(place).build()), 0);
}

#[test]
fn iterations_and_phases_are_annotations_that_nest() {
    let (job, estimate) = (job("mlp_adam"), builder().build());
    let (_, snapshot) = recorded(&estimate, &job, SnapshotEnd::OutOfMemory);
    let mut open = Vec::new();
    let mut text = String::new();
    let mut now = Nanos::ZERO;
    for annotation in &snapshot.annotations {
        let name = snapshot.strings.resolve(annotation.name);
        let time = annotation.time.expect("a time");
        assert!(time >= now);
        now = time;
        match annotation.stage {
            AnnotationStage::Start => {
                text += &format!("{}{name}\n", "  ".repeat(open.len()));
                open.push(name);
            }
            AnnotationStage::End => assert_eq!(open.pop(), Some(name)),
        }
    }
    assert!(open.is_empty());
    expect![[r#"
        init
        iteration 0
          data
          zero_grad
          data
          forward
          backward
          optimizer_step
          data
        iteration 1
          data
          zero_grad
          data
          forward
          backward
          optimizer_step
          data
        iteration 2
          data
          zero_grad
          data
          forward
          backward
          optimizer_step
          data
    "#]]
    .assert_eq(&text);
    let times: Vec<_> =
        snapshot.trace(GPU).iter().map(|entry| entry.time.expect("a time")).collect();
    assert!(times.is_sorted());
    assert!(times[0] >= snapshot.annotations[0].time.expect("a time"));
    let year_2020 = Nanos(1_577_836_800_000_000_000);
    assert!(times[0] > year_2020, "since the epoch");
}
