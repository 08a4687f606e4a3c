//! What a rule sees and edits: the call of an operator with its recorded arguments, the target, and the draft of the schedule.

pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod conversions;
pub(crate) mod count;
pub(crate) mod cuda;
pub(crate) mod definition;
pub(crate) mod draft;
