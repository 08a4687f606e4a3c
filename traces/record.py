#!/usr/bin/env python3
"""Records a case for this folder: a CPU profiler trace of a training job and, where there is a GPU,
what PyTorch's CUDA allocator did with the same job.

    traces/record.py NAME                                  # a small MLP: needs nothing but torch
    traces/record.py NAME --model resnet18 --optimizer sgd-momentum --batch 8 --image 96
    traces/record.py NAME --model gpt2 --optimizer adamw --batch 8 --seq 64 --dtype amp-bf16
    traces/record.py NAME --job my_job.py                  # your own job, see README.md

The folder NAME then holds trace.json.zst and meta.toml, and after a recording on a GPU also
expected.toml and snapshot.pickle.zst. README.md describes them.
"""

import argparse
import contextlib
import gc
import hashlib
import json
import os
import platform
import shlex
import shutil
import site
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

MIN_PYTHON = (3, 9)
HERE = Path(__file__).resolve().parent


# ---------------------------------------------------------------------------------------------
# What can be recorded
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A Hugging Face model family: classes to build it and the sizes of its small default."""

    config_class: str
    model_class: str
    sizes: dict = field(default_factory=dict)


def _decoder(**more) -> dict:
    return {
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "num_attention_heads": 8,
        "vocab_size": 8192,
        "max_position_embeddings": 512,
        **more,
    }


CAUSAL = "AutoModelForCausalLM"
FAMILIES = {
    "gpt2": Family(
        "GPT2Config",
        CAUSAL,
        {"n_layer": 4, "n_embd": 256, "n_head": 8, "vocab_size": 8192, "n_positions": 512},
    ),
    "opt": Family("OPTConfig", CAUSAL, _decoder(ffn_dim=1024, word_embed_proj_dim=256)),
    "pythia": Family("GPTNeoXConfig", CAUSAL, _decoder(intermediate_size=1024)),
    "llama": Family(
        "LlamaConfig", CAUSAL, _decoder(intermediate_size=704, num_key_value_heads=8)
    ),
    "qwen2": Family(
        "Qwen2Config", CAUSAL, _decoder(intermediate_size=704, num_key_value_heads=2)
    ),
    "qwen3": Family(
        "Qwen3Config", CAUSAL, _decoder(intermediate_size=704, num_key_value_heads=2, head_dim=32)
    ),
    "bert": Family("BertConfig", "AutoModelForMaskedLM", _decoder(intermediate_size=1024)),
    "t5": Family(
        "T5Config",
        "AutoModelForSeq2SeqLM",
        {
            "num_layers": 3,
            "num_decoder_layers": 3,
            "d_model": 256,
            "d_ff": 1024,
            "d_kv": 32,
            "num_heads": 8,
            "vocab_size": 8192,
            "decoder_start_token_id": 0,
        },
    ),
}

# Name on the command line -> name in torch.optim and its arguments.
OPTIMIZERS = {
    "sgd": ("SGD", {}),
    "sgd-momentum": ("SGD", {"momentum": 0.9}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "rmsprop": ("RMSprop", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
    "adafactor": ("Adafactor", {}),
    "nadam": ("NAdam", {}),
    "radam": ("RAdam", {}),
    "adamax": ("Adamax", {}),
    "asgd": ("ASGD", {}),
    "rprop": ("Rprop", {}),
}
HF_ADAFACTOR = "hf-adafactor"
FOREACH = {
    "default": {},
    "on": {"foreach": True},
    "off": {"foreach": False},
    "fused": {"fused": True},
}
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "amp-bf16": "float32"}
MLP_SIZES = {"inputs": 1024, "hidden": 2048, "layers": 4, "classes": 10}


@dataclass
class Job:
    """Something to train: `step()` runs one iteration."""

    step: Callable[[], None]
    parameters: list


# ---------------------------------------------------------------------------------------------
# Building the job (imports torch)
# ---------------------------------------------------------------------------------------------


def build_mlp(sizes: dict):
    from torch import nn

    width = {**MLP_SIZES, **sizes}
    layers: list = [nn.Linear(width["inputs"], width["hidden"]), nn.ReLU()]
    for _ in range(width["layers"] - 2):
        layers += [nn.Linear(width["hidden"], width["hidden"]), nn.ReLU(), nn.Dropout(0.1)]
    layers.append(nn.Linear(width["hidden"], width["classes"]))
    return nn.Sequential(*layers), width


def build_hugging_face(options, sizes: dict):
    import transformers

    family = FAMILIES[options.model]
    config = getattr(transformers, family.config_class)(**{**family.sizes, **sizes})
    if options.attention:
        config._attn_implementation = options.attention
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = getattr(transformers, family.model_class).from_config(config)
    if options.checkpointing:
        model.gradient_checkpointing_enable()
    return model


def build_model(options):
    """The model, and two functions: one that makes a batch, one that makes the loss of a batch."""
    import torch

    sizes = json.loads(options.config)
    if options.model in FAMILIES:
        model = build_hugging_face(options, sizes)
        shape = (options.batch, options.seq)
        vocabulary = model.config.vocab_size
        return (
            model,
            lambda: (torch.randint(0, vocabulary, shape),),
            lambda ids: model(input_ids=ids, labels=ids).loss,
        )
    if options.model == "mlp":
        model, width = build_mlp(sizes)
        shape, classes = (options.batch, width["inputs"]), width["classes"]
    else:
        import torchvision

        model = torchvision.models.get_model(options.model, weights=None, **sizes)
        shape = (options.batch, 3, options.image, options.image)
        classes = sizes.get("num_classes", 1000)
    loss = torch.nn.functional.cross_entropy
    return (
        model,
        lambda: (torch.randn(shape), torch.randint(0, classes, (options.batch,))),
        lambda inputs, targets: loss(model(inputs), targets),
    )


def build_optimizer(options, parameters):
    import torch

    if options.optimizer == HF_ADAFACTOR:
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=1e-3, relative_step=False, scale_parameter=False)
    name, arguments = OPTIMIZERS[options.optimizer]
    arguments = {**arguments, **FOREACH[options.foreach]}
    return getattr(torch.optim, name)(parameters, lr=1e-3, **arguments)


def built_in_job(options, device, mark) -> Job:
    """A model of this file with its optimizer, as a Job."""
    import torch

    dtype = getattr(torch, DTYPES[options.dtype])
    autocast = options.dtype == "amp-bf16"
    model, make_batch, make_loss = build_model(options)
    model.train()
    model.to(device=device, dtype=dtype) if dtype != torch.float32 else model.to(device)
    optimizer = build_optimizer(options, model.parameters())
    gc.collect()

    def load():
        batch = tuple(tensor.to(device) for tensor in make_batch())
        if dtype == torch.float32:
            return batch
        return tuple(t.to(dtype) if t.is_floating_point() else t for t in batch)

    variables: dict = {}

    def step():
        with mark("data"):
            variables["batch"] = load()
        if options.zero_grad == "pos1":
            with mark("zero_grad"):
                optimizer.zero_grad()
        with mark("forward"), torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            variables["loss"] = make_loss(*variables["batch"])
        if options.zero_grad == "pos0":
            with mark("zero_grad"):
                optimizer.zero_grad()
        with mark("backward"):
            variables["loss"].backward()
        with mark("step"):
            optimizer.step()
        variables["loss"].item()
        if not options.keep_variables:
            variables.clear()

    return Job(step, list(model.parameters()))


def load_job(path: str) -> dict:
    """The names of a user's file: `setup(device)` gives the model and a function for one
    iteration; `COVERS`, if there, what the case adds to the collection, and `OPTIMIZER_IMPL` how the
    optimizer runs on a GPU if not by its default (`fused`, `for-loop`)."""
    import runpy

    names = runpy.run_path(path, run_name="xmem_job")
    if "setup" not in names:
        sys.exit(f"{path} has no function `setup(device)`: see traces/README.md")
    return names


def own_job(setup: Callable, device) -> Job:
    model, step = setup(device)
    return Job(step, list(model.parameters()))


# ---------------------------------------------------------------------------------------------
# Recording one side (runs in a process of its own)
# ---------------------------------------------------------------------------------------------


def record_side(options, device_name: str, out: Path) -> None:
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(device_name)
    if options.model not in FAMILIES and options.model != "mlp" and not options.job:
        import torchvision  # noqa: F401  (its import would otherwise be part of the trace)
    if options.model in FAMILIES or options.optimizer == HF_ADAFACTOR:
        import transformers  # noqa: F401
    import_lazily_loaded_modules(options)
    torch.manual_seed(0)
    if device.type == "cuda":
        record_cuda(options, device, out)
    else:
        record_cpu(options, device, out)


def import_lazily_loaded_modules(options) -> None:
    """Builds model and optimizer once without memory. Libraries import much on first use; within
    the profiler, that would be most of the trace."""
    import torch

    if options.job:
        options.setup = load_job(options.job)["setup"]
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
        return
    # Some models read values of tensors while they are built, which have none here.
    with torch.device("meta"), contextlib.suppress(NotImplementedError):
        build_model(options)
    build_optimizer(options, [torch.nn.Parameter(torch.zeros(1))])


def marks(options):
    """Names the phases in the trace, if asked for; xmem does not need the names."""
    import torch

    if not options.annotate:
        return lambda _: contextlib.nullcontext()
    return lambda phase: torch.profiler.record_function(f"## {phase} ##")


def make_job(options, device) -> Job:
    if options.job:
        return own_job(options.setup, device)
    return built_in_job(options, device, marks(options))


def run_job(options, device, after_init, after_iteration) -> Job:
    mark = marks(options)
    with mark("init"):
        job = make_job(options, device)
    after_init(job)
    for index in range(options.iterations):
        with mark(f"iter {index}"):
            job.step()
        after_iteration()
    return job


def record_cpu(options, device, out: Path) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(
        activities=[ProfilerActivity.CPU],
        profile_memory=True,
        record_shapes=True,
        with_stack=not options.no_stack,
    ) as recording:
        run_job(options, device, lambda _: None, lambda: None)
    recording.export_chrome_trace(str(out / "trace.json"))


def record_cuda(options, device, out: Path) -> None:
    import torch

    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context="all", stacks="python")
    seen: dict = {"iterations": []}

    def after_init(job):
        seen["parameters"] = sum(p.numel() for p in job.parameters)
        seen["parameter_bytes"] = sum(p.numel() * p.element_size() for p in job.parameters)
        seen["after_init"] = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

    def after_iteration():
        seen["iterations"].append(
            {
                "allocated-bytes": torch.cuda.memory_allocated(),
                "reserved-bytes": torch.cuda.memory_reserved(),
                "max-allocated-bytes": torch.cuda.max_memory_allocated(),
                "max-reserved-bytes": torch.cuda.max_memory_reserved(),
            }
        )

    run_job(options, device, after_init, after_iteration)
    torch.cuda.memory._dump_snapshot(str(out / "snapshot.pickle"))
    (out / "expected.toml").write_text(expected_toml(seen, options.how))


def expected_toml(seen: dict, how: str) -> str:
    import torch

    properties = torch.cuda.get_device_properties(0)
    stats = torch.cuda.memory_stats()
    allocator = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
    return toml(
        {
            "schema": "xmem.expected/1",
            "how": how,
            "allocator-config": allocator or "",
            "parameters": seen["parameters"],
            "parameter-bytes": seen["parameter_bytes"],
            "device": {
                "name": properties.name,
                "compute-capability": f"{properties.major}.{properties.minor}",
                "memory-bytes": properties.total_memory,
                "sms": properties.multi_processor_count,
            },
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda or ""},
            "peak": {
                "allocated-bytes": torch.cuda.max_memory_allocated(),
                "reserved-bytes": torch.cuda.max_memory_reserved(),
                "active-bytes": stats["active_bytes.all.peak"],
                "requested-bytes": stats["requested_bytes.all.peak"],
                "segments": stats["segment.all.peak"],
            },
            "counts": {"alloc-retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"]},
            "after-init": {
                "allocated-bytes": seen["after_init"][0],
                "reserved-bytes": seen["after_init"][1],
            },
            "iteration": seen["iterations"],
        }
    )


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------


def toml(table: dict) -> str:
    """Writes what this script needs of TOML: strings, numbers, booleans, lists of strings, tables
    and arrays of tables, scalars first."""

    def value(item: Any) -> str:
        if isinstance(item, list):
            return "[" + ", ".join(map(value, item)) + "]"
        return json.dumps(item, ensure_ascii=False)

    def nested(item: Any) -> bool:
        return isinstance(item, dict) or (isinstance(item, list) and item and isinstance(item[0], dict))

    lines = [f"{key} = {value(item)}" for key, item in table.items() if not nested(item)]
    for key, item in table.items():
        if not nested(item):
            continue
        for entry in item if isinstance(item, list) else [item]:
            lines += ["", f"[[{key}]]" if isinstance(item, list) else f"[{key}]"]
            lines += [f"{name} = {value(inner)}" for name, inner in entry.items()]
    return "\n".join(lines) + "\n"


def path_prefixes() -> list:
    """This machine's paths and what they are called in a published trace, longest first."""
    packages = {*site.getsitepackages(), site.getusersitepackages()}
    found = {str(Path(path)): "site-packages" for path in packages}
    found[sys.prefix] = found[sys.base_prefix] = "python"
    found[str(HERE)] = "traces"
    found[os.getcwd()] = "job"
    found[str(Path.home())] = "home"
    found[tempfile.gettempdir()] = "temporary"
    short = {"/root", tempfile.gettempdir()}
    usable = ((path, name) for path, name in found.items() if path.count("/") > 1 or path in short)
    return sorted(usable, key=lambda item: -len(item[0]))


