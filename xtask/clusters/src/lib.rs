//! Tests of the gate where clusters call it: a Slurm cluster of one node ([`slurm`]), and an API server of Kubernetes
//! ([`kubernetes`]). Their daemons run on this machine, from a folder of their own, and end with the task.
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
mod folder;
pub mod kubernetes;
mod options;
pub mod slurm;

pub use options::Options;
