//! The optimizer of torch behind a step. The class in the annotation is not enough: a class of the
//! script may have a known name, or inherit torch's loop.

use super::recipe::{self, Recipe};
use super::updates;
use crate::frame::draft::Draft;
use std::collections::BTreeSet;
use xmem_analyzer::Profile;
use xmem_types::OpId;

/// The evidence of the recorded Python calls, and of the recorder's list, about the optimizers of a trace.
#[derive(Debug)]
pub(super) struct Evidence {
    /// True if Python calls were recorded (`with_stack=True`).
    calls: bool,
    /// The functions `_single_tensor_*` that ran, without the prefix.
    ran: BTreeSet<&'static str>,
}

impl Evidence {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut evidence = Self { calls: false, ran: BTreeSet::new() };
        for (_, text) in profile.symbols() {
            evidence.calls |= text.contains("torch/optim/optimizer.py(");
            if let Some((_, function)) = text.split_once(": _single_tensor_") {
                evidence.ran.extend(recipe::loop_named(function));
            }
        }
        evidence
    }

    /// The recipe of a step, given the class of its annotation and its own operators.
    ///
    /// If calls were recorded, a known class whose loop did not run is a namesake; and of an
    /// unknown one, the only loop that ran and that its operators fit is inherited.
    pub(super) fn recipe(
        &self,
        draft: &Draft<'_>,
        class: &str,
        mark: OpId,
        own: &[OpId],
    ) -> Option<&'static Recipe> {
        if let Some(recipe) = recipe::of(class) {
            if let Some(torchs) = is_torchs_own(draft.profile(), class).filter(|_| !self.calls) {
                return torchs.then_some(recipe);
            }
            return (!self.calls || self.ran.contains(recipe.function)).then_some(recipe);
        }
        let fits = |r: &&Recipe| !updates::updates(draft, r, mark, own).is_empty();
        let mut fitting = self.ran.iter().filter_map(|f| recipe::with(f)).filter(fits);
        fitting.next().filter(|_| fitting.next().is_none())
    }
}

/// Returns whether the recording lists a class of this name as torch's own; `None` if it lists no such class.
fn is_torchs_own(profile: &Profile, class: &str) -> Option<bool> {
    let mut listed = profile.recording()?.optimizers.iter().filter(|o| o.name() == class);
    let first = listed.next()?.class.starts_with("torch.optim.");
    Some(listed.fold(first, |own, o| own || o.class.starts_with("torch.optim.")))
}