def neutralise(text: bytes) -> tuple:
    """Replaces this machine's paths. The result depends on the text and the paths alone, so equal
    names stay equal. Returns the text and how many names changed."""
    changed = 0
    for path, name in path_prefixes():
        for spelled in {path, json.dumps(path)[1:-1]}:
            needle = spelled.encode() + b"/"
            changed += text.count(needle)
            text = text.replace(needle, name.encode() + b"/")
    return text, changed


def compress(source: Path) -> Path:
    """Compresses with what is there: zstd as a module or program, else gzip (read just as well)."""
    data = source.read_bytes()
    target = source.with_name(source.name + ".zst")
    try:
        from compression import zstd  # Python 3.14

        target.write_bytes(zstd.compress(data, level=19))
    except ImportError:
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "-19", "-f", str(source), "-o", str(target)], check=True)
        else:
            import gzip

            target = source.with_name(source.name + ".gz")
            target.write_bytes(gzip.compress(data, 9, mtime=0))
    source.unlink()
    return target


def versions(options) -> dict:
    from importlib import metadata

    names = ["torch"]
    if options.job:
        text = Path(options.job).read_text()
        names += [n for n in ("torchvision", "transformers") if f"import {n}" in text or f"from {n}" in text]
    elif options.model in FAMILIES or options.optimizer == HF_ADAFACTOR:
        names.append("transformers")
    elif options.model != "mlp":
        names.append("torchvision")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}


