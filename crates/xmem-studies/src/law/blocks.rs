//! The blocks of recordings with several values, matched with each other, and their sizes as functions of the value.

use super::{Answers, LawError, LawPoint, LawSummary};
use crate::block_size::rounded;
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use xmem_analyzer::ScriptPart;
use xmem_convolutions::{ConvShape, ConvolutionQuestion};
use xmem_orchestrator::align;
use xmem_predict::{Closeness, LawKind, Prediction, SizeLaw};
use xmem_types::{BlockId, Bytes, Fallbacks, RequestKind};

/// A recording with one value.
#[derive(Debug)]
pub(super) struct Recording<'p> {
    pub(super) value: u64,
    prediction: Arc<Prediction<'p>>,
    /// The number of requests of the iterations that were recorded in full.
    requests: usize,
    /// The figures of all of the script, if what comes after those iterations counts.
    pub(super) whole: Option<LawPoint>,
    /// In the order of their allocation.
    blocks: Vec<Block>,
    /// By block of the order.
    laws: Vec<SizesLaw>,
}

#[derive(Clone, Debug)]
struct Block {
    id: BlockId,
    /// Equal for the same place in the program.
    key: u64,
    /// The requested size, and then those that it falls back on where memory is short.
    sizes: Vec<Bytes>,
    /// The convolution whose workspace it is.
    convolution: Option<ConvolutionQuestion>,
}

/// The sizes of a block by value.
#[derive(Clone, Debug)]
struct SizesLaw {
    /// That of its size, and of those that it falls back on.
    laws: Vec<SizeLaw>,
    /// The recordings that have such a block.
    seen: usize,
    /// The convolution whose workspace it is.
    convolution: Option<ConvolutionLaw>,
}

impl<'p> Recording<'p> {
    pub(super) fn new(value: u64, prediction: &Prediction<'p>) -> Self {
        let prediction = prediction.with_empty_workspaces();
        let requests = prediction.recorded_requests();
        let fallbacks = &prediction.schedule().fallbacks;
        let made = requests.iter().filter_map(|request| match request.kind {
            RequestKind::Alloc { stream, size } => Some((request.block, stream, size)),
            RequestKind::Free => None,
        });
        let blocks = made.map(|(id, stream, size)| {
            let smaller = fallbacks.of(id).map_or(&[][..], |list| fallbacks.sizes(list));
            let place = prediction.place(id);
            let described = prediction.block(id);
            let mut hasher = FxHasher::default();
            (place.iteration, place.phase, place.part.map(ScriptPart::name)).hash(&mut hasher);
            (place.module, place.line).hash(&mut hasher);
            (prediction.operator_name(id), described.rule, stream).hash(&mut hasher);
            let sizes = [size].into_iter().chain(smaller.iter().copied()).collect();
            let convolution = prediction.schedule().workspaces.get(&id).copied();
            Block { id, key: hasher.finish(), sizes, convolution }
        });
        let (blocks, requests) = (blocks.collect(), requests.len());
        let prediction = Arc::new(prediction);
        Self { value, prediction, requests, whole: None, blocks, laws: Vec::new() }
    }

    /// The same recording, to be fitted with others.
    pub(super) fn unfitted(&self) -> Self {
        let (prediction, blocks) = (Arc::clone(&self.prediction), self.blocks.clone());
        Self { prediction, blocks, laws: Vec::new(), ..*self }
    }

    pub(super) fn context(&self) -> Bytes {
        self.prediction.device().taken
    }

    fn keys(&self) -> Vec<u64> {
        self.blocks.iter().map(|block| block.key).collect()
    }

    /// The convolutions with a workspace, as they are with a value.
    pub(super) fn convolutions(&self, value: u64) -> impl Iterator<Item = ConvolutionQuestion> {
        let laws = self.laws.iter().filter_map(|law| law.convolution.as_ref());
        laws.filter_map(move |law| law.at(value))
    }

    /// The job with the sizes of a value. `plans` are those of its convolutions, as far as they are known.
    pub(super) fn at(&self, value: u64, plans: &Answers) -> Prediction<'p> {
        let recorded = &self.prediction.schedule().fallbacks;
        let mut sizes = BTreeMap::new();
        let mut fallbacks = Fallbacks::default();
        // Calls that share a list share the result.
        let mut shared = BTreeMap::new();
        for (block, law) in self.blocks.iter().zip(&self.laws) {
            let of_value = law.at(value, block, plans);
            sizes.insert(block.id, of_value[0]);
            let Some(list) = recorded.of(block.id) else {
                if of_value.len() > 1 {
                    let list = fallbacks.add(of_value[1..].iter().copied());
                    fallbacks.assign(block.id, list);
                }
                continue;
            };
            let made = *shared
                .entry(list.index())
                .or_insert_with(|| fallbacks.add(of_value[1..].iter().copied()));
            match recorded.is_trial(block.id) {
                true => fallbacks.assign_trial(block.id, made),
                false => fallbacks.assign(block.id, made),
            }
        }
        self.prediction.resized(self.requests, |id| sizes[&id], fallbacks)
    }

    /// Returns whether all recordings, of which there are so many, have each of its blocks.
    pub(super) fn is_matched(&self, recordings: usize) -> bool {
        self.laws.iter().all(|law| law.seen == recordings)
    }

    pub(super) fn summary(&self, recordings: usize) -> LawSummary {
        let mut summary = LawSummary { blocks: self.laws.len(), ..LawSummary::default() };
        for law in &self.laws {
            match law.laws[0].kind() {
                _ if law.seen < recordings => summary.unmatched += 1,
                LawKind::Constant => summary.constant += 1,
                LawKind::Interpolated => summary.interpolated += 1,
                LawKind::Affine | LawKind::Padded(_) | LawKind::Square | LawKind::Quadratic(_) => {
                    summary.polynomial += 1;
                }
            }
        }
        summary
    }
}

