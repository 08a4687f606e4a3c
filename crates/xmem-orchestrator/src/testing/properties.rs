//! Properties that hold for any trace and any target.

use super::recordings;
use crate::testing::case::on;
use crate::testing::case::scheduled;
use crate::testing::{Script, target};
use crate::{OptimizerImpl, Schedule, Target, ZeroGradPlace, rules};
use proptest::prelude::*;
use xmem_analyzer::{Profile, Tick};
use xmem_types::{BlockId, Bytes, Nanos, Request, RequestKind, StreamId};

/// Asserts that an allocator can serve a schedule, and that its account adds up.
fn assert_well_formed(profile: &Profile, plan: &Schedule) {
    assert_eq!(plan.requests.len(), plan.times.len(), "a time for each request");
    assert!(plan.times.is_sorted(), "times never decrease");
    let mut state = vec![State::Unknown; plan.blocks.len()];
    for request in &plan.requests {
        let block = plan.block(request.block);
        let now = &mut state[request.block.index()];
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                assert_eq!(*now, State::Unknown, "{block:?} is allocated twice");
                assert_eq!(size, block.size, "{block:?} is requested in another size");
                *now = State::Live;
            }
            RequestKind::Free => {
                assert_eq!(*now, State::Live, "{block:?} is freed while it is not allocated");
                *now = State::Freed;
            }
        }
    }
    assert!(!state.contains(&State::Unknown), "every block is allocated");
    assert!(
        plan.effects.iter().map(|e| e.rule).eq(rules().iter().copied()),
        "an effect for each rule, in order"
    );
    let sum = |part: fn(&crate::RuleEffect) -> (u64, Bytes)| {
        let parts = plan.effects.iter().map(part);
        parts.fold((0, 0), |(n, b), (count, bytes)| (n + count, b + i128::from(bytes.get())))
    };
    let (dropped, added) = (sum(|e| e.dropped), sum(|e| e.added));
    let (before, after) = (sum(|e| (0, e.resized.1)).1, sum(|e| (0, e.resized.2)).1);
    let total = |bytes: &mut dyn Iterator<Item = Bytes>| -> i128 {
        bytes.map(|b| i128::from(b.get())).sum()
    };
    let recorded = total(&mut profile.blocks.iter().map(|b| b.size));
    let scheduled = total(&mut plan.blocks.iter().map(|b| b.size));
    assert_eq!(profile.blocks.len() as u64 + added.0 - dropped.0, plan.blocks.len() as u64);
    assert_eq!(recorded - dropped.1 + added.1 - before + after, scheduled);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Live,
    Freed,
}

/// The requests of the CPU recording itself.
fn recorded(profile: &Profile) -> (Vec<Request>, Vec<Nanos>) {
    let mut events: Vec<(Tick, Nanos, Request)> = Vec::new();
    for (i, b) in profile.blocks.iter().enumerate() {
        let block = BlockId::new(i);
        let kind = RequestKind::Alloc { size: b.size, stream: StreamId(0) };
        events.push((b.alloc, b.alloc_time, Request { block, kind }));
        if let (Some(tick), Some(time)) = (b.free, b.free_time) {
            events.push((tick, time, Request { block, kind: RequestKind::Free }));
        }
    }
    // A block that ends where its address is handed out again shares that event's tick.
    events.sort_by_key(|e| (e.0, e.2.kind == RequestKind::Free, e.2.block));
    (events.iter().map(|e| e.2).collect(), events.iter().map(|e| e.1).collect())
}

