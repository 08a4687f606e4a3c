//! Replays of another job than the recorded one. What another number of ranks changes beside the sizes of shards is not known,
//! nor what other times of completion change beside frees.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;

pub(super) const DOUBT: Doubt = Doubt { name: "other_replay", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    if !subject.is_as_recorded() {
        assessment.lower_to(Confidence::Likely);
    }
}
