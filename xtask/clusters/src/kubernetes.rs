//! `cargo xtask test-kubernetes`: the gate of `contrib/kubernetes` on a real API server.
//!
//! etcd, kube-apiserver and `xmem serve` run from a temporary folder, and objects are created with kubectl as
//! users do. `contrib/kubernetes/tests/cases.toml` lists most of what is done, and says what must come out;
//! `sizes`, `changes`, `outages` and `policy` do what a table does not say.

mod assets;
mod case;
mod certificates;
mod changes;
mod check;
mod cluster;
mod kubectl;
mod load;
mod outages;
mod policy;
mod server;
mod sizes;
mod webhooks;

use crate::folder::Folder;
use crate::options::Options;
use assets::Assets;
use certificates::Authority;
use cluster::Cluster;
use kubectl::Kubectl;
use server::Server;
use std::path::{Path, PathBuf};
use std::time::Duration;
use webhooks::Webhooks;
use xmem_task::program::{self, Profile};
use xmem_task::tally::Tally;
use xmem_task::{Error, only, repo};

/// The manifests under test.
const MANIFESTS: &str = "contrib/kubernetes";
/// What the tests are made of.
const TESTS: &str = "contrib/kubernetes/tests";
/// The namespaces that are gated.
const GATED: [&str; 4] = ["research", "teaching", "changing", "strict"];
/// The longest time until the API server has taken over a change.
const CHANGE_LIMIT: Duration = Duration::from_secs(60);
/// The nodes on which the jobs of the manifests fit, and on which they do not.
const LARGE: &str = "Tesla-T4";
const SMALL: &str = "Tesla-V100-SXM2-16GB";

/// Starts an API server and the gate, and does what the cases say.
pub fn run(options: &Options) -> Result<(), Error> {
    let assets = Assets::find()?;
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    let cases = case::all()?;
    let folder = Folder::new(options.folder.clone(), "kubernetes")?;
    let mut tally = Tally::new("test-kubernetes");
    let mut bench = Bench::start(folder.path(), &assets, &xmem)?;
    println!("API server {}, kubectl {}", bench.cluster.version()?, bench.kubectl.version()?);
    let wanted = |name: &str| only::selects(&options.only, name);

    for (number, case) in cases.iter().enumerate().filter(|(_, case)| wanted(&case.name)) {
        match bench.lacks(case.needs) {
            Some(why) => tally.skip(&case.name, why),
            None => tally.check(&case.name, || check::check(case, number, &bench))?,
        }
    }
    let all = [&sizes::SCENARIOS[..], &changes::SCENARIOS, &outages::SCENARIOS, &policy::SCENARIOS];
    for scenario in all.into_iter().flatten().filter(|scenario| wanted(scenario.name)) {
        match bench.lacks(scenario.needs) {
            Some(why) => tally.skip(scenario.name, why),
            None => tally.check(scenario.name, || (scenario.run)(&mut bench))?,
        }
    }
    drop(bench);
    tally.finish()
}

/// What is done in more than commands.
struct Scenario {
    name: &'static str,
    needs: Option<case::Feature>,
    /// Gives what is not as it should be.
    run: fn(&mut Bench) -> Result<Vec<String>, Error>,
}

/// What the cases share.
struct Bench {
    /// Dropped first: it ends before the API server.
    server: Server,
    cluster: Cluster,
    kubectl: Kubectl,
    webhooks: Webhooks,
    authority: Authority,
    folder: PathBuf,
}

impl Bench {
    /// Starts everything, and waits until objects are gated.
    fn start(folder: &Path, assets: &Assets, xmem: &Path) -> Result<Self, Error> {
        let authority = Authority::new()?;
        let cluster = Cluster::start(folder, assets, &authority)?;
        let kubectl = cluster.kubectl();
        let site = repo::text(&Path::new(TESTS).join("site.toml"))?;
        let server = Server::start(folder, xmem, &authority, &site)?;
        for manifest in ["namespaces.yaml", "kinds.yaml"] {
            let path = repo::root().join(TESTS).join("manifests").join(manifest);
            kubectl.must(&["apply", "-f", &path.display().to_string()])?;
        }
        kubectl.must(&[
            "wait",
            "--for=condition=Established",
            "crd/pytorchjobs.kubeflow.org",
            "crd/jobsets.jobset.x-k8s.io",
        ])?;
        let webhooks = Webhooks::apply(folder, &kubectl, &authority, server.address())?;
        for namespace in GATED {
            kubectl.must(&["label", "namespace", namespace, "xmem.dev/gate=enabled"])?;
        }
        let bench =
            Self { server, cluster, kubectl, webhooks, authority, folder: folder.to_owned() };
        bench
            .wait_for("rejections", "strict", SMALL, |text| text.contains("denied the request"))?;
        bench.wait_for_annotations()?;
        Ok(bench)
    }

    /// Why a case cannot be run, if it cannot.
    fn lacks(&self, needs: Option<case::Feature>) -> Option<&'static str> {
        let (has, why) = match needs? {
            case::Feature::MatchConditions => {
                (self.webhooks.has_conditions(), "this version has no matchConditions")
            }
            case::Feature::AdmissionPolicies => {
                (self.cluster.has_policies(), "this version has no ValidatingAdmissionPolicy")
            }
        };
        (!has).then_some(why)
    }

    /// The file of a manifest with its placeholders filled in.
    fn manifest(&self, file: &str, name: &str, gpu: &str) -> Result<PathBuf, Error> {
        let text = repo::text(&Path::new(TESTS).join("manifests").join(file))?
            .replace("{name}", name)
            .replace("{gpu}", gpu)
            .replace("{cronjobs}", self.webhooks.version_of_cronjobs());
        let path = self.folder.join(format!("{name}.yaml"));
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        Ok(path)
    }

    /// What kubectl says to a Job, of which only a dry run is made.
    fn try_job(&self, namespace: &str, gpu: &str) -> Result<String, Error> {
        let manifest = self.manifest("annotated-job.yaml", "tried", gpu)?;
        let said = self.kubectl.run(&[
            "create",
            "--dry-run=server",
            "-n",
            namespace,
            "-f",
            &manifest.display().to_string(),
        ])?;
        Ok(said.text)
    }

    /// Waits until kubectl says something to a Job.
    fn wait_for(
        &self,
        what: &str,
        namespace: &str,
        gpu: &str,
        holds: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        crate::daemon::wait(what, CHANGE_LIMIT, || {
            self.try_job(namespace, gpu).is_ok_and(|text| holds(&text))
        })
    }

    /// Waits until the mutating webhook is in force.
    fn wait_for_annotations(&self) -> Result<(), Error> {
        let manifest = self.manifest("annotated-job.yaml", "tried", LARGE)?;
        let manifest = manifest.display().to_string();
        let path = r"jsonpath={.metadata.annotations.xmem\.dev/decision}";
        crate::daemon::wait("the annotation xmem.dev/decision", CHANGE_LIMIT, || {
            let arguments =
                ["create", "--dry-run=server", "-n", "research", "-o", path, "-f", &manifest];
            self.kubectl.run(&arguments).is_ok_and(|said| said.text.contains("fits"))
        })
    }
}
