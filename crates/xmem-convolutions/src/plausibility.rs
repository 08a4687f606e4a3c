//! The plausibility of sizes that a library gives, by the shape of the convolution and by the fitted model.
//!
//! A library that lies must not make a job fit. Sizes that no release of cuDNN gives count against the
//! library as a whole; a single size that is smaller than the model's keeps the model's as its upper bound.
//!
//! The bounds are those of 30 700 answers: of cuDNN 9.19 for the 1,340 convolutions of the recorded jobs
//! (`traces/cudnn`), and of cuDNN 9.26 for those and 6,000 random ones on compute capability 8.0, 8.6, 9.0
//! and 12.0, queried on a machine without a GPU through `xmem-cudnn`'s example `worker`.

use crate::fitted::FittedModel;
use crate::plans::{Basis, Plans, Trial};
use crate::question::{ConvolutionQuestion, PlanChoice};
use xmem_devices::ComputeCapability;
use xmem_types::Bytes;

/// The most plans of one convolution. The most that were seen are 12.
const MAX_PLANS: usize = 64;

/// The most plans of one convolution that is benchmarked. The most that were seen are 68.
const MAX_TRIED: usize = 512;

/// The most bytes of workspace for each byte of input, weight and output, beside [`MAX_EXTRA`]. The most
/// that were seen are 991, where the tensors had 102 bytes; 541 above 10 KB.
const MAX_RATIO: u64 = 1024;

/// The workspace that any convolution may have.
const MAX_EXTRA: Bytes = Bytes::mib(256);

/// The number of convolutions from which on sizes below the model's bounds count as a lie, if they are
/// also more than half of those that need a workspace in the model. Of the recorded jobs' convolutions
/// that need one, 1 to 8 % had sizes below those bounds.
const MIN_TOO_SMALL: usize = 4;

/// The reason why sizes cannot be those of cuDNN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Implausible {
    /// PyTorch would not try the plans in this order: a later size is not smaller.
    Unordered,
    /// There are too many plans.
    TooMany {
        /// Their number.
        plans: usize,
    },
    /// A workspace is too large for the convolution.
    TooLarge {
        /// The workspace.
        workspace: Bytes,
        /// Input, weight and output together.
        tensors: Bytes,
    },
    /// Workspaces are smaller than those of nearly all convolutions of their kinds.
    TooSmall {
        /// The number of such workspaces.
        count: usize,
        /// The number of convolutions that need a workspace in the fitted model.
        of: usize,
    },
}

impl std::fmt::Display for Implausible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unordered => f.write_str("the workspaces of a convolution are not in order"),
            Self::TooMany { plans } => write!(f, "a convolution has {plans} plans"),
            Self::TooLarge { workspace, tensors } => {
                write!(f, "a convolution of {tensors} has a workspace of {workspace}")
            }
            Self::TooSmall { count, of } => {
                write!(f, "{count} of {of} convolutions have too small a workspace")
            }
        }
    }
}

impl std::error::Error for Implausible {}

/// The plans of one job's convolutions, from sizes that a library gives.
#[derive(Clone, Copy, Debug)]
pub struct LibraryPlans {
    on: ComputeCapability,
    needed: usize,
    too_small: usize,
}

impl LibraryPlans {
    /// Plans for a device of that compute capability.
    #[must_use]
    pub const fn new(on: ComputeCapability) -> Self {
        Self { on, needed: 0, too_small: 0 }
    }

