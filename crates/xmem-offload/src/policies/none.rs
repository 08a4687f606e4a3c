//! No policy: everything stays on the device.

use super::PolicyRules;
use crate::graph::Graph;
use crate::rules::Rules;

/// No policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoPolicy;

impl PolicyRules for NoPolicy {
    fn rules(&self, _graph: &Graph) -> Rules {
        Rules::nothing()
    }
}
