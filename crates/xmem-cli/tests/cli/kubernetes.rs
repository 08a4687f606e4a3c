//! `xmem check --k8s` and `xmem serve`.

use crate::job::Folder;
use crate::recorded;
use crate::shell::{Ran, command};
use expect_test::expect;

const SITE: &str = r#"
policy = "reject"
margin = "5%"

[[gpu]]
device = "v100-16g"
memory = "600MiB"
products = ["Tesla-V100-SXM2-16GB"]

[[gpu]]
device = "t4-16g"
products = ["Tesla-T4"]

[namespace.soft]
policy = "warn"
"#;

const JOB: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
---
# The nightly training.
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: Tesla-T4 # small
      containers:
      - name: train
        image: registry.example.org/train:1
        resources:
          limits:
            nvidia.com/gpu: 2
";

struct Place(Folder);

impl Place {
    fn new() -> Self {
        let place = Self(Folder::empty());
        place.0.put("site.toml", SITE.as_bytes());
        place.0.put("job.yaml", JOB.as_bytes());
        place
    }

    fn check(&self, args: &[&str]) -> Ran {
        let trace = recorded::trace("vgg11_adagrad");
        let mut command = command(["check", trace.as_str(), "--no-config", "--no-cache"]);
        command.current_dir(self.0.path(".")).args(["--site", "site.toml"]).args(args);
        command.output().expect("runs").into()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path(name)).expect("readable")
    }
}

