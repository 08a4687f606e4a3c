//! The hook's files, which are written to a folder on the command's `PYTHONPATH`.

use std::collections::BTreeSet;
use std::path::Path;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../python/", $name)))),*]
    };
}

/// Path in the folder, and content, of every file in `python/`.
pub(crate) const HOOK: &[(&str, &str)] = files![
    "sitecustomize.py",
    "xmem_recorder/__init__.py",
    "xmem_recorder/compiler.py",
    "xmem_recorder/cpu/__init__.py",
    "xmem_recorder/cpu/accelerator.py",
    "xmem_recorder/cpu/attention.py",
    "xmem_recorder/cpu/autocast.py",
    "xmem_recorder/cpu/autocast_lists.py",
    "xmem_recorder/cpu/counters.py",
    "xmem_recorder/cpu/cuda.py",
    "xmem_recorder/cpu/devices.py",
    "xmem_recorder/cpu/distributed.py",
    "xmem_recorder/cpu/eager.py",
    "xmem_recorder/cpu/factories.py",
    "xmem_recorder/cpu/host_optimizers.py",
    "xmem_recorder/cpu/loading.py",
    "xmem_recorder/cpu/optimizer_options.py",
    "xmem_recorder/cpu/placement.py",
    "xmem_recorder/cpu/places.py",
    "xmem_recorder/cpu/redirect.py",
    "xmem_recorder/cpu/redirected.py",
    "xmem_recorder/cpu/streams.py",
    "xmem_recorder/cpu/tensor_types.py",
    "xmem_recorder/cpu/tensors.py",
    "xmem_recorder/engine.py",
    "xmem_recorder/errors.py",
    "xmem_recorder/facts/__init__.py",
    "xmem_recorder/facts/cudnn.py",
    "xmem_recorder/facts/job.py",
    "xmem_recorder/facts/memory_fraction.py",
    "xmem_recorder/facts/metadata.py",
    "xmem_recorder/facts/model_facts.py",
    "xmem_recorder/facts/optimizer_facts.py",
    "xmem_recorder/facts/plain.py",
    "xmem_recorder/facts/precision.py",
    "xmem_recorder/facts/sharding.py",
    "xmem_recorder/facts/storages.py",
    "xmem_recorder/facts/strategies.py",
    "xmem_recorder/finished.py",
    "xmem_recorder/graphs/__init__.py",
    "xmem_recorder/graphs/archive.py",
    "xmem_recorder/graphs/course.py",
    "xmem_recorder/graphs/end.py",
    "xmem_recorder/graphs/exporting.py",
    "xmem_recorder/graphs/gradients.py",
    "xmem_recorder/graphs/hidden.py",
    "xmem_recorder/graphs/job.py",
    "xmem_recorder/graphs/names.py",
    "xmem_recorder/graphs/program.py",
    "xmem_recorder/graphs/structures.py",
    "xmem_recorder/graphs/take.py",
    "xmem_recorder/graphs/tape.py",
    "xmem_recorder/graphs/watch.py",
    "xmem_recorder/imports.py",
    "xmem_recorder/isolation/__init__.py",
    "xmem_recorder/isolation/hubs.py",
    "xmem_recorder/isolation/network.py",
    "xmem_recorder/isolation/raw_calls.py",
    "xmem_recorder/isolation/trackers.py",
    "xmem_recorder/isolation/writes.py",
    "xmem_recorder/measures/__init__.py",
    "xmem_recorder/measures/adafactor.py",
    "xmem_recorder/measures/adam8bit.py",
    "xmem_recorder/measures/autocast.py",
    "xmem_recorder/measures/batch_size.py",
    "xmem_recorder/measures/bfloat16.py",
    "xmem_recorder/measures/blocks.py",
    "xmem_recorder/measures/checkpointing.py",
    "xmem_recorder/measures/chunked_cross_entropy.py",
    "xmem_recorder/measures/common.py",
    "xmem_recorder/measures/compile.py",
    "xmem_recorder/measures/early_zero_grad.py",
    "xmem_recorder/measures/foreach_off.py",
    "xmem_recorder/measures/fsdp.py",
    "xmem_recorder/measures/fused.py",
    "xmem_recorder/measures/host_activations.py",
    "xmem_recorder/measures/host_optimizer.py",
    "xmem_recorder/measures/host_parameters.py",
    "xmem_recorder/measures/lora.py",
    "xmem_recorder/measures/micro_batches.py",
    "xmem_recorder/measures/sdpa.py",
    "xmem_recorder/measures/sharding.py",
    "xmem_recorder/measures/step_in_backward.py",
    "xmem_recorder/operators.py",
    "xmem_recorder/own_iterations.py",
    "xmem_recorder/patching.py",
    "xmem_recorder/planned/__init__.py",
    "xmem_recorder/planned/cpu.py",
    "xmem_recorder/planned/gpu.py",
    "xmem_recorder/planned/plans.py",
    "xmem_recorder/profilers.py",
    "xmem_recorder/ranks/__init__.py",
    "xmem_recorder/ranks/agreements.py",
    "xmem_recorder/ranks/collectives.py",
    "xmem_recorder/ranks/launchers.py",
    "xmem_recorder/ranks/messages.py",
    "xmem_recorder/ranks/place.py",
    "xmem_recorder/ranks/process.py",
    "xmem_recorder/ranks/reducer.py",
    "xmem_recorder/ranks/stores.py",
    "xmem_recorder/recording/__init__.py",
    "xmem_recorder/recording/abridged.py",
    "xmem_recorder/recording/after_steps.py",
    "xmem_recorder/recording/allocators.py",
    "xmem_recorder/recording/backward.py",
    "xmem_recorder/recording/batches.py",
    "xmem_recorder/recording/begin.py",
    "xmem_recorder/recording/calls.py",
    "xmem_recorder/recording/end.py",
    "xmem_recorder/recording/evaluation.py",
    "xmem_recorder/recording/expected.py",
    "xmem_recorder/recording/export.py",
    "xmem_recorder/recording/following.py",
    "xmem_recorder/recording/forward.py",
    "xmem_recorder/recording/growth.py",
    "xmem_recorder/recording/iterations.py",
    "xmem_recorder/recording/lengths.py",
    "xmem_recorder/recording/lines.py",
    "xmem_recorder/recording/loaders.py",
    "xmem_recorder/recording/memory.py",
    "xmem_recorder/recording/parts.py",
    "xmem_recorder/recording/passes.py",
    "xmem_recorder/recording/replicas.py",
    "xmem_recorder/recording/rest.py",
    "xmem_recorder/recording/run.py",
    "xmem_recorder/recording/sources.py",
    "xmem_recorder/recording/stepping.py",
    "xmem_recorder/recording/steps.py",
    "xmem_recorder/recording/swapping.py",
    "xmem_recorder/recording/trainers.py",
    "xmem_recorder/recording/transforms.py",
    "xmem_recorder/recording/watch.py",
    "xmem_recorder/scaling.py",
    "xmem_recorder/session.py",
    "xmem_recorder/shadows.py",
    "xmem_recorder/stacks.py",
    "xmem_recorder/users.py",
    "xmem_recorder/virtual/__init__.py",
    "xmem_recorder/virtual/activity.py",
    "xmem_recorder/virtual/assumptions.py",
    "xmem_recorder/virtual/autotuning.py",
    "xmem_recorder/virtual/backward.py",
    "xmem_recorder/virtual/branches.py",
    "xmem_recorder/virtual/calls.py",
    "xmem_recorder/virtual/checkpoints.py",
    "xmem_recorder/virtual/choices.py",
    "xmem_recorder/virtual/compilation.py",
    "xmem_recorder/virtual/device_facts.py",
    "xmem_recorder/virtual/extensions.py",
    "xmem_recorder/virtual/gpu.py",
    "xmem_recorder/virtual/history.py",
    "xmem_recorder/virtual/host_memory.py",
    "xmem_recorder/virtual/integers.py",
    "xmem_recorder/virtual/intervals.py",
    "xmem_recorder/virtual/known.py",
    "xmem_recorder/virtual/library.py",
    "xmem_recorder/virtual/nccl.py",
    "xmem_recorder/virtual/objects.py",
    "xmem_recorder/virtual/outside.py",
    "xmem_recorder/virtual/peaks.py",
    "xmem_recorder/virtual/random_numbers.py",
    "xmem_recorder/virtual/received.py",
    "xmem_recorder/virtual/shapes.py",
    "xmem_recorder/virtual/sizes.py",
    "xmem_recorder/virtual/values.py",
    "xmem_recorder/virtual/written.py",
    "xmem_recorder/weights/__init__.py",
    "xmem_recorder/weights/mapping.py",
    "xmem_recorder/weights/missing.py",
    "xmem_recorder/weights/pretrained.py",
    "xmem_recorder/weights/standins.py",
];