fn assert_all_holds(profile: &Profile, target: &Target) {
    let (plan, notes) = scheduled(profile, target);
    assert_well_formed(profile, &plan);
    let (again, same_notes) = scheduled(profile, target);
    assert_eq!(
        (&plan.requests, &plan.times, &plan.effects),
        (&again.requests, &again.times, &again.effects)
    );
    assert_eq!(notes, same_notes);

    let mut none = target.clone();
    for rule in rules() {
        none.disabled.insert(rule.name.into());
        let mut without = target.clone();
        without.disabled.insert(rule.name.into());
        let (plan, _) = scheduled(profile, &without);
        assert_well_formed(profile, &plan);
        let effect =
            plan.effects.iter().find(|e| e.rule == *rule).expect("an effect for each rule");
        assert!(effect.is_empty(), "{} is switched off and acts", rule.name);
    }
    let (plan, _) = scheduled(profile, &none);
    let (requests, times) = recorded(profile);
    assert_eq!((plan.requests, plan.times), (requests, times), "without rules: the recording");
}

fn targets() -> [Target; 4] {
    let what_if = |zero_grad, set_to_none, optimizer, target| Target {
        zero_grad,
        set_to_none,
        optimizer: Some(optimizer),
        ..target
    };
    [
        target(),
        what_if(Some(ZeroGradPlace::BeforeBackward), true, OptimizerImpl::Fused, on("t4-16g", 2)),
        what_if(
            Some(ZeroGradPlace::IterationStart),
            true,
            OptimizerImpl::ForLoop,
            on("h100-80g", 15),
        ),
        what_if(None, false, OptimizerImpl::Foreach, on("b200-180g", 12)),
    ]
}

#[test]
fn recordings_become_schedules() {
    for name in recordings::NAMES {
        let profile = recordings::profile(name);
        for target in targets() {
            assert_all_holds(&profile, &target);
        }
    }
}

/// Operators that rules look at, annotations, and their arguments over three sizes.
const MENU: &[(&str, &str)] = &[
    ("aten::mm", "f32[A,B] f32[B,C]"),
    ("aten::addmm", "f32[C] f32[A,B] f32[B,C] 1 1"),
    ("aten::linear", "bf16[A,B] bf16[C,B] -"),
    ("aten::dropout", "f32[A,B] 0.1 True"),
    ("aten::sum", "f32[A,B,C] (0) False -"),
    ("aten::linalg_vector_norm", "bf16[A,B] 2 (-1) False -"),
    ("aten::_convolution", "f32[A,B,C,C] f32[B,B,A,A] - (1,1) (1,1) (1,1) False (0,0) 1"),
    ("aten::_convolution", "f16[A,B,C] f16[B,C,A] - (2) (0) (1) True (0) 1"),
    (
        "aten::convolution_backward",
        "f32[A,B,C,C] f32[A,B,C,C] f32[B,B,A,A] (B) (1,1) (1,1) (1,1) False (0,0) 1 (True,True,True)",
    ),
    ("aten::embedding_dense_backward", "f32[A,B] i64[A] C -1 False"),
    ("aten::_softmax_backward_data", "f32[A,B] f32[A,B] -1 6"),
    (
        "aten::scaled_dot_product_attention",
        "f32[A,B,C,8] f32[A,B,C,8] f32[A,B,C,8] f32[A,1,C,C] 0.1 False - False",
    ),
    (
        "aten::scaled_dot_product_attention",
        "bf16[A,B,C,8] bf16[A,B,C,8] bf16[A,C,B,8] - 0.0 True - True",
    ),
    ("aten::_scaled_dot_product_attention_math", "f32[A,B,C,8]"),
    ("aten::_scaled_dot_product_flash_attention_for_cpu", "f32[A,B,C,8]"),
    ("aten::cross_entropy_loss", "bf16[A,B] i64[A] - 1 -100 0.0"),
    ("aten::_log_softmax", "f32[A,B] 1 False"),
    ("aten::pow", "bf16[A,B] 3"),
    ("aten::mul", "bf16[A,B] bf16[A,B]"),
    ("aten::clone", "f32[A,B,C,8] 0"),
    ("aten::_to_copy", "bf16[A,B] 6 - - - False -"),
    ("aten::zeros", "(A,B)"),
    ("aten::detach", "f32[A,B]"),
    ("aten::sqrt", "f32[A,B]"),
    ("aten::add", ""),
];