def arguments_table(options) -> dict:
    if options.job:
        return {"job": Path(options.job).name, "iterations": options.iterations}
    table = {"model": options.model, "optimizer": options.optimizer, "batch": options.batch}
    if options.model in FAMILIES:
        table["seq"] = options.seq
    elif options.model != "mlp":
        table["image"] = options.image
    table["iterations"] = options.iterations
    table["zero-grad"] = options.zero_grad
    table["dtype"] = options.dtype
    table["checkpointing"] = options.checkpointing
    if options.attention:
        table["attention"] = options.attention
    if options.config != "{}":
        table["config"] = options.config
    if options.foreach != "default":
        table["foreach"] = options.foreach
    return table


def optimizer_impl(options) -> dict:
    """What the optimizer runs on a GPU, where that is not the default and the CPU trace cannot tell."""
    if options.job:
        chosen = load_job(options.job).get("OPTIMIZER_IMPL")
    else:
        chosen = {"off": "for-loop", "fused": "fused"}.get(options.foreach)
    return {"optimizer-impl": chosen} if chosen else {}


def covers(options) -> list:
    """What the case adds to the collection; `cargo xtask tidy` asks for every one of a list."""
    if options.job:
        return load_job(options.job).get("COVERS", ["own-job"])
    family = {"mlp": "mlp", "bert": "encoder", "t5": "encoder-decoder"}.get(options.model)
    if family is None:
        is_vit = options.model.startswith(("vit", "swin"))
        vision = "vision-transformer" if is_vit else "cnn"
        family = "causal-lm" if options.model in FAMILIES else vision
    optimizer = options.optimizer.removeprefix("hf-")
    found = [family, optimizer, f"zero-grad-{options.zero_grad}"]
    if options.dtype != "fp32":
        found.append("amp" if options.dtype.startswith("amp") else options.dtype)
    if options.checkpointing:
        found.append("gradient-checkpointing")
    if options.attention:
        found.append(f"{options.attention}-attention")
    return found


