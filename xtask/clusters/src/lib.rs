//! Tests on clusters: a Slurm cluster of one node ([`slurm`]) and an API server of Kubernetes ([`kubernetes`]), which call the
//! gate, and Ray with an object store ([`ray`]). Slurm and Ray also run the parts of an evaluation. Their daemons run on this
//! machine, from a folder of their own, and end with the task.
//!
//! What is submitted and what must come out lies in `contrib/slurm/tests` and `contrib/kubernetes/tests`. How xmem
//! decides is left to the tests of `xmem-gate`, and the manifests' schemas to `contrib/kubernetes/tests/validate.sh`.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a development task: it reads the repository and talks to the person who runs it"
)]

mod cases;
mod daemon;
mod evaluation;
mod folder;
pub mod kubernetes;
mod options;
mod python;
pub mod ray;
pub mod slurm;

pub use options::Options;