    /// The plans of a convolution that the library has these sizes for, in the order of PyTorch: those
    /// that it tries one after the other, or all where the convolution is benchmarked.
    ///
    /// If the first size is smaller than that of the fitted model, the latter is the upper bound.
    ///
    /// # Errors
    /// If the sizes cannot be those of cuDNN.
    pub fn plans(
        &mut self,
        question: &ConvolutionQuestion,
        sizes: Vec<Bytes>,
    ) -> Result<Plans, Implausible> {
        let limit = match question.choice {
            PlanChoice::Heuristics => {
                check_order(&sizes)?;
                None
            }
            PlanChoice::Benchmark { limit } => Some(limit),
        };
        check(question, &sizes)?;
        let first = sizes.first().copied().unwrap_or(Bytes::ZERO);
        let by_heuristics = question.chosen_by(PlanChoice::Heuristics);
        let model = FittedModel.predict(&by_heuristics, self.on);
        self.needed += usize::from(is_less(Bytes::ZERO, model.low));
        self.too_small += usize::from(is_less(first, model.low));
        let high = if is_less(first, model.first()) { model.first() } else { first };
        let plans = Plans { sizes, low: first, high, basis: Basis::Library, trial: None };
        Ok(match limit {
            None => plans,
            Some(limit) => self.benchmarked(question, plans, limit),
        })
    }

    /// The plans of a convolution that is benchmarked. The first `limit` plans are timed, all if it is 0.
    fn benchmarked(&self, question: &ConvolutionQuestion, plans: Plans, limit: u32) -> Plans {
        let timed = match limit {
            0 => plans.sizes.len(),
            limit => plans.sizes.len().min(limit as usize),
        };
        let timed = &plans.sizes[..timed];
        let low = timed.iter().copied().min().unwrap_or_default();
        let high = timed.iter().copied().max().unwrap_or_default();
        let mut trial = Trial::of(&plans.sizes);
        let model = FittedModel.predict(question, self.on).trial.unwrap_or_default();
        if is_less(trial.high, model.low) {
            trial.high = model.largest();
        }
        let mut sizes: Vec<Bytes> = Vec::new();
        for &size in &plans.sizes {
            if sizes.last().is_none_or(|&least| size < least) {
                sizes.push(size);
            }
        }
        Plans { sizes, low, high: high.max(plans.high), trial: Some(trial), ..plans }
    }

    /// Checks the plans of the whole job.
    ///
    /// # Errors
    /// If more of them are below the bounds of the fitted model than any release of cuDNN has there.
    pub const fn check(&self) -> Result<(), Implausible> {
        if self.too_small >= MIN_TOO_SMALL && self.too_small > self.needed / 2 {
            return Err(Implausible::TooSmall { count: self.too_small, of: self.needed });
        }
        Ok(())
    }
}

/// Checks the order of the sizes that PyTorch tries one after the other.
fn check_order(sizes: &[Bytes]) -> Result<(), Implausible> {
    if sizes.len() > MAX_PLANS {
        return Err(Implausible::TooMany { plans: sizes.len() });
    }
    // Others than smaller ones fail where those before have failed, so that they are left out.
    if sizes.windows(2).any(|pair| pair[0] <= pair[1]) {
        return Err(Implausible::Unordered);
    }
    Ok(())
}

/// Checks the sizes of one convolution.
fn check(question: &ConvolutionQuestion, sizes: &[Bytes]) -> Result<(), Implausible> {
    if sizes.len() > MAX_TRIED {
        return Err(Implausible::TooMany { plans: sizes.len() });
    }
    let tensors = question.shape.bytes();
    let most = tensors.get().saturating_mul(MAX_RATIO).saturating_add(MAX_EXTRA.get());
    match sizes.iter().max() {
        Some(&workspace) if workspace.get() > most => {
            Err(Implausible::TooLarge { workspace, tensors })
        }
        _ => Ok(()),
    }
}

