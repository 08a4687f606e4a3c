"""The graph of a step of training, taken without computing: for `xmem estimate`."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import logging
import sys
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from ._copies import copied, like, set_device, tensors
from ._step import OptimizerFacts, Step, facts_of

if TYPE_CHECKING:
    import torch

__all__ = ["write"]


def write(step: Step, path: Path) -> None:
    """Write the graph as an archive of torch.export, without weights, with the loop around it.

    Raises what torch.export raises about models that it does not support, and `ValueError` for an optimizer that is
    not of `torch.optim`.
    """
    import torch
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(tensor: "torch.Tensor") -> "torch.Tensor":
        with mode:
            made = like(tensor.detach(), "cpu")
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(made, tensor.requires_grad)
        return made

    model, batch, forward = copied((step.model, step.batch, step.forward), fake)
    _set_mode(model, step)
    set_device(model, "cpu")
    facts = None if step.optimizer is None else facts_of(step.optimizer, step.model, model)
    if facts is not None and not facts.is_of_torch:
        raise ValueError(f"{facts.kind.__module__}.{facts.kind.__qualname__} is not an optimizer of torch.optim")
    values = tensors(batch)

    class Iteration(torch.nn.Module):
        """What the loop computes from the batch to the loss."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            """Compute the loss of the batch with these tensors."""
            own = copy.deepcopy(batch, {id(value): one for value, one in zip(values, given)})
            result = forward(model, own)
            return tuple(tensors(result)) if step.inference else result

    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        checkpoints = stack.enter_context(_without_checkpoints(model))
        stack.enter_context(_without_own_derivatives())
        stack.enter_context(torch.set_grad_enabled(not step.inference))
        exported = _export(Iteration(), tuple(values))
    _drop_weights(exported)
    with _quiet():
        torch.export.save(exported, path)
    _add_entries(exported, path, _loop(step, facts, checkpoints, model))


def _set_mode(model: "torch.nn.Module", step: Step) -> None:
    """Put a copy in the mode of the step. A model in training keeps those parts that are not, such as frozen norms."""
    if step.inference:
        model.eval()
    elif not model.training:
        model.train()


def _export(module: "torch.nn.Module", values: Tuple[Any, ...]) -> Any:
    """Export with the operators of training: by a function of its own before 2.7 (torch/export/__init__.py)."""
    import torch

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    export: Any = torch.export.export if version >= (2, 7) else getattr(torch.export, "export_for_training")
    return export(module, values, strict=False)


def _drop_weights(exported: Any) -> None:
    """Let each tensor of the program be one number, seen with all of its sizes: nobody reads weights."""
    import torch

    tables = (exported.state_dict, exported.constants)
    # They stay until the end, so that each has an identity of its own.
    originals = {id(value): value for table in tables for value in table.values() if isinstance(value, torch.Tensor)}
    # PyTorch 2.15 cannot write an empty one that is spread.
    shared = {
        key: torch.zeros(() if value.numel() else value.shape, dtype=value.dtype).expand(value.shape)
        for key, value in originals.items()
    }
    for table in tables:
        for name, value in list(table.items()):
            if isinstance(value, torch.Tensor):
                small = shared[id(value)]
                is_parameter = isinstance(value, torch.nn.Parameter)
                table[name] = torch.nn.Parameter(small, value.requires_grad) if is_parameter else small
    exported._example_inputs = None


def _add_entries(exported: Any, path: Path, loop: Dict[str, Any]) -> None:
    """Add the description of the loop, and which names share a weight where the release does not write it."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        names = archive.namelist()
        folder = names[0].partition("/")[0] if "/" in names[0] else "model"
        archive.writestr(f"{folder}/extra/xmem.job.json", json.dumps(loop))
        if not any(name.endswith("model_weights_config.json") for name in names):
            files: Dict[int, str] = {}
            table = {
                name: {"path_name": files.setdefault(value.untyped_storage()._cdata, f"weight_{len(files)}")}
                for name, value in exported.state_dict.items()
            }
            archive.writestr(f"{folder}/data/weights/model_weights_config.json", json.dumps({"config": table}))


