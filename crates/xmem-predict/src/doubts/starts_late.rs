//! Recordings that begin after the model was made: what the allocator had cached then is not known.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;

pub(super) const DOUBT: Doubt = Doubt { name: "starts_late", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    if subject.prediction.schedule().starts_late {
        assessment.lower_to(Confidence::Likely);
    }
}
