"""The description of a job beside its graph: what the loop does that the graph does not say."""

import gc

from .exporting import batch_of, dynamic_symbols, per_sample
from .program import wanted_dtype

SCHEMA = "xmem.graph-job/1"


def describe(watch, program, inputs, result, accumulation, losses):
    """The description, as JSON has it."""
    torch, state = watch.torch, watch.course
    named = {}
    for name, value in program.named_parameters(remove_duplicate=False):
        named.setdefault(id(value), []).append(name)
    by_id = {key: names[0] for key, names in named.items()}
    leaves = {name: watch.tape.leaves[number] for name, number in inputs.by_name.items()}
    dynamic = dynamic_symbols(torch, result, inputs, leaves)
    return {
        "schema": SCHEMA,
        "torch": str(torch.__version__),
        "optimizer": [_optimizer(optimizer, by_id) for optimizer in state.living_optimizers()],
        "zero_grad": state.zero_grad(),
        "autocast": _autocast(watch),
        "grad_scaler": state.uses_scaler,
        "clip_grad": state.clipping,
        "accumulation": accumulation,
        "losses": losses,
        "order": _order(watch),
        "checkpointing": _checkpoints(watch, program),
        "frozen": sorted(name for name, value in program.named_parameters() if not value.requires_grad),
        "tied": [names for names in named.values() if len(names) > 1],
        "inputs": _inputs(leaves, dynamic),
        "dynamic": dynamic,
        "static_because": result.reason,
        "by_values": result.by_values,
        "keeps": watch.kept,
        "beside": _beside(watch, program),
        "autograd_functions": sorted(state.functions),
    }


def _optimizer(optimizer, by_id):
    defaults = _options(optimizer, optimizer.defaults)
    groups = []
    for group in optimizer.param_groups:
        known = [by_id.get(id(parameter)) for parameter in group["params"]]
        own = {key: value for key, value in _options(optimizer, group).items() if defaults.get(key) != value}
        groups.append(
            {
                "parameters": [name for name in known if name is not None],
                "others": [
                    {"dims": list(p.shape), "dtype": dtype(p.dtype)}
                    for p, name in zip(group["params"], known)
                    if name is None
                ],
                **({"options": own} if own else {}),
            }
        )
    kind = type(optimizer)
    return {
        "class": kind.__name__,
        "module": kind.__module__,
        "defaults": defaults,
        "groups": groups,
    }


# Numbers that decide whether an optimizer keeps something.
NUMBERS = ("momentum", "beta1", "history_size")


def _options(optimizer, options):
    found = {}
    for key, value in options.items():
        if key in ("params", "lr"):
            continue
        if key == "weight_decay":
            found[key] = bool(value)
        elif value is None or isinstance(value, bool) or key in NUMBERS:
            found[key] = value
    return found


def _autocast(watch):
    entries = [entry for entry in watch.tape.entries if entry.with_gradients]
    models = [entry.autocast for entry in entries if entry.module is not None]
    others = [entry.autocast for entry in entries if entry.module is None]
    used = [state for state in models + others if state is not None]
    if not used:
        return None
    where = "all" if all(state is not None for state in models + others) else "model"
    return {
        "dtype": dtype(wanted_dtype(watch.torch, used[0][0])),
        "cache": bool(used[0][1]),
        "scope": where,
    }


def _order(watch):
    numbers = {id(optimizer): index for index, optimizer in enumerate(watch.course.living_optimizers())}
    order = []
    for kind, details in watch.course.of_one_iteration():
        event = {"event": kind}
        if "of" in details:
            cleared = _cleared(watch, details["of"]())
            if len(cleared) < len(numbers):
                order.extend({**event, "optimizer": number} for number in cleared)
                continue
        if "index" in details:
            event["loss"] = details["index"]
        if "optimizer" in details:
            event["optimizer"] = numbers.get(id(details["optimizer"]))
            if details["closure"]:
                event["closure"] = True
        order.append(event)
    return order


def _cleared(watch, owner):
    """The numbers of the optimizers whose gradients a `zero_grad` of an optimizer or a module clears."""
    optimizers = watch.course.living_optimizers()
    if not isinstance(owner, watch.torch.nn.Module):
        return [number for number, optimizer in enumerate(optimizers) if optimizer is owner]
    cleared = {id(parameter) for parameter in owner.parameters()}
    return [
        number
        for number, optimizer in enumerate(optimizers)
        if any(id(parameter) in cleared for group in optimizer.param_groups for parameter in group["params"])
    ]


def _beside(watch, program):
    """Parameters and buffers of modules that are not part of the program, such as a moving average of its weights."""
    known = {id(value) for value in (*program.parameters(), *program.buffers())}
    found = []
    for module in gc.get_objects():
        # Some objects warn when their `__class__` is looked at.
        if not issubclass(type(module), watch.torch.nn.Module):
            continue
        for value in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            if id(value) not in known and value.device.type != "meta":
                known.add(id(value))
                found.append({"dims": list(value.shape), "dtype": dtype(value.dtype)})
    return found


def _checkpoints(watch, program):
    paths = {id(module): name for name, module in program.named_modules()}
    found = []
    for checkpoint in watch.course.checkpoints:
        module = _module_in(watch.torch, checkpoint["function"])
        found.append(
            {
                "module": paths.get(id(module)),
                "use_reentrant": bool(checkpoint["use_reentrant"]),
                "preserve_rng_state": bool(checkpoint["preserve_rng_state"]),
                "selective": checkpoint["selective"],
            }
        )
    return found


def _module_in(torch, function, depth=0):
    """The module that a function calls, as far as it shows: itself, its partial, its bound object, its closure."""
    if isinstance(function, torch.nn.Module):
        return function
    if depth > 4 or function is None:
        return None
    candidates = [getattr(function, "func", None), getattr(function, "__self__", None)]
    candidates.extend(getattr(function, "args", None) or ())
    for cell in getattr(function, "__closure__", None) or ():
        try:
            candidates.append(cell.cell_contents)
        except ValueError:
            pass
    for candidate in candidates:
        if isinstance(candidate, torch.nn.Module) or callable(candidate):
            module = _module_in(torch, candidate, depth + 1)
            if module is not None:
                return module
    return None


def _inputs(leaves, dynamic):
    batch = batch_of(leaves)
    found = []
    for name, leaf in leaves.items():
        times = per_sample(leaf, batch)
        is_batch = times is not None
        found.append(
            {
                "name": name,
                "role": "batch" if is_batch else "constant",
                "dims": list(leaf.dims),
                "dtype": dtype(leaf.dtype),
                "batch_dim": 0 if is_batch else None,
                "per_sample": times,
                "dynamic": _free_dims(leaf, dynamic) if is_batch else [],
            }
        )
    return found


def _free_dims(leaf, dynamic):
    """The dimensions of an input of the batch that are symbols in the graph."""
    found = [0] if "batch" in dynamic else []
    if len(leaf.dims) == 2 and "length" in dynamic and dynamic["length"]["size"] == leaf.dims[1]:
        found.append(1)
    return found


def dtype(value):
    """The name of a dtype."""
    return str(value).removeprefix("torch.")
