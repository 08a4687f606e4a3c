//! Job scripts for clusters: each part of the jobs is a process that needs the matrix and the store.

use super::args::{Cluster, EvalArgs};
use super::error::EvalFailure;
use super::place::absolute;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::output;
use crate::shell::quoted;
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Prints or submits the job script for a cluster.
pub(super) fn run(cluster: Cluster, args: &EvalArgs) -> Outcome {
    let script = script(cluster, args)?;
    match args.submit {
        true => submit(submitter(cluster), &script)?,
        false => output::write(script.as_bytes(), args.output.as_deref())?,
    }
    Ok(Exit::Fits)
}

/// The job script that the arguments ask for.
fn script(cluster: Cluster, args: &EvalArgs) -> Result<String, EvalFailure> {
    let shards = args.shards.map_or(1, NonZeroU64::get);
    let words = words(args)?;
    Ok(match cluster {
        Cluster::Slurm => slurm(&shell_line(&words, "$SLURM_ARRAY_TASK_ID", shards), shards),
        Cluster::Kubernetes => {
            let image = args.image.as_deref().ok_or(EvalFailure::NoImage)?;
            let line = shell_line(&words, "$((JOB_COMPLETION_INDEX + 1))", shards);
            kubernetes(&line, image, shards)
        }
        Cluster::Ray => ray(&words, shards),
    })
}

/// The command that takes a job script on its standard input.
const fn submitter(cluster: Cluster) -> &'static [&'static str] {
    match cluster {
        Cluster::Slurm => &["sbatch"],
        Cluster::Kubernetes => &["kubectl", "create", "-f", "-"],
        Cluster::Ray => &["python3", "-"],
    }
}

fn submit(submitter: &[&str], script: &str) -> Result<(), EvalFailure> {
    let failed = |source| EvalFailure::NotStarted { program: submitter[0].to_owned(), source };
    let mut child = Command::new(submitter[0])
        .args(&submitter[1..])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(script.as_bytes()) {
            // Its exit status says why it did not read all of it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(failed)?,
        }
    }
    let status = child.wait().map_err(failed)?;
    match status.success() {
        true => Ok(()),
        false => Err(EvalFailure::NotSubmitted { program: submitter[0].to_owned(), status }),
    }
}

/// The command of all parts: what follows is `--shard` with the number of one.
fn words(args: &EvalArgs) -> Result<Vec<String>, EvalFailure> {
    let store = args.store.as_ref().ok_or(EvalFailure::NoStore)?;
    let mut words = vec!["xmem".to_owned(), "eval".to_owned(), absolute(&args.matrix)];
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    if let Some(readings) = &args.readings {
        add("--readings", absolute(readings));
    }
    for results in &args.results {
        add("--results", absolute(results));
    }
    add("--store", store.argument());
    if !args.estimators.is_empty() {
        add("--estimators", args.estimators.join(","));
    }
    if let Some(sample) = args.sample {
        add("--sample", sample.to_string());
        add("--seed", args.seed.to_string());
    }
    for (factor, value) in &args.only {
        add("--only", format!("{factor}={value}"));
    }
    if let Some(cudnn) = &args.cudnn.cudnn {
        add("--cudnn", cudnn.to_string());
    }
    if args.without_second_round {
        words.push("--without-second-round".to_owned());
    }
    words.extend(["--jobs", "1", "--shard"].map(str::to_owned));
    Ok(words)
}

/// The command of one part for a shell; `number` is an expression of the shell.
fn shell_line(words: &[String], number: &str, shards: u64) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("{} \"{number}/{shards}\"", words.join(" "))
}

/// A job array: a part that fails is run again, and one whose machine is lost is put into the queue again.
fn slurm(command: &str, shards: u64) -> String {
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=xmem-eval\n\
         #SBATCH --array=1-{shards}\n\
         #SBATCH --cpus-per-task=2\n\
         #SBATCH --mem=8G\n\
         #SBATCH --requeue\n\
         for attempt in 1 2 3; do\n    \
         {command} && exit\n\
         done\n\
         exit 1\n"
    )
}