def command(arguments: list) -> str:
    """The command that makes this case again, in the place where it belongs."""
    kept, skip = ["traces/record.py"], False
    for word in arguments:
        if not skip and word != "--out" and not word.startswith("--out="):
            kept.append(word)
        skip = word == "--out"
    return shlex.join(kept)


def write_meta(options, out: Path, trace: bytes, changed: int) -> None:
    paths = (
        f"{changed} names rewritten: site-packages/, python/, job/, traces/, home/ and "
        "temporary/ stand for folders of the recording machine"
        if changed
        else "none: the trace holds no path of the recording machine, so nothing was rewritten"
    )
    meta = {
        "schema": "xmem.trace-meta/1",
        "origin": options.origin,
        "command": command(sys.argv[1:]),
        "paths": paths,
        **optimizer_impl(options),
        "covers": covers(options),
        "trace": {"json-bytes": len(trace), "json-sha256": hashlib.sha256(trace).hexdigest()},
        "versions": versions(options),
        "arguments": arguments_table(options),
    }
    (out / "meta.toml").write_text(toml(meta))


# ---------------------------------------------------------------------------------------------
# Command line
# ---------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("name", help="folder of the case, made beside this script")
    p.add_argument("--out", help="make the folder here instead")
    p.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto",
                   help="which side to record; auto: the CPU, and CUDA where there is a GPU")
    p.add_argument("--model", default="mlp",
                   help=f"mlp, {', '.join(FAMILIES)}, or any name of torchvision.models")
    p.add_argument("--optimizer", choices=[*OPTIMIZERS, HF_ADAFACTOR], default="adamw")
    p.add_argument("--batch", type=int, default=8, metavar="N")
    p.add_argument("--seq", type=int, default=64, metavar="N", help="tokens per sequence")
    p.add_argument("--image", type=int, default=64, metavar="N", help="height and width in pixels")
    p.add_argument("--iterations", type=int, default=3, metavar="N")
    p.add_argument("--zero-grad", choices=["pos0", "pos1"], default="pos1",
                   help="pos1: at the start of the iteration; pos0: just before backward")
    p.add_argument("--dtype", choices=list(DTYPES), default="fp32")
    p.add_argument("--attention", metavar="KIND", help="eager, sdpa, … (Hugging Face models)")
    p.add_argument("--checkpointing", action="store_true",
                   help="gradient checkpointing (Hugging Face models)")
    p.add_argument("--keep-variables", action="store_true",
                   help="keep batch and loss until the next iteration replaces them, as a loop that is "
                        "not in a function does")
    p.add_argument("--foreach", choices=list(FOREACH), default="default",
                   help="how the optimizer runs over its parameters")
    p.add_argument("--config", default="{}", metavar="JSON", help="sizes that differ from the default")
    p.add_argument("--job", metavar="FILE", help="a Python file with `setup(device)`: your own job")
    p.add_argument("--no-stack", action="store_true", help="without Python stacks: a smaller trace")
    p.add_argument("--annotate", action="store_true",
                   help="name the phases in the trace with record_function")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="CPU threads for torch")
    p.add_argument("--origin", default="recorded by record.py on random data",
                   help="a sentence for meta.toml")
    p.add_argument("--how", default="recorded on a GPU",
                   help="how the CUDA side is recorded, for expected.toml")
    p.add_argument("--side", choices=["cpu", "cuda"], help=argparse.SUPPRESS)
    return p