/// True if a workspace is less than another by more than the error of a formula (2 % or 64 KiB, see
/// [`Basis::Formula`]).
fn is_less(workspace: Bytes, other: Bytes) -> bool {
    other.get().saturating_sub(workspace.get()) > (other.get() / 50).max(64 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::tests::conv;
    use crate::{ConvPass, ElementType, Layout};

    const ON: ComputeCapability = ComputeCapability { major: 8, minor: 6 };

    fn question(channels: u64) -> ConvolutionQuestion {
        let shape = conv(channels, 1, ElementType::F32, Layout::Nchw);
        ConvolutionQuestion::new(ConvPass::BackwardWeight, shape)
    }

    fn plans(sizes: &[u64]) -> Result<Plans, Implausible> {
        LibraryPlans::new(ON).plans(&question(64), sizes.iter().copied().map(Bytes).collect())
    }

    #[test]
    fn sizes_that_no_release_gives_are_refused() {
        let tensors = question(64).shape.bytes();
        assert_eq!(tensors, Bytes(4 * (2 * 32 * 64 * 56 * 56 + 64 * 64 * 9)));
        let wild = u64::MAX;
        for (sizes, refused) in [
            (&[700 << 20, 30 << 20, 0][..], None),
            (&[0], None),
            (&[700 << 20], None),
            (&[0, 0], Some(Implausible::Unordered)),
            (&[30, 700, 0], Some(Implausible::Unordered)),
            (&[wild, 0], Some(Implausible::TooLarge { workspace: Bytes(wild), tensors })),
        ] {
            assert_eq!(plans(sizes).err(), refused, "{sizes:?}");
        }
        let many: Vec<u64> = (0..65).rev().collect();
        assert_eq!(plans(&many), Err(Implausible::TooMany { plans: 65 }));
    }

    #[test]
    fn a_size_below_the_models_keeps_the_models_as_its_bound() {
        let model = FittedModel.predict(&question(64), ON);
        assert!(model.first() > Bytes::mib(8), "{model:?}");
        let bounds = |size: Bytes| {
            let plans = plans(&[size.get()]).expect("plausible");
            assert_eq!((plans.first(), plans.basis), (size, Basis::Library));
            (plans.low, plans.high)
        };
        assert_eq!(bounds(Bytes::ZERO), (Bytes::ZERO, model.first()));
        let nearly = model.first() - Bytes(64 << 10);
        assert_eq!(bounds(nearly), (nearly, nearly));
        let more = model.first() + Bytes::gib(1);
        assert_eq!(bounds(more), (more, more));
    }

    #[test]
    fn a_benchmarked_convolution_tries_the_largest_and_keeps_one_of_those_timed() {
        let sizes: Vec<Bytes> = [5, 0, 9, 5, 300].map(Bytes::mib).to_vec();
        let benchmarked = |limit| {
            let question = question(64).chosen_by(PlanChoice::Benchmark { limit });
            LibraryPlans::new(ON).plans(&question, sizes.clone()).expect("plausible")
        };
        let (two, all) = (benchmarked(2), benchmarked(0));
        let trial = Trial {
            sizes: [300, 9, 5, 0].map(Bytes::mib).to_vec(),
            low: Bytes::mib(300),
            high: Bytes::mib(300),
        };
        assert_eq!((two.trial.as_ref(), all.trial.as_ref()), (Some(&trial), Some(&trial)));
        assert_eq!(two.sizes, [5, 0].map(Bytes::mib));
        assert_eq!((two.low, all.low, all.high), (Bytes::ZERO, Bytes::ZERO, Bytes::mib(300)));
        assert!(two.high < all.high, "{two:?}");
        let modeled = FittedModel.predict(&question(64).chosen_by(PlanChoice::BENCHMARK), ON);
        let modeled = modeled.trial.expect("benchmarked");
        assert!(modeled.low < modeled.largest() && modeled.largest() < modeled.high);
    }

    #[test]
    fn no_workspace_in_any_convolution_is_refused() {
        let mut library = LibraryPlans::new(ON);
        for channels in (64..=256).step_by(64) {
            library.check().unwrap_or_else(|error| panic!("{channels}: {error}"));
            library.plans(&question(channels), vec![Bytes::ZERO]).expect("one size");
        }
        let error = library.check().expect_err("four convolutions without a workspace");
        let expected = "4 of 4 convolutions have too small a workspace";
        assert_eq!(error.to_string(), expected);
    }
}
