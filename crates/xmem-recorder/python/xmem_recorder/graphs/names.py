"""The names of models, parameters and inputs: those that the script gives them where it gives any."""

import inspect
import keyword
import sys

# Wrappers of a model, and the attribute in which they keep it.
WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "OptimizedModule": "_orig_mod",
}


def unwrapped(module):
    """The model in its wrappers."""
    while type(module).__name__ in WRAPPERS and hasattr(module, WRAPPERS[type(module).__name__]):
        module = getattr(module, WRAPPERS[type(module).__name__])
    return module


def of_arguments(module):
    """The names of the positional arguments of a module."""
    try:
        parameters = inspect.signature(unwrapped(module).forward).parameters.values()
    except (TypeError, ValueError):
        return ()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


class Called:
    """The modules that the script called, and the models that they are part of."""

    def __init__(self, torch):
        self.torch = torch
        # The id of a called module: the module, its model, the name of the model.
        self.models = {}

    def add(self, module):
        """Adds a module that is called by the frame of the script."""
        if id(module) not in self.models:
            model, name = _model_of(self.torch, unwrapped(module))
            self.models[id(module)] = (module, model, name)

    def roots(self):
        """The models by their names in the exported program, none inside another."""
        found = []
        for _, model, name in self.models.values():
            if not any(model is other for other, _ in found):
                found.append((model, name))
        found = [(m, n) for m, n in found if not any(o is not m and _holds(o, m) for o, _ in found)]
        result = {}
        for model, name in found:
            if name is None or len(found) == 1 and name in ("self", "net", "module"):
                name = "model" if len(found) == 1 else type(model).__name__.lower()
            result[unique(identifier(name), result)] = model
        return result


def _holds(model, module):
    return any(part is module for part in model.modules())


def _model_of(torch, module):
    """The model that a called module is part of, as far as the frames of the script show it, and its name there."""
    best, best_name, best_size = module, None, -1
    frame, depth = sys._getframe(1), 0
    while frame is not None and depth < 12:
        file = frame.f_code.co_filename
        is_ours = "xmem_recorder" in file or "/torch/nn/modules/" in file
        if not is_ours:
            depth += 1
            for name, value in _variables(torch, frame):
                size = sum(1 for _ in value.modules())
                is_same = value is module
                if (is_same and best_name is None and best is module) or (
                    size > best_size and not is_same and _holds(value, module)
                ):
                    if is_same:
                        best_name = name
                    else:
                        best, best_name, best_size = value, name, size
        frame = frame.f_back
    return best, best_name


def _variables(torch, frame):
    """The modules that a frame names: by its own variables, then by those of its file, then by attributes of `self`."""
    seen = [frame.f_locals]
    if frame.f_code.co_name == "<module>" or True:
        seen.append(frame.f_globals)
    owner = frame.f_locals.get("self")
    if owner is not None and not isinstance(owner, torch.nn.Module) and hasattr(owner, "__dict__"):
        seen.append(vars(owner))
    for variables in seen:
        for name, value in list(variables.items()):
            if isinstance(value, torch.nn.Module) and not name.startswith("_"):
                yield name, unwrapped(value)


def identifier(text):
    """A name that Python allows."""
    text = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in str(text))
    if not text or text[0].isdigit() or keyword.iskeyword(text) or text in ("self", "training", "forward"):
        text = f"the_{text}"
    return text


def unique(name, taken):
    """The name, with a number if it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
