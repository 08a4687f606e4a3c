//! Tensors that are sent together: flattened into buffers of a type and a size (torch/csrc/distributed/c10d/reducer.cpp,
//! `compute_bucket_assignment_by_size`; torch/csrc/distributed/c10d/comm.cpp, `broadcast_coalesced`).

use super::bytes;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::Tensor;
use std::collections::VecDeque;

/// The buffer of a broadcast (torch/nn/parallel/distributed.py, `broadcast_bucket_size`).
const MAX_BYTES: u64 = 250 << 20;
/// Broadcasts that run at a time.
const IN_FLIGHT: usize = 2;

/// Divides tensors, by their places, into buckets of one type: a bucket is complete when it has reached its limit. The
/// limits are those of the first, the second … bucket of a type; the last one holds for all others. Complete buckets come first.
pub(super) fn buckets(
    tensors: &[Tensor],
    order: impl IntoIterator<Item = usize>,
    limits: &[u64],
) -> Vec<Vec<usize>> {
    let mut open: Vec<(DType, Vec<usize>, u64, usize)> = Vec::new();
    let mut complete = Vec::new();
    for at in order {
        let Some(tensor) = tensors.get(at) else { continue };
        let known = open.iter().position(|(dtype, ..)| *dtype == tensor.dtype());
        let place = known.unwrap_or_else(|| {
            open.push((tensor.dtype(), Vec::new(), 0, 0));
            open.len() - 1
        });
        let (_, members, size, number) = &mut open[place];
        members.push(at);
        *size += bytes(tensor);
        let limit = limits.get(*number).or(limits.last()).copied().unwrap_or(u64::MAX);
        if *size >= limit {
            complete.push(std::mem::take(members));
            *size = 0;
            *number += 1;
        }
    }
    complete.extend(open.into_iter().map(|(_, members, ..)| members).filter(|m| !m.is_empty()));
    complete
}

/// Elements of some tensors.
pub(super) fn elements(tensors: &[Tensor], members: &[usize]) -> i64 {
    members.iter().map(|&at| tensors[at].elements()).sum()
}

/// `_broadcast_coalesced`.
pub(super) fn broadcast(eager: &Eager, tensors: &[Tensor]) {
    let mut all = buckets(tensors, 0..tensors.len(), &[MAX_BYTES]);
    all.sort_by_key(|members| members.first().copied());
    let mut in_flight = VecDeque::new();
    for members in all {
        if in_flight.len() >= IN_FLIGHT {
            in_flight.pop_front();
        }
        let dtype = tensors[members[0]].dtype();
        let flat = eager
            .call("aten::cat", args![0_i64], || eager.empty(&[elements(tensors, &members)], dtype));
        eager.mark("on_device", &flat);
        eager.call("c10d::broadcast_", args![flat], || ());
        in_flight.push_back(flat);
    }
    while in_flight.pop_front().is_some() {}
}

#[cfg(test)]
mod tests {
    use super::buckets;
    use crate::dtype::DType;
    use crate::eager::Eager;

    #[test]
    fn buckets_are_complete_at_their_limit_and_of_one_type() {
        let eager = Eager::new();
        let of = |elements: i64, dtype| eager.empty(&[elements], dtype);
        let tensors = [
            of(100, DType::F32),
            of(100, DType::BF16),
            of(300, DType::F32),
            of(10, DType::F32),
            of(10, DType::BF16),
        ];
        assert_eq!(buckets(&tensors, 0..5, &[u64::MAX]), [vec![0, 2, 3], vec![1, 4]]);
        assert_eq!(
            buckets(&tensors, (0..5).rev(), &[40, 1000]),
            [vec![3], vec![2], vec![4, 1], vec![0]]
        );
    }
}