#[test]
fn the_manifest_names_the_device_and_is_annotated() {
    let place = Place::new();
    let ran = place.check(&["--k8s", "job.yaml", "--write"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let stdout = &ran.stdout;
    assert!(stdout.starts_with("FITS  needs 2.71 GiB of 14.58 GiB on t4-16g"), "{stdout}");
    assert!(stdout.ends_with("  for each of 2 GPUs\n"), "{stdout}");
    assert_eq!(ran.stderr, "wrote `job.yaml`: annotations of 1 pod template\n");
    expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
        ---
        # The nightly training.
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: train
        spec:
          template:
            metadata:
              annotations:
                xmem.dev/peak-bytes: "2707423232"
                xmem.dev/context-bytes: "199229440"
                xmem.dev/trace-sha256: "00f73fbdebdb018dc42ce1ab224dbbb979c83c5dc273609c700546fa650ec7c3"
            spec:
              nodeSelector:
                nvidia.com/gpu.product: Tesla-T4 # small
              containers:
              - name: train
                image: registry.example.org/train:1
                resources:
                  limits:
                    nvidia.com/gpu: 2
    "#]].assert_eq(&place.text("job.yaml"));
    // The same again, and nothing else.
    let written = place.text("job.yaml");
    assert_eq!(place.check(&["--k8s", "job.yaml", "--write"]).code, 0);
    assert_eq!(place.text("job.yaml"), written);
}

#[test]
fn a_job_that_does_not_fit_is_annotated_all_the_same() {
    let place = Place::new();
    place.0.put("job.yaml", JOB.replace("Tesla-T4", "Tesla-V100-SXM2-16GB").as_bytes());
    for (more, code) in [(&[][..], 1), (&["--namespace", "soft"], 0)] {
        let ran = place.check(&[&["--k8s", "job.yaml", "--write"], more].concat());
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.starts_with("DOES NOT FIT"), "{}", ran.stdout);
        assert!(place.text("job.yaml").contains("xmem.dev/peak-bytes"));
    }
}

#[test]
fn numbers_and_claims_hold_the_margin() {
    let place = Place::new();
    let number = |args: &[&str]| place.check(&[args, &["--format", "gpumem"]].concat()).stdout;
    let plain = number(&["--device", "t4-16g", "--margin", "0%"]);
    let half = number(&["--device", "t4-16g", "--margin", "50%"]);
    let (plain, half): (u64, u64) =
        (plain.trim().parse().expect("a number"), half.trim().parse().expect("a number"));
    assert!((2 * plain - 1..=2 * plain).contains(&half), "{plain} {half}");
    // A budget of that size is enough.
    let budget = format!("nvidia.com/gpu: 1\n            nvidia.com/gpumem: {plain}");
    for (size, code) in [(plain, 0), (plain * 9 / 10, 1)] {
        let budget = budget.replace(&plain.to_string(), &size.to_string());
        place.0.put("vgpu.yaml", JOB.replace("nvidia.com/gpu: 2", &budget).as_bytes());
        let ran = place.check(&["--k8s", "vgpu.yaml", "--margin", "0%"]);
        assert_eq!(ran.code, code, "{size}: {}{}", ran.stdout, ran.stderr);
    }
    let claim = place.check(&["--k8s", "job.yaml", "--margin", "0%", "--format", "dra"]);
    let quantity = format!("quantity('{plain}Mi')");
    assert!(
        claim.stdout.contains(&quantity) && claim.stdout.contains("count: 2"),
        "{}",
        claim.stdout
    );
    assert_eq!(xmem_gate::Manifest::parse(&claim.stdout).expect("YAML").values().len(), 1);
}

#[test]
fn a_train_job_is_annotated_for_the_job_set_that_is_made_of_it() {
    let place = Place::new();
    let job = "\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: train
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 1
  podTemplateOverrides:
  - targetJobs: [{name: node}]
    spec:
      nodeSelector:
        nvidia.com/gpu.product: Tesla-T4
";
    place.0.put("train.yaml", job.as_bytes());
    let ran = place.check(&["--k8s", "train.yaml", "--write"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("on t4-16g"), "{}", ran.stdout);
    let written = place.text("train.yaml");
    let (_, spec) = written.split_once("\nspec:\n").expect("a specification");
    assert!(spec.starts_with("  annotations:\n    xmem.dev/peak-bytes: "), "{written}");
    assert_eq!(place.check(&["--k8s", "train.yaml", "--write"]).code, 0);
    assert_eq!(place.text("train.yaml"), written);
}

#[test]
fn manifests_that_cannot_be_used_stay_unchanged() {
    let place = Place::new();
    let no_gpu = JOB.replace("nvidia.com/gpu: 2", "cpu: 2");
    let unknown = JOB.replace("Tesla-T4", "Radeon");
    let anchored = JOB.replace("template:\n", "template: &template\n");
    for (text, args, code, message) in [
        (JOB, &["--write", "--device", "t4-16g"][..], 2, "cannot be used with"),
        (JOB, &["--write"], 2, "--k8s <FILE>"),
        (no_gpu.as_str(), &["--k8s", "job.yaml", "--write"], 2, "the job asks for no GPU"),
        (unknown.as_str(), &["--k8s", "job.yaml", "--write"], 2, "`Radeon` is not known"),
        (anchored.as_str(), &["--k8s", "job.yaml", "--write"], 3, "cannot annotate the manifest"),
        ("a: [", &["--k8s", "job.yaml"], 3, "cannot read the manifest `job.yaml`"),
        (JOB, &["--k8s", "none.yaml"], 3, "none.yaml"),
    ] {
        place.0.put("job.yaml", text.as_bytes());
        let ran = place.check(args);
        let shown = ran.stderr.replace("\n  │ ", " ").replace("\n  ╰─▶ ", " ");
        assert_eq!(ran.code, code, "{message}: {}{}", ran.stdout, ran.stderr);
        assert!(shown.contains(message), "{message}: {shown}");
        assert_eq!(place.text("job.yaml"), text);
    }
}

#[cfg(unix)]
mod serve {
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Stdio};

    /// A server on a free port.
    fn start(place: &Place, args: &[&str]) -> Child {
        let mut command = command(["serve", "--tls-cert", "tls.crt", "--tls-key", "tls.key"]);
        command.current_dir(place.0.path(".")).args(["--listen", "127.0.0.1:0"]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs")
    }

    fn place() -> Place {
        let place = Place::new();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        place.0.put("tls.crt", made.cert.pem().as_bytes());
        place.0.put("tls.key", made.signing_key.serialize_pem().as_bytes());
        place
    }

    #[test]
    fn a_signal_ends_the_server_and_logs_are_json() {
        let place = place();
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let mut child = start(&place, &["--site", "site.toml"]);
            let mut lines = BufReader::new(child.stderr.take().expect("piped"));
            let mut first = String::new();
            lines.read_line(&mut first).expect("a line");
            let event: serde_json::Value = serde_json::from_str(&first).expect("JSON");
            assert_eq!((&event["message"], &event["level"]), (&"serving".into(), &"INFO".into()));
            assert!(event["timestamp"].is_string() && event["address"].is_string(), "{event}");
            kill(Pid::from_raw(child.id() as i32), signal).expect("sent");
            let mut rest = String::new();
            lines.read_to_string(&mut rest).expect("text");
            assert_eq!(child.wait().expect("ends").code(), Some(0), "{rest}");
            assert!(rest.contains("\"message\":\"stopped\""), "{rest}");
        }
    }

    #[test]
    fn what_it_cannot_start_with_is_an_error() {
        let place = place();
        place.0.put("broken.toml", b"policy = 1");
        for (args, code, message) in [
            (&["--site", "broken.toml"][..], 2, "cannot use the site file `broken.toml`"),
            (&["--site", "none.toml"], 2, "cannot use the site file"),
            (&["--tls-key", "site.toml"], 2, "cannot be used multiple times"),
            (&["--listen", "1.2.3.4.5:1"], 2, "invalid"),
        ] {
            let args: Vec<&str> = args.to_vec();
            let ran: Ran = if args[0] == "--listen" {
                let start = ["serve", "--tls-cert", "tls.crt", "--tls-key", "tls.key"];
                let mut command = command(start);
                command.args(&args).current_dir(place.0.path(".")).output().expect("runs").into()
            } else {
                start(&place, &args).wait_with_output().expect("ends").into()
            };
            assert_eq!(ran.code, code, "{}", ran.stderr);
            assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
        }
    }
}

#[test]
fn the_site_file_makes_an_admission_policy() {
    let place = Place::new();
    let config = |args: &[&str]| -> Ran {
        let mut command = command(["config", "--no-config", "--format", "admission-policy"]);
        command.current_dir(place.0.path(".")).args(args);
        command.output().expect("runs").into()
    };
    let ran = config(&["--site", "site.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kinds: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    let (policy, parts) = kinds.split_first().expect("documents");
    assert_eq!(*policy, "ValidatingAdmissionPolicy");
    assert_eq!(parts, ["ConfigMap", "ValidatingAdmissionPolicyBinding"].repeat(2));
    assert!(ran.stdout.contains("  Tesla-V100-SXM2-16GB: \""), "{}", ran.stdout);
    let ran = config(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
}