const MARKS: &[&str] = &[
    "ProfilerStep#0",
    "Optimizer.step#Adam.step",
    "Optimizer.step#Adadelta.step",
    "Optimizer.step#Unheard_of.step",
    "Optimizer.zero_grad#Adam.zero_grad",
];

/// A program: calls within calls, each allocating, then freeing some live blocks.
#[derive(Clone, Debug)]
struct Call {
    kind: Kind,
    sizes: [u64; 3],
    sequence: u32,
    allocs: Vec<usize>,
    frees: Vec<usize>,
    inner: Vec<Self>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Operator(usize),
    Node,
    Accumulate,
    Mark(usize),
}

fn program() -> impl Strategy<Value = Vec<Call>> {
    let kind = prop_oneof![
        12 => (0..MENU.len()).prop_map(Kind::Operator),
        4 => Just(Kind::Node),
        2 => Just(Kind::Accumulate),
        2 => (0..MARKS.len()).prop_map(Kind::Mark),
    ];
    let size = || prop::sample::select(vec![0_u64, 1, 2, 3, 8, 50, 4000]);
    let parts = move || {
        (
            kind.clone(),
            [size(), size(), size()],
            0..12_u32,
            prop::collection::vec(0..8_usize, 0..4),
            prop::collection::vec(0..64_usize, 0..4),
        )
    };
    let leaf = parts().prop_map(|(kind, sizes, sequence, allocs, frees)| Call {
        kind,
        sizes,
        sequence,
        allocs,
        frees,
        inner: Vec::new(),
    });
    let call = leaf.prop_recursive(4, 40, 5, move |inner| {
        (parts(), prop::collection::vec(inner, 1..5)).prop_map(
            |((kind, sizes, sequence, allocs, frees), inner)| Call {
                kind,
                sizes,
                sequence,
                allocs,
                frees,
                inner,
            },
        )
    });
    prop::collection::vec(call, 1..12)
}

/// Runs a call; `live` are the blocks that are allocated.
fn run(t: &mut Script, call: &Call, live: &mut Vec<String>) {
    let [a, b, c] = call.sizes;
    let mut body = |t: &mut Script| {
        for &pick in &call.allocs {
            let bytes =
                [4, 8, a * b * 4, a * b * 2, a * b * c * 4, a * b * c * 32, a * c * c * 4, b * 4]
                    [pick];
            if bytes > 0 {
                let name = format!("block{}", t.names.len());
                t.alloc(&name, bytes);
                live.push(name);
            }
        }
        for inner in &call.inner {
            run(t, inner, live);
        }
        for &pick in &call.frees {
            if !live.is_empty() {
                let name = live.swap_remove(pick % live.len());
                t.free(&name);
            }
        }
    };
    let sized = |text: &str| {
        let text = text.replace('A', &a.to_string()).replace('B', &b.to_string());
        text.replace('C', &c.to_string())
    };
    match call.kind {
        Kind::Operator(n) => t.op_seq(call.sequence, MENU[n].0, &sized(MENU[n].1), body),
        Kind::Node => t.node(call.sequence, "AnyBackward0", body),
        Kind::Accumulate => {
            body(t);
            t.accumulate(&sized("f32[A,B]"));
        }
        Kind::Mark(n) => t.mark(MARKS[n], body),
    }
}

proptest! {
    #[test]
    fn any_program_becomes_a_schedule(program in program(), which in 0..4_usize) {
        let mut script = Script::default();
        let mut live = Vec::new();
        for call in &program {
            run(&mut script, call, &mut live);
        }
        let options = xmem_trace::ReadOptions::default();
        let (trace, _) = xmem_trace::read_bytes(script.json().as_bytes(), &options).expect("a trace");
        let (profile, _) = xmem_analyzer::analyze(trace);
        prop_assert_eq!(profile.blocks.len(), script.names.len());
        assert_all_holds(&profile, &targets()[which]);
    }
}