def _loop(step: Step, facts: "OptimizerFacts | None", checkpoints: List[str], model: Any) -> Dict[str, Any]:
    """Return the description of the loop as `xmem export` writes it (docs/guide/export.md)."""
    import torch

    autocast = None
    if step.autocast is not None:
        autocast = {"dtype": str(step.autocast).partition(".")[2], "cache": True, "scope": "all"}
    loop: Dict[str, Any] = {
        "schema": "xmem.graph-job/1",
        "torch": str(torch.__version__),
        "autocast": autocast,
        # Ends of paths: with a part that has two places, PyTorch leaves out the first name.
        "checkpointing": [{"module": name or "model"} for name in checkpoints],
        "autograd_functions": [],
    }
    if facts is None:
        return loop
    clear, forward, backward = {"event": "zero-grad"}, {"event": "forward"}, {"event": "backward", "loss": 0}
    first = [forward, clear, backward] if step.late_zero_grad else [clear, forward, backward]
    passes = first + [forward, backward] * (step.accumulation - 1)
    clip = [{"event": "clip-grad"}] if step.clip_grad else []
    return {
        **loop,
        "optimizer": [
            {
                "class": facts.kind.__name__,
                "module": facts.kind.__module__,
                "defaults": _flags(facts),
                "groups": [{"parameters": [f"model.{name}" for name in names]} for names, _ in facts.groups],
            }
        ],
        "zero_grad": {"place": "before-backward" if step.late_zero_grad else "before-forward", "set_to_none": True},
        "losses": [{"outputs": 1}],
        "order": [*passes, *clip, {"event": "step", "optimizer": 0}],
        "frozen": sorted(f"model.{name}" for name, value in model.named_parameters() if not value.requires_grad),
        "keeps": {"loss": True, "outputs": False, "outputs_at_backward": False},
    }


# Options that decide about memory.
_NUMBERS = ("momentum", "weight_decay")


def _flags(facts: OptimizerFacts) -> Dict[str, Any]:
    """Return the options that decide about memory: those of the groups, of which one that is on is enough."""
    flags: Dict[str, Any] = {}
    for options in (facts.defaults, *(own for _, own in facts.groups)):
        for key, value in options.items():
            if (value is None or isinstance(value, bool) or key in _NUMBERS) and not flags.get(key):
                flags[key] = bool(value) if key == "weight_decay" else value
    return flags


@contextlib.contextmanager
def _without_checkpoints(model: "torch.nn.Module") -> Iterator[List[str]]:
    """Let checkpoints call their functions, and give the paths of the modules that they call."""
    import torch.utils.checkpoint as checkpointing

    original = checkpointing.checkpoint
    # While torch.export traces, parts are seen through objects that share their attributes.
    paths = {id(vars(module)): name for name, module in model.named_modules()}
    found: List[str] = []

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        for option in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"):
            kwargs.pop(option, None)
        path = _path_of(function, paths)
        if path is None:
            raise NotImplementedError("a checkpoint around a function, not a module")
        found.append(path)
        return function(*args, **kwargs)

    changed = []
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("checkpoint") is original:
            changed.append(module)
            setattr(module, "checkpoint", call)
    for part in model.modules():
        bound = vars(part).get("_gradient_checkpointing_func")
        if isinstance(bound, functools.partial) and bound.func is original:
            setattr(part, "_gradient_checkpointing_func", functools.partial(call, *bound.args, **bound.keywords))
    try:
        yield found
    finally:
        for module in changed:
            setattr(module, "checkpoint", original)


@contextlib.contextmanager
def _without_own_derivatives() -> Iterator[None]:
    """Raise where a `torch.autograd.Function` is called: what it keeps is not in a graph."""
    import torch

    kind: Any = torch.autograd.Function
    original = kind.__dict__["apply"]

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        if cls.__module__.startswith("torch."):
            return original.__func__(cls, *args, **kwargs)
        raise NotImplementedError(f"{cls.__name__}, a torch.autograd.Function")

    kind.apply = classmethod(apply)
    try:
        yield
    finally:
        kind.apply = original


def _path_of(function: Any, paths: Dict[int, str]) -> "str | None":
    """Return the path of the module that a function calls: itself, or what it is bound to."""
    bound = [function, getattr(function, "__self__", None)]
    while isinstance(function, functools.partial):
        bound += [*function.args, function.func, getattr(function.func, "__self__", None)]
        function = function.func
    cells = getattr(function, "__closure__", None) or ()
    bound += [cell.cell_contents for cell in cells if not isinstance(cell.cell_contents, (int, str))]
    owners = (id(vars(owner)) for owner in bound if hasattr(owner, "__dict__"))
    return next((paths[owner] for owner in owners if owner in paths), None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what torch.export logs and warns about."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
