"""A step of training in hand: a model with a batch, what computes the loss, and the optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Union

if TYPE_CHECKING:
    import torch

__all__ = ["Forward", "OptimizerFacts", "Optimizers", "Step", "StepError", "facts_of", "loss_in"]

Optimizers = Union["torch.optim.Optimizer", Callable[..., "torch.optim.Optimizer"]]
"""An optimizer, or what makes one from the parameters: a class of torch.optim, a partial, a function."""


class StepError(TypeError):
    """What was given is no step of training: no loss, no optimizer."""


def loss_in(result: Any) -> Any:
    """Return the loss in a result, as models of transformers and torchvision give it. Raises `StepError` without one."""
    found = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
    if found is None and isinstance(result, Mapping) and result and all(map(_is_scalar, result.values())):
        found = sum(result.values())
    if found is None and isinstance(result, tuple) and result:
        found = result[0]
    found = result if found is None else found
    if not _is_scalar(found):
        raise StepError(
            "the result of the model is no loss: give `loss`, a function of the result and the target, and `batch` as "
            "the pair (inputs, target)"
        )
    return found


class Forward:
    """From a model and a batch to the loss, or in inference to the result."""

    def __init__(self, loss: Optional[Callable[..., Any]], inference: bool) -> None:
        self._loss = loss
        self._inference = inference

    def __call__(self, model: Any, batch: Any) -> Any:
        """Call the model, and the loss function if there is one. Raises `StepError` if there is no loss then."""
        if self._inference:
            return _call(model, batch)
        if self._loss is None:
            return loss_in(_call(model, batch))
        if not isinstance(batch, Sequence) or len(batch) != 2:
            raise StepError("with `loss`, `batch` is a pair: the inputs of the model, and the target of the loss")
        return self._loss(_call(model, batch[0]), batch[1])


def _call(model: Any, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, (tuple, list)):
        return model(*inputs)
    return model(inputs)


def _is_scalar(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.numel() == 1


@dataclass
class OptimizerFacts:
    """An optimizer without its state: what another process needs to make it, and what a graph's file says of it."""

    kind: type
    """The class."""

    defaults: Dict[str, Any]
    """Its options."""

    groups: List[Tuple[List[str], Dict[str, Any]]]
    """Names of parameters with the options of their group."""

    @property
    def is_of_torch(self) -> bool:
        """Whether the class is one of `torch.optim`, whose memory `xmem estimate` knows by its name."""
        return self.kind.__module__.startswith("torch.optim.")


@dataclass
class Step:
    """What is asked about."""

    model: "torch.nn.Module"
    """The model."""

    batch: Any
    """What `forward` takes beside it."""

    forward: Callable[[Any, Any], Any]
    """From model and batch to the loss."""

    optimizer: Optional[Optimizers] = None
    """The optimizer; `None` in inference."""

    autocast: "Optional[torch.dtype]" = None
    """The type of autocast."""

    accumulation: int = 1
    """Forward and backward passes before each step of the optimizer."""

    clip_grad: bool = False
    """Whether the loop clips gradients by their norm."""

    late_zero_grad: bool = False
    """Whether gradients are cleared between forward and backward, so that those of a step live into the next one."""

    @property
    def inference(self) -> bool:
        """Whether nothing is trained."""
        return self.optimizer is None


def facts_of(optimizer: Optimizers, model: "torch.nn.Module", copy: "torch.nn.Module") -> OptimizerFacts:
    """Return the facts of an optimizer of the model's parameters; what makes one is given those of the copy.

    Raises `StepError` if what was given makes no optimizer, or if it is one of another model.
    """
    import torch

    made = optimizer if isinstance(optimizer, torch.optim.Optimizer) else optimizer(copy.parameters())
    if not isinstance(made, torch.optim.Optimizer):
        raise StepError(f"`optimizer` is neither an optimizer nor makes one: {made!r}")
    owner = model if made is optimizer else copy
    names = {id(parameter): name for name, parameter in owner.named_parameters()}
    groups = []
    for group in made.param_groups:
        own = [names[id(parameter)] for parameter in group["params"] if id(parameter) in names]
        if len(own) < len(group["params"]):
            raise StepError("the optimizer has parameters that are not of this model")
        groups.append((own, {key: value for key, value in group.items() if key not in ("params", "param_names")}))
    return OptimizerFacts(type(made), dict(made.defaults), groups)
