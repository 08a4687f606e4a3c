"""The script that trains a model without data for three steps, which `xmem.fits` records in a separate process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Dict

from ._copies import copied, like, set_device
from ._step import OptimizerFacts, Step, facts_of

if TYPE_CHECKING:
    import torch

__all__ = ["describe", "train"]

STEPS = 3
"""Steps that are recorded: the second one has the optimizer's state from its beginning."""

# Integers up to this size are sent with their values, since models look at them.
_MOST_VALUES = 1 << 22


def describe(step: Step) -> Dict[str, Any]:
    """Return a step as `train` takes it: models and batches without data, but for integers, which decide about sizes.

    Raises what objects raise that cannot be copied.
    """

    def empty(tensor: "torch.Tensor") -> "torch.Tensor":
        if not tensor.dtype.is_floating_point and not tensor.is_meta and tensor.numel() <= _MOST_VALUES:
            return tensor.detach().cpu().clone()
        return like(tensor.detach() if not tensor.is_leaf else tensor, "meta")

    model, batch, forward = copied((step.model, step.batch, step.forward), empty)
    facts = None if step.optimizer is None else facts_of(step.optimizer, step.model, model)
    return {
        "model": model,
        "batch": batch,
        "forward": forward,
        "optimizer": facts,
        "autocast": step.autocast,
        "accumulation": step.accumulation,
        "clip_grad": step.clip_grad,
        "late_zero_grad": step.late_zero_grad,
    }


def train(told: Dict[str, Any]) -> None:
    """Train as `describe` said."""
    import torch

    def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
        made: Any = tensor.cuda() if not tensor.is_meta else torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda"
        )
        if tensor.is_meta and tensor.dtype.is_floating_point:
            # Numbers of any size are slow on a CPU, and no gradients where they overflow.
            torch.nn.init.normal_(made, 0, 0.02)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, tensor.requires_grad)
        return made  # type: ignore[no-any-return]

    model, forward = copied((told["model"], told["forward"]), on_gpu)
    set_device(model, "cuda")
    facts: "OptimizerFacts | None" = told["optimizer"]
    optimizer = None
    if facts is None:
        model.eval()
    else:
        if not model.training:
            model.train()
        optimizer = _optimizer(facts, model)
    dtype = told["autocast"]
    scaler = torch.amp.GradScaler("cuda") if dtype is torch.float16 and optimizer is not None else None
    for _ in range(STEPS):
        if optimizer is not None and not told["late_zero_grad"]:
            optimizer.zero_grad()
        for number in range(told["accumulation"]):
            batch = copied(told["batch"], on_gpu)
            casts: Any = contextlib.nullcontext() if dtype is None else torch.autocast("cuda", dtype)
            with casts, torch.set_grad_enabled(optimizer is not None):
                result = forward(model, batch)
            if optimizer is not None:
                if told["late_zero_grad"] and number == 0:
                    optimizer.zero_grad()
                (result if scaler is None else scaler.scale(result)).backward()
        if optimizer is None:
            continue
        if told["clip_grad"]:
            if scaler is not None:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()


def _optimizer(facts: OptimizerFacts, model: "torch.nn.Module") -> "torch.optim.Optimizer":
    import inspect

    parameters = dict(model.named_parameters())
    known = inspect.signature(facts.kind).parameters
    groups = [{"params": [parameters[name] for name in names], **options} for names, options in facts.groups]
    made: Any = facts.kind(groups, **{key: value for key, value in facts.defaults.items() if key in known})
    return made  # type: ignore[no-any-return]
