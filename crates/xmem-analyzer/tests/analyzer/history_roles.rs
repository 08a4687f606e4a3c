//! Roles of an allocator's history, which has no operators: by the parts of the program, lifetimes and sizes.

use xmem_analyzer::integrity::SnapshotEvidence;
use xmem_analyzer::{
    GpuRecording, GpuSource, History, HistoryBlock, HistoryPart, HistorySite, Phase, Role, Tick,
    analyze_history,
};
use xmem_types::{Addr, Bytes, Nanos, StreamId};

const PARTS: [HistoryPart; 9] = [
    HistoryPart::Unknown,
    HistoryPart::NoFrame,
    HistoryPart::Parameters,
    HistoryPart::Buffers,
    HistoryPart::Workspace,
    HistoryPart::Phase(Phase::Forward),
    HistoryPart::Phase(Phase::Backward),
    HistoryPart::Phase(Phase::OptimizerStep),
    HistoryPart::Phase(Phase::ZeroGrad),
];

/// Blocks in the order of their allocations: where, size, and when they are freed, as positions of allocations that
/// follow the free; the first `earlier` were there before.
fn roles(blocks: &[(HistoryPart, u64, Option<u32>)], earlier: usize) -> Vec<Role> {
    let at = |tick: u32| (Tick(tick), Nanos(i64::from(tick)));
    let block =
        |(row, &(part, size, freed)): (usize, &(HistoryPart, u64, Option<u32>))| HistoryBlock {
            size: Bytes(size),
            address: Addr(0x1000 * (row as u64 + 1)),
            stream: StreamId(0),
            pool: None,
            // A free lies between two allocations.
            alloc: at(2 * row as u32),
            free: freed.map(|before| at(2 * before - 1)),
            completed: None,
            freed_in: None,
            site: PARTS.iter().position(|known| *known == part).expect("a part"),
        };
    let mut gpu = GpuRecording::new(GpuSource::Snapshot);
    gpu.earlier = earlier;
    let history = History {
        blocks: blocks.iter().enumerate().map(block).collect(),
        sites: PARTS.iter().map(|&part| HistorySite { part, ..HistorySite::default() }).collect(),
        base_time: None,
        gpu,
        evidence: SnapshotEvidence::default(),
    };
    let (profile, _) = analyze_history(history);
    profile.blocks.iter().map(|block| block.role).collect()
}

use HistoryPart::{Buffers, NoFrame, Parameters, Unknown, Workspace};
const FORWARD: HistoryPart = HistoryPart::Phase(Phase::Forward);
const OPTIMIZER: HistoryPart = HistoryPart::Phase(Phase::OptimizerStep);

#[test]
fn parameters_gradients_and_activations_of_a_snapshot_are_not_unknown() {
    let blocks = [
        (Parameters, 400, None),
        (Buffers, 16, None),
        // The batch.
        (Unknown, 80, Some(10)),
        // An activation, one that backward does not need, and the loss, outside of modules.
        (FORWARD, 1000, Some(8)),
        (FORWARD, 1000, Some(5)),
        (Unknown, 4, Some(8)),
        // Backward, on a thread without Python: a gradient, and what is freed on the way.
        (Workspace, 8000, None),
        (NoFrame, 400, Some(10)),
        (NoFrame, 1000, Some(9)),
        // The optimizer, then the next batch and what forward keeps.
        (OPTIMIZER, 400, None),
        (Unknown, 80, None),
        (FORWARD, 1000, None),
        (NoFrame, 400, None),
        (OPTIMIZER, 1, Some(14)),
    ];
    let expected = [
        Role::Parameter,
        Role::Buffer,
        Role::Input,
        Role::Activation,
        Role::Temporary,
        Role::Activation,
        Role::Workspace,
        Role::Gradient,
        Role::Temporary,
        Role::OptimizerState,
        Role::Unknown,
        Role::Activation,
        Role::Gradient,
        Role::Temporary,
    ];
    assert_eq!(roles(&blocks, 0), expected);
}

#[test]
fn blocks_from_before_a_history_are_parameters_as_far_as_gradients_have_their_sizes() {
    let blocks = [
        (Unknown, 400, None),
        (Unknown, 400, None),
        (Unknown, 400, None),
        (Unknown, 77, None),
        (FORWARD, 1000, Some(6)),
        (NoFrame, 400, None),
        (OPTIMIZER, 1, Some(7)),
        (FORWARD, 1000, None),
    ];
    let found = roles(&blocks, 4);
    assert_eq!(
        found[..4],
        [Role::Parameter, Role::OptimizerState, Role::OptimizerState, Role::Unknown]
    );
}

