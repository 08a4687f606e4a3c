"""Models and their tensors."""

from ..cpu import places
from . import storages


def describe(model):
    """The class of a model, and those of its modules."""
    modules = {name: type(module).__name__ for name, module in model.named_modules()}
    return {"class": storages.class_name(model), "training": model.training, "modules": modules}


def tensors(models, optimizers):
    """Parameters and buffers of the models, then parameters that only an optimizer has."""
    found, seen = [], set()
    for index, model in enumerate(models):
        for kind, named in (
            ("parameter", model.named_parameters()),
            ("buffer", model.named_buffers()),
        ):
            for name, tensor in named:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    found.append(_tensor(tensor, name, index, kind))
    for index, optimizer in enumerate(optimizers):
        for group in optimizer.param_groups:
            for position, tensor in enumerate(group["params"]):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    name = f"optimizer {index}, parameter {position}"
                    found.append(_tensor(tensor, name, None, "parameter"))
    return found


def _tensor(tensor, name, model, kind):
    gradient = tensor.grad if tensor.is_leaf else None
    return {
        "name": name,
        "model": model,
        "kind": kind,
        "shape": list(places.local(tensor).shape),
        "dtype": storages.dtype_name(tensor.dtype),
        "requires_grad": tensor.requires_grad,
        "storage": storages.storage(tensor),
        "gradient": None if gradient is None else storages.storage(gradient),
    }