/// Fits the sizes of all blocks of each recording to those of their counterparts in the others. A recording of another course of
/// the script, such as one that has an evaluation among its iterations, says nothing about the sizes of others.
pub(super) fn fit(recordings: &mut [Recording<'_>]) -> Result<(), LawError> {
    let keys: Vec<Vec<u64>> = recordings.iter().map(Recording::keys).collect();
    let mut all = Vec::with_capacity(recordings.len());
    let mut best: Option<LawError> = None;
    let mut has_pair = false;
    for (at, recording) in recordings.iter().enumerate() {
        let mut counterparts = Vec::with_capacity(recordings.len());
        for (other, other_keys) in recordings.iter().zip(&keys) {
            let mut pairs: Vec<Option<usize>> = match other.value == recording.value {
                true => (0..keys[at].len()).map(Some).collect(),
                false => align(&keys[at], other_keys),
            };
            let (matched, all) = (pairs.iter().flatten().count(), pairs.len());
            if matched * 2 < all || all == 0 {
                let (one, other) = (recording.value, other.value);
                best.get_or_insert(LawError::TooDifferent { one, other, matched, all });
                pairs.fill(None);
            } else {
                has_pair |= other.value != recording.value;
            }
            counterparts.push(pairs);
        }
        let laws = recording.blocks.iter().enumerate().map(|(row, block)| {
            let found = recordings
                .iter()
                .zip(&counterparts)
                .filter_map(|(other, pairs)| Some((other.value, &other.blocks[pairs[row]?])));
            SizesLaw::fit(block, recording.value, found.collect())
        });
        all.push(laws.collect::<Vec<_>>());
    }
    if let Some(error) = best.filter(|_| !has_pair) {
        return Err(error);
    }
    for (recording, laws) in recordings.iter_mut().zip(all) {
        recording.laws = laws;
    }
    Ok(())
}

impl SizesLaw {
    /// From the sizes of a block's counterparts by value, its own among them. Recordings in which it has another number of
    /// sizes to fall back on say nothing about those.
    fn fit(block: &Block, own: u64, seen: Vec<(u64, &Block)>) -> Self {
        let count = seen.len();
        let laws = (0..block.sizes.len()).map(|at| {
            let of = |(value, other): &(u64, &Block)| {
                let is_known = at == 0 || other.sizes.len() == block.sizes.len();
                is_known.then(|| (*value, other.sizes[at]))
            };
            let points: Vec<(u64, Bytes)> = seen.iter().filter_map(of).collect();
            debug_assert!(points.iter().any(|(value, _)| *value == own), "its own size is known");
            SizeLaw::fit(&points, Closeness::EXACT)
        });
        let laws = laws.collect();
        let convolution = block.convolution.map(|own| ConvolutionLaw::fit(own, &seen));
        Self { laws, seen: count, convolution }
    }

    /// The sizes with a value: of a workspace, those of the plans of its convolution.
    fn at(&self, value: u64, block: &Block, plans: &Answers) -> Vec<Bytes> {
        let by_law = || self.laws.iter().map(|law| law.size(value)).collect();
        if self.laws[0].is_recorded(value) {
            return by_law();
        }
        let convolution = self.convolution.as_ref().and_then(|law| law.at(value));
        let Some(plans) = convolution.and_then(|question| plans.get(&question)) else {
            return by_law();
        };
        // PyTorch takes the first plan; where the recorded GPU's memory was short, it had taken another.
        let is_own = |size: &Bytes| rounded(*size) == rounded(block.sizes[0]);
        let taken = block.sizes[1..].iter().position(is_own).unwrap_or(0);
        let size = plans.get(taken).or(plans.last()).copied().unwrap_or(Bytes::ZERO);
        [size].into_iter().chain(plans.iter().copied()).collect()
    }
}

/// A convolution by value: its extents.
#[derive(Clone, Debug)]
struct ConvolutionLaw {
    own: ConvolutionQuestion,
    extents: Vec<SizeLaw>,
}

impl ConvolutionLaw {
    fn fit(own: ConvolutionQuestion, seen: &[(u64, &Block)]) -> Self {
        let of = |(value, block): &(u64, &Block)| {
            Some((*value, extents(&mut block.convolution?.shape).map(|extent| Bytes(*extent))))
        };
        let known: Vec<(u64, [Bytes; EXTENTS])> = seen.iter().filter_map(of).collect();
        let laws = (0..EXTENTS).map(|at| {
            let points: Vec<_> = known.iter().map(|(value, all)| (*value, all[at])).collect();
            SizeLaw::fit(&points, Closeness::EXACT)
        });
        Self { own, extents: laws.collect() }
    }

    /// The convolution with a value; none if it is not known.
    fn at(&self, value: u64) -> Option<ConvolutionQuestion> {
        let is_known =
            |law: &SizeLaw| law.kind() != LawKind::Interpolated || law.is_recorded(value);
        if !self.extents.iter().all(is_known) {
            return None;
        }
        let mut question = self.own;
        for (extent, law) in extents(&mut question.shape).into_iter().zip(&self.extents) {
            *extent = law.size(value).get();
        }
        Some(question)
    }
}

/// The extents of a convolution that a batch size or a length may change.
const EXTENTS: usize = 8;

fn extents(shape: &mut ConvShape) -> [&mut u64; EXTENTS] {
    let [a, b, c, d] = shape.input.each_mut();
    let [e, f, g, h] = shape.output.each_mut();
    [a, b, c, d, e, f, g, h]
}
