//! Tests on clusters of this machine.

use super::program::Program;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use xmem_task::Error;

/// Tests on clusters.
#[derive(Subcommand)]
pub(crate) enum Clusters {
    /// Submit jobs to a Slurm cluster through the gate of contrib/slurm
    ///
    /// The cluster runs on this machine. It is checked what becomes of the jobs.
    #[command(name = "test-slurm")]
    Slurm(Cluster),
    /// Create objects on a Kubernetes API server, gated by contrib/kubernetes
    ///
    /// The server runs on this machine, and is driven with kubectl; it is checked what becomes of the objects. The
    /// environment variable KUBEBUILDER_ASSETS names the folder with kube-apiserver, etcd and kubectl.
    #[command(name = "test-kubernetes")]
    Kubernetes(Cluster),
    /// Run an evaluation as tasks of Ray, with recordings in an object store
    ///
    /// Ray and the store, a server of moto, run on this machine. They are installed from PyPI.
    #[command(name = "test-ray")]
    Ray(Cluster),
}

#[derive(Args)]
pub(crate) struct Cluster {
    #[command(flatten)]
    program: Program,
    /// Only cases whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Keep configuration, logs and state of the cluster in this folder
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Clusters {
    #[cfg(feature = "clusters")]
    pub(crate) fn run(self) -> Result<(), Error> {
        use xmem_clusters::{Options, kubernetes, ray, slurm};

        let options =
            |Cluster { program, only, folder }| Options { program: program.program, only, folder };
        match self {
            Self::Slurm(cluster) => slurm::run(&options(cluster)),
            Self::Kubernetes(cluster) => kubernetes::run(&options(cluster)),
            Self::Ray(cluster) => ray::run(&options(cluster)),
        }
    }

    #[cfg(not(feature = "clusters"))]
    pub(crate) fn run(self) -> Result<(), Error> {
        crate::again::same("clusters")
    }
}
