//! Objects of Kubernetes: the pods that they make, the GPUs that those ask for, and the decision on the
//! bytes that annotations name.
//!
//! Objects come as JSON values; reading and writing manifests is left to [`Manifest`](crate::Manifest),
//! the protocol of admission to xmem-serve.

mod annotations;
mod controllers;
mod nodes;
mod placement;
mod policy;
mod quantity;
mod template;
mod verdict;
mod workload;

pub use annotations::{Annotations, ParseAnnotationError};
pub use controllers::is_from_decided_owner;
pub use nodes::NodeTerm;
pub use placement::{Placement, placement};
pub use policy::admission_policy;
pub use template::{GpuMemory, PodTemplate};
pub use verdict::{TemplateCheck, Unchecked, check_object, check_template};
pub use workload::{find_templates, workload_kinds};
