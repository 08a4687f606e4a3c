//! The number of parameters of each size that the job trains.

use super::facts::Facts;
use super::gradients::Gradients;
use crate::timeline::MarkKind;
use rustc_hash::FxHashMap;
use xmem_types::Bytes;

/// Trained parameters: sizes with their count.
///
/// Each leaf is accumulated once per backward pass however often the model uses it (the engine
/// sums the contributions first, torch/csrc/autograd/input_buffer.cpp), so one pass lists every
/// parameter that it reaches exactly once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    counts: FxHashMap<Bytes, u32>,
    /// All parameters of the job, matched with blocks or not.
    known: FxHashMap<Bytes, u32>,
}

impl Inventory {
    /// Passes of one optimizer reach the same parameters, so that the largest count of a size
    /// holds; several optimizers' add up, unless one reaches all that the other does (as a
    /// generator's pass through its discriminator).
    pub(crate) fn build(gradients: &Gradients, facts: &Facts<'_>) -> Self {
        let steps: Vec<_> = facts
            .timeline
            .marks
            .iter()
            .filter(|m| m.kind == MarkKind::Step)
            .map(|m| m.start)
            .collect();
        let mut groups = vec![FxHashMap::default(); facts.step_period.max(1)];
        for pass in &gradients.passes {
            let step = steps.partition_point(|s| *s < pass.start);
            let group = &mut groups[step % facts.step_period.max(1)];
            let mut counts: FxHashMap<Bytes, u32> = FxHashMap::default();
            for &size in &pass.sizes {
                *counts.entry(size).or_default() += 1;
            }
            for (size, n) in counts {
                let most = group.entry(size).or_default();
                *most = n.max(*most);
            }
        }
        let counts = groups.into_iter().fold(FxHashMap::default(), union);
        Self { known: FxHashMap::default(), counts }
    }

    /// Takes one parameter of this size out; false if none is left.
    pub(crate) fn take(&mut self, size: Bytes) -> bool {
        match self.counts.get_mut(&size) {
            Some(n @ 1..) => {
                *n -= 1;
                true
            }
            _ => false,
        }
    }

    /// Sizes and counts that were not taken out, largest first.
    pub(crate) fn left(&self) -> Vec<(Bytes, u32)> {
        sorted(&self.counts)
    }

    /// Sizes and counts of all parameters, largest first.
    pub(crate) fn all(&self) -> Vec<(Bytes, u32)> {
        sorted(&self.known)
    }

    pub(super) fn with_known(self, all: Self) -> Self {
        Self { counts: self.counts, known: all.counts }
    }
}

fn sorted(counts: &FxHashMap<Bytes, u32>) -> Vec<(Bytes, u32)> {
    let mut list: Vec<_> = counts.iter().map(|(&s, &n)| (s, n)).filter(|e| e.1 > 0).collect();
    list.sort_unstable_by(|a, b| b.cmp(a));
    list
}

fn union(a: FxHashMap<Bytes, u32>, b: FxHashMap<Bytes, u32>) -> FxHashMap<Bytes, u32> {
    let within = |x: &FxHashMap<Bytes, u32>, y: &FxHashMap<Bytes, u32>| {
        x.iter().all(|(size, n)| y.get(size).is_some_and(|m| m >= n))
    };
    if within(&a, &b) {
        return b;
    }
    if within(&b, &a) {
        return a;
    }
    b.into_iter().fold(a, |mut sum, (size, n)| {
        *sum.entry(size).or_default() += n;
        sum
    })
}