def cuda_is_there() -> bool:
    probe = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe]).returncode == 0


def run_side(side: str, scratch: Path) -> None:
    """One fresh process per side: neither sees the other's allocations or imports."""
    arguments = [*sys.argv[1:], "--side", side, "--out", str(scratch)]
    done = subprocess.run([sys.executable, str(Path(__file__).resolve()), *arguments])
    if done.returncode != 0:
        sys.exit(f"recording on {side} failed, see above; nothing was written")


def main() -> None:
    if sys.version_info < MIN_PYTHON:
        sys.exit("record.py needs Python 3.9 or later")
    options = parser().parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if options.side:
        return record_side(options, options.side, Path(options.out))
    try:
        import importlib.metadata

        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("PyTorch is not installed: `pip install torch` (torchvision, transformers for their models)")
    with_cuda = options.device == "cuda" or (options.device == "auto" and cuda_is_there())
    out = Path(options.out or HERE / options.name)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if options.device != "cuda":
            run_side("cpu", scratch)
        if with_cuda:
            run_side("cuda", scratch)
        out.mkdir(parents=True, exist_ok=True)
        trace = scratch / "trace.json"
        if trace.exists():
            text, changed = neutralise(trace.read_bytes())
            trace.write_bytes(text)
            write_meta(options, out, text, changed)
            shutil.copy(compress(trace), out)
        if (scratch / "expected.toml").exists():
            shutil.copy(scratch / "expected.toml", out)
            shutil.copy(compress(scratch / "snapshot.pickle"), out)
    print(f"wrote {', '.join(sorted(entry.name for entry in out.iterdir()))} to {out}")


if __name__ == "__main__":
    main()