/// The folders of these files, each after the one that it is in.
pub(crate) fn folders() -> BTreeSet<&'static Path> {
    let parents = HOOK.iter().flat_map(|(name, _)| Path::new(name).ancestors().skip(1));
    parents.filter(|folder| !folder.as_os_str().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{HOOK, folders};
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

    /// Runs a program of Python with the hook's folder and the names of its modules.
    fn run(script: &str) {
        let module = |(file, _): &(&str, &str)| {
            let name = file.strip_suffix(".py")?.replace('/', ".");
            name.starts_with("xmem_recorder").then(|| name.trim_end_matches(".__init__").to_owned())
        };
        let mut python = std::process::Command::new("python3");
        python.args(["-I", "-S", "-B", "-c", script]);
        python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python"));
        let output = python.args(HOOK.iter().filter_map(module)).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Modules of torch are imported by functions, so that none is needed here.
    #[test]
    fn every_module_of_the_hook_can_be_imported_first() {
        run(r#"
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    for loaded in [known for known in sys.modules if known.startswith("xmem_recorder")]:
        del sys.modules[loaded]
    importlib.import_module(name)
"#);
    }

    #[test]
    fn modules_of_the_hook_do_not_import_each_other_in_a_circle() {
        run(r#"
import ast, importlib.util, os, sys
folder, names = sys.argv[1], sys.argv[2:]

def imported(name):
    file = os.path.join(folder, *name.split("."))
    is_package = os.path.isdir(file)
    with open(os.path.join(file, "__init__.py") if is_package else file + ".py") as source:
        tree = ast.parse(source.read())
    package = name if is_package else name.rpartition(".")[0]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in names else base

uses = {name: sorted(set(imported(name))) for name in names}
assert any(uses.values())
left = set(names)
while left:
    ends = {name for name in left if not left.intersection(uses[name])}
    assert ends, f"in a circle, or behind one: {sorted(left)}"
    left -= ends
"#);
    }

    /// Also when Python has specialized the functions, after some calls.
    #[test]
    fn an_unknown_value_takes_the_branch_that_raises_nothing() {
        run(r#"
import sys
sys.path.insert(0, sys.argv[1])
from xmem_recorder.virtual import branches

class Unknown:
    def __bool__(self):
        self.truth = branches.truth_without_exception(sys._getframe(1))
        return bool(self.truth)

value = Unknown()

def raises_if_not():
    if not value:
        raise ValueError(f"of shape {tuple([1])} " + str(3))

def raises_if():
    if value:
        raise ValueError("found")

def asserts():
    assert value

def asserts_not():
    assert not value, "found"

def raises_behind():
    if value:
        return 1
    raise ValueError("not found")

def returned():
    return bool(value)

def tests_what_is_returned():
    if not returned():
        raise ValueError("not found")

def raises_never():
    if value:
        return 1
    return 2

def raises_always():
    if value:
        raise ValueError("one")
    raise ValueError("other")

expected = {
    raises_if_not: True,
    raises_if: False,
    asserts: True,
    asserts_not: False,
    raises_behind: True,
    tests_what_is_returned: True,
    raises_never: None,
    raises_always: None,
}
for _ in range(100):
    for function, truth in expected.items():
        try:
            function()
        except ValueError:
            assert truth is None, function
        assert value.truth == truth, (function, value.truth)
"#);
    }

    #[test]
    fn the_place_of_zero_grad_follows_from_the_order_of_events() {
        run(r#"
import sys
sys.path.insert(0, sys.argv[1])
from xmem_recorder.graphs import course

def of(*kinds):
    seen = course.Course()
    for kind in kinds:
        seen.note(kind, set_to_none=True, optimizer=None, index=0, closure=False)
    return seen

Z, F, B, S = course.ZERO_GRAD, course.FORWARD, course.BACKWARD, course.STEP
for kinds, place, left in [
    ((Z, F, B, S), "before-forward", 4),
    ((Z, F, B, S, Z), "before-forward", 4),
    ((F, Z, B, S), "before-backward", 4),
    ((F, B, S, Z), "after-step", 4),
    ((F, B, F, B, S, Z), "after-step", 6),
    ((F, B, S), "none", 3),
    ((F, B, Z, F, B, S), "between", 6),
]:
    seen = of(*kinds)
    assert seen.zero_grad()["place"] == place, (kinds, seen.zero_grad())
    assert len(seen.of_one_iteration()) == left, kinds
assert [kind for kind, _ in of(F, F, B, F).events] == [F, B, F]
"#);
    }

    #[test]
    fn tensors_are_found_and_replaced_in_what_models_take_and_give() {
        run(r#"
import collections, dataclasses, sys, types
sys.path.insert(0, sys.argv[1])
from xmem_recorder.graphs import names, structures

class Tensor:
    pass

torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Module=type("Module", (), {})))
Pair = collections.namedtuple("Pair", "a b")

@dataclasses.dataclass
class Output:
    loss: object
    number: int

a, b, c, d = (Tensor() for _ in range(4))
value = {"x": [a, 1], "y": Pair(b, None), "z": Output(c, 2), "s": slice(d, None)}
assert structures.tensors(torch, value) == [a, b, c, d]
changed = structures.change(torch, value, lambda tensor: "T")
assert changed == {"x": ["T", 1], "y": Pair("T", None), "z": Output("T", 2), "s": slice("T", None)}
assert value["z"].loss is c and value["x"][0] is a
plain = (1, "text", Output(None, 3))
assert structures.change(torch, plain, lambda tensor: "T") is plain
taken = {"x": 0, "x_2": 0}
assert names.unique("x", taken) == "x_3" and names.identifier("lambda") == "the_lambda"
"#);
    }

    #[test]
    fn every_folder_of_the_hook_is_a_package() {
        for folder in folders() {
            let of_package = folder.join("__init__.py");
            assert!(HOOK.iter().any(|(name, _)| Path::new(name) == of_package), "{folder:?}");
        }
    }
}
