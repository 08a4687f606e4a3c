//! Job scripts for clusters: each part of the jobs is a process that needs the matrix and the store.

use super::args::{Cluster, EvalArgs};
use super::error::EvalFailure;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::output;
use crate::shell::quoted;
use std::path::Path;

/// Prints the job script that the arguments ask for.
pub(super) fn print(args: &EvalArgs) -> Outcome {
    let shards = args.shards.map_or(1, std::num::NonZeroU64::get);
    if args.store.is_none() {
        return Err(EvalFailure::NoStore.into());
    }
    let page = match args.on {
        Some(Cluster::Kubernetes) => {
            let image = args.image.as_deref().ok_or(EvalFailure::NoImage)?;
            kubernetes(&words(args, "$((JOB_COMPLETION_INDEX + 1))", shards), image, shards)
        }
        _ => slurm(&words(args, "$SLURM_ARRAY_TASK_ID", shards), shards),
    };
    output::write(page.as_bytes(), args.output.as_deref())?;
    Ok(Exit::Fits)
}

/// The command of one part, for a shell; `number` is an expression of the shell.
fn words(args: &EvalArgs, number: &str, shards: u64) -> String {
    let path = |path: &Path| {
        quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy())
    };
    let mut line = format!("xmem eval {}", path(&args.matrix));
    if let Some(readings) = &args.readings {
        line += &format!(" --readings {}", path(readings));
    }
    if let Some(store) = &args.store {
        line += &format!(" --store {}", path(store));
    }
    if !args.estimators.is_empty() {
        line += &format!(" --estimators {}", quoted(&args.estimators.join(",")));
    }
    if let Some(sample) = args.sample {
        line += &format!(" --sample {sample} --seed {}", args.seed);
    }
    for (factor, value) in &args.only {
        line += &format!(" --only {}", quoted(&format!("{factor}={value}")));
    }
    if let Some(cudnn) = &args.cudnn.cudnn {
        line += &format!(" --cudnn {}", quoted(&cudnn.to_string()));
    }
    if args.without_second_round {
        line += " --without-second-round";
    }
    format!("{line} --jobs 1 --shard \"{number}/{shards}\"")
}

fn slurm(command: &str, shards: u64) -> String {
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=xmem-eval\n\
         #SBATCH --array=1-{shards}\n\
         #SBATCH --cpus-per-task=2\n\
         #SBATCH --mem=8G\n\
         #SBATCH --requeue\n\
         exec {command}\n"
    )
}

/// An Indexed Job: a part whose pod dies is run again, and finds what it had done in the store.
fn kubernetes(command: &str, image: &str, shards: u64) -> String {
    let (image, command) = (yaml(image), yaml(&format!("exec {command}")));
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

/// A text in double quotes, as YAML has them.
fn yaml(text: &str) -> String {
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
            exec xmem eval '/m x.toml' --shard "$SLURM_ARRAY_TASK_ID/4"
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
}