#[test]
fn without_any_stack_no_role_is_told() {
    let blocks = [(NoFrame, 400, None), (NoFrame, 1000, Some(3)), (NoFrame, 8, None)];
    let found = roles(&blocks, 0);
    assert!(found.iter().all(|role| matches!(role, Role::Unknown | Role::Temporary)), "{found:?}");
}

#[test]
fn results_of_inference_are_not_called_activations() {
    let blocks = [
        (Parameters, 400, None),
        (Unknown, 8, Some(4)),
        (FORWARD, 9, None),
        (FORWARD, 9, Some(4)),
        (Unknown, 8, None),
    ];
    assert!(!roles(&blocks, 0).contains(&Role::Activation));
}

#[test]
fn gradients_that_are_freed_before_the_next_allocation_are_not_temporary() {
    let at = |tick: u32| (Tick(tick), Nanos(i64::from(tick)));
    let block =
        |row: u32, size: u64, free: Option<u32>, part: HistoryPart, freed_in| HistoryBlock {
            size: Bytes(size),
            address: Addr(0x1000 * (u64::from(row) + 1)),
            stream: StreamId(0),
            pool: None,
            alloc: at(2 * row),
            free: free.map(at),
            completed: None,
            freed_in,
            site: PARTS.iter().position(|known| *known == part).expect("a part"),
        };
    let zero_grad = HistoryPart::Phase(Phase::ZeroGrad);
    let blocks = vec![
        block(0, 400, None, Parameters, None),
        block(1, 400, None, FORWARD, None),
        // Freed by `zero_grad`, and by backward itself, before forward allocates again.
        block(2, 400, Some(7), NoFrame, Some(zero_grad)),
        block(3, 400, Some(7), NoFrame, Some(NoFrame)),
        block(4, 400, None, FORWARD, None),
        // The history ends: a gradient, and a block of no parameter's size.
        block(5, 400, None, NoFrame, None),
        block(6, 77, None, NoFrame, None),
        // A workspace of cuBLAS.
        block(7, 8_519_680, None, NoFrame, None),
    ];
    let history = History {
        blocks,
        sites: PARTS.iter().map(|&part| HistorySite { part, ..HistorySite::default() }).collect(),
        base_time: None,
        gpu: GpuRecording::new(GpuSource::Snapshot),
        evidence: SnapshotEvidence::default(),
    };
    let (profile, _) = analyze_history(history);
    let roles: Vec<Role> = profile.blocks[2..].iter().map(|block| block.role).collect();
    let expected = [
        Role::Gradient,
        Role::Temporary,
        Role::Activation,
        Role::Gradient,
        Role::Unknown,
        Role::Workspace,
    ];
    assert_eq!(roles, expected);
}

/// The size of Hopper's workspaces is that of many tensors: those that are kept, and that no parameter has, are workspaces.
#[test]
fn workspaces_of_hopper_are_those_that_outlive_iterations() {
    const LARGE: u64 = 32 << 20;
    let job = |parameter: u64| {
        [
            (Parameters, parameter, None),
            // A workspace, and an activation of the same size.
            (FORWARD, LARGE, None),
            (FORWARD, LARGE, Some(4)),
            // Backward has a handle of its own, and accumulates a gradient.
            (NoFrame, LARGE, None),
            (NoFrame, parameter, None),
            (OPTIMIZER, 1, Some(6)),
            (FORWARD, LARGE, Some(7)),
            (NoFrame, 1, Some(8)),
            (OPTIMIZER, 1, Some(9)),
            // The history ends in forward.
            (FORWARD, LARGE, None),
        ]
    };
    let of = |parameter| roles(&job(parameter), 0);
    let found = of(400);
    assert_eq!([found[1], found[3]], [Role::Workspace; 2]);
    assert_eq!(found[2], Role::Activation);
    assert_eq!(found[9], Role::Unknown);
    let found = of(LARGE);
    assert_eq!([found[1], found[3]], [Role::Unknown, Role::Gradient], "it may be a gradient");
}
