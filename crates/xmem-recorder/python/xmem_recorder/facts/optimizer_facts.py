"""Optimizers and the memory of their state."""

from ..cpu import optimizer_options
from . import storages
from .plain import plain


def describe(torch, optimizer, steps):
    """The arguments of an optimizer, and the memory of its state; `steps` is the number of those that it has made."""
    defaults = {**optimizer.defaults, **optimizer_options.requested(optimizer)}
    arguments = {key: plain(value) for key, value in defaults.items()}
    groups = []
    for group in optimizer.param_groups:
        own = {
            key: plain(value)
            for key, value in group.items()
            if key != "params" and (key not in arguments or plain(value) != arguments[key])
        }
        if "lr" in own and "lr" in arguments:
            # A schedule changes it with every step.
            del own["lr"]
        groups.append(
            {
                "tensors": len(group["params"]),
                "bytes": sum(storages.bytes_of(parameter) for parameter in group["params"]),
                "arguments": own,
            }
        )
    by_name, in_memory = _state(optimizer, torch)
    return {
        "class": storages.class_name(optimizer),
        "arguments": arguments,
        "implementation": _implementation(defaults),
        "groups": groups,
        "steps": steps,
        "state": by_name,
        "state_storages": in_memory,
    }


def _implementation(arguments):
    """The requested implementation; "default" leaves the choice to PyTorch
    (torch/optim/optimizer.py, `_default_to_fused_or_foreach`)."""
    if arguments.get("fused"):
        return "fused"
    if arguments.get("foreach"):
        return "foreach"
    if arguments.get("foreach") is False:
        return "for-loop"
    return "default"


def _state(optimizer, torch):
    """The tensors of the state: their number and bytes by name, and the memory of each."""
    sums, found = {}, []
    for of_parameter in optimizer.state.values():
        if not isinstance(of_parameter, dict):
            continue
        for name, value in of_parameter.items():
            if not isinstance(value, torch.Tensor):
                continue
            storage = storages.storage(value)
            if storage is None:
                continue
            entry = sums.setdefault(str(name), {"name": str(name), "tensors": 0, "bytes": 0})
            entry["tensors"] += 1
            entry["bytes"] += storages.bytes_of(value)
            found.append({"name": str(name), "address": storage["address"], "bytes": storage["bytes"]})
    return list(sums.values()), found
