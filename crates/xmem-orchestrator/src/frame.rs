//! What a rule sees and edits: the call of an operator and its recorded arguments, the target, and the draft of the schedule;
//! and the walk that asks the rules of each operator.

pub(crate) mod block_size;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod conversions;
pub(crate) mod count;
pub(crate) mod cuda;
pub(crate) mod definition;
pub(crate) mod draft;
pub(crate) mod walk;