/// An Indexed Job: a part whose pod dies is run again, and finds what it had done in the store.
fn kubernetes(command: &str, image: &str, shards: u64) -> String {
    let (image, command) = (in_quotes(image), in_quotes(&format!("exec {command}")));
    format!(
        "apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  name: xmem-eval\n\
         spec:\n  completionMode: Indexed\n  completions: {shards}\n  parallelism: {shards}\n  backoffLimitPerIndex: 3\n  \
         template:\n    spec:\n      restartPolicy: Never\n      containers:\n        - name: xmem-eval\n          \
         image: {image}\n          command: [\"/bin/sh\", \"-c\", {command}]\n          \
         resources:\n            requests:\n              cpu: \"2\"\n              memory: 8Gi\n"
    )
}

/// A script that runs the parts as tasks: one that fails, or whose machine is lost, is run again.
fn ray(words: &[String], shards: u64) -> String {
    let words: Vec<String> = words.iter().map(|word| in_quotes(word)).collect();
    format!(
        "# Records the parts of an evaluation as tasks of Ray. RAY_ADDRESS names the cluster.\n\
         import subprocess\n\
         \n\
         import ray\n\
         \n\
         PARTS = {shards}\n\
         COMMAND = [{}]\n\
         \n\
         \n\
         @ray.remote(num_cpus=2, max_retries=3, retry_exceptions=True)\n\
         def record(part):\n    \
         subprocess.run([*COMMAND, f\"{{part}}/{{PARTS}}\"], check=True)\n\
         \n\
         \n\
         ray.init()\n\
         ray.get([record.remote(part) for part in range(1, PARTS + 1)])\n",
        words.join(", ")
    )
}

/// A text in double quotes, as YAML and Python have them.
fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const COMMAND: &str = "xmem eval '/m x.toml' --shard \"$SLURM_ARRAY_TASK_ID/4\"";

    #[test]
    fn a_job_array_has_a_task_for_each_part() {
        expect![[r#"
            #!/bin/sh
            #SBATCH --job-name=xmem-eval
            #SBATCH --array=1-4
            #SBATCH --cpus-per-task=2
            #SBATCH --mem=8G
            #SBATCH --requeue
            for attempt in 1 2 3; do
                xmem eval '/m x.toml' --shard "$SLURM_ARRAY_TASK_ID/4" && exit
            done
            exit 1
        "#]]
        .assert_eq(&slurm(COMMAND, 4));
    }

    #[test]
    fn an_indexed_job_has_a_pod_for_each_part() {
        expect![[r#"
            apiVersion: batch/v1
            kind: Job
            metadata:
              name: xmem-eval
            spec:
              completionMode: Indexed
              completions: 4
              parallelism: 4
              backoffLimitPerIndex: 3
              template:
                spec:
                  restartPolicy: Never
                  containers:
                    - name: xmem-eval
                      image: "img:1"
                      command: ["/bin/sh", "-c", "exec xmem eval '/m x.toml' --shard \"$SLURM_ARRAY_TASK_ID/4\""]
                      resources:
                        requests:
                          cpu: "2"
                          memory: 8Gi
        "#]]
        .assert_eq(&kubernetes(COMMAND, "img:1", 4));
    }

    #[test]
    fn a_script_for_ray_has_a_task_for_each_part() {
        let words = ["xmem", "eval", "/m \"x\".toml", "--shard"].map(str::to_owned);
        expect![[r##"
            # Records the parts of an evaluation as tasks of Ray. RAY_ADDRESS names the cluster.
            import subprocess

            import ray

            PARTS = 4
            COMMAND = ["xmem", "eval", "/m \"x\".toml", "--shard"]


            @ray.remote(num_cpus=2, max_retries=3, retry_exceptions=True)
            def record(part):
                subprocess.run([*COMMAND, f"{part}/{PARTS}"], check=True)


            ray.init()
            ray.get([record.remote(part) for part in range(1, PARTS + 1)])
        "##]]
        .assert_eq(&ray(&words, 4));
    }
}
