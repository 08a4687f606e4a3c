//! The hook's files, which are written to a folder on the command's `PYTHONPATH`.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../python/", $name)))),*]
    };
}

/// Path in the folder, and content, of every file in `python/`.
pub(crate) const HOOK: &[(&str, &str)] = files![
    "sitecustomize.py",
    "xmem_recorder/__init__.py",
    "xmem_recorder/accelerator.py",
    "xmem_recorder/assumptions.py",
    "xmem_recorder/attention.py",
    "xmem_recorder/autocast.py",
    "xmem_recorder/autocast_lists.py",
    "xmem_recorder/checkpoints.py",
    "xmem_recorder/choices.py",
    "xmem_recorder/collectives.py",
    "xmem_recorder/compilation.py",
    "xmem_recorder/counters.py",
    "xmem_recorder/cuda.py",
    "xmem_recorder/cudnn.py",
    "xmem_recorder/devices.py",
    "xmem_recorder/distributed.py",
    "xmem_recorder/engine.py",
    "xmem_recorder/errors.py",
    "xmem_recorder/evaluation.py",
    "xmem_recorder/factories.py",
    "xmem_recorder/facts.py",
    "xmem_recorder/activity.py",
    "xmem_recorder/history.py",
    "xmem_recorder/hostmemory.py",
    "xmem_recorder/imports.py",
    "xmem_recorder/known.py",
    "xmem_recorder/launchers.py",
    "xmem_recorder/lengths.py",
    "xmem_recorder/lines.py",
    "xmem_recorder/loading.py",
    "xmem_recorder/network.py",
    "xmem_recorder/objects.py",
    "xmem_recorder/optimizers.py",
    "xmem_recorder/outside.py",
    "xmem_recorder/patching.py",
    "xmem_recorder/placement.py",
    "xmem_recorder/profilers.py",
    "xmem_recorder/ranks.py",
    "xmem_recorder/rawcalls.py",
    "xmem_recorder/recorder.py",
    "xmem_recorder/redirect.py",
    "xmem_recorder/reducer.py",
    "xmem_recorder/replicas.py",
    "xmem_recorder/saving.py",
    "xmem_recorder/session.py",
    "xmem_recorder/shadows.py",
    "xmem_recorder/sharding.py",
    "xmem_recorder/standins.py",
    "xmem_recorder/stores.py",
    "xmem_recorder/strategies.py",
    "xmem_recorder/streams.py",
    "xmem_recorder/sizes.py",
    "xmem_recorder/swapping.py",
    "xmem_recorder/tensor_types.py",
    "xmem_recorder/tensors.py",
    "xmem_recorder/users.py",
    "xmem_recorder/values.py",
    "xmem_recorder/virtual.py",
    "xmem_recorder/weights.py",
    "xmem_recorder/writes.py",
];

#[cfg(test)]
mod tests {
    use super::HOOK;
    use std::path::{Path, PathBuf};

    fn files(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                files(&path, into);
            } else if path.extension().is_some_and(|e| e == "py") {
                into.push(path);
            }
        }
    }

    #[test]
    fn every_file_of_the_hook_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut existing = Vec::new();
        files(&root, &mut existing);
        existing.sort();
        let mut embedded: Vec<PathBuf> = HOOK.iter().map(|(name, _)| root.join(name)).collect();
        embedded.sort();
        assert_eq!(existing, embedded);
    }
}
