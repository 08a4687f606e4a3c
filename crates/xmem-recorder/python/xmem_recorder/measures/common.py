"""What several measures share: wrapping functions, outermost forward passes, constructors and steps of optimizers."""

import copy
import dataclasses
import functools
import inspect
import sys
import threading
import weakref


def wrap(owner, name, wrapper_of):
    """Replaces `owner.name` by `wrapper_of(original)`, which gets the name and documentation of the original."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrapper_of(original)))


class Tally:
    """Reports on how many things of which names a measure was applied to, such as "2 Adam, 1 SGD"."""

    def __init__(self, report):
        self.report = report
        self.counts = {}

    def add(self, name, count=1):
        """Counts and reports."""
        self.counts[name] = self.counts.get(name, 0) + count
        text = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        self.report(sum(self.counts.values()), text)


class OutermostForwards:
    """Calls of modules with parameters that are not made by the forward of another such module.

    `torch.nn.Module.__call__` is replaced as long as there are watchers.
    """

    def __init__(self):
        self.watchers = []
        self.thread = threading.local()
        self.original = None
        self.replacement = None

    def add(self, torch, watcher):
        """Adds a watcher behind the others."""
        if not self.watchers:
            self._replace(torch)
        self.watchers.append(watcher)

    def remove(self, torch, watcher):
        """Removes a watcher, which may happen while it runs."""
        # A new list, as `_run` may be using the old one.
        self.watchers = [other for other in self.watchers if other is not watcher]
        if not self.watchers and torch.nn.Module.__call__ is self.replacement:
            torch.nn.Module.__call__ = self.original

    def _replace(self, torch):
        self.original = original = torch.nn.Module.__call__
        thread = self.thread
        is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)

        def call(self, *args, **kwargs):
            # While torch.compile traces, nothing but a constant condition may come before the original.
            if is_compiling():
                return original(self, *args, **kwargs)
            if getattr(thread, "is_inside", False) or is_in_backward(torch) or next(self.parameters(), None) is None:
                return original(self, *args, **kwargs)
            thread.is_inside = True
            try:
                return _forwards.run(_forwards.watchers, self, args, kwargs)
            finally:
                thread.is_inside = False

        self.replacement = torch.nn.Module.__call__ = functools.wraps(original)(call)

    def run(self, watchers, module, args, kwargs):
        """Calls a module inside the watchers, of which the first is the outermost."""
        if not watchers:
            return self.original(module, *args, **kwargs)

        def forward(*args, **kwargs):
            return self.run(watchers[1:], module, args, kwargs)

        return watchers[0](module, forward, args, kwargs)


_forwards = OutermostForwards()


def watch_forwards(torch, watcher):
    """Lets `watcher(module, forward, args, kwargs)` make each outermost call of a module that has parameters, as
    `forward(*args, **kwargs)`; returns a function that ends this."""
    _forwards.add(torch, watcher)
    return lambda: _forwards.remove(torch, watcher)


def is_in_backward(torch):
    """Returns whether the backward pass runs in this thread: activations are computed again, for instance."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def is_training(torch, module):
    """Returns whether a call of a module now is the forward pass of a training step."""
    return module.training and torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters())


def name_of(module):
    """The name of the class of a module, inside wrappers such as DistributedDataParallel."""
    wrappers = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule")
    while type(module).__name__ in wrappers:
        inner = next(module.children(), None)
        if inner is None:
            break
        module = inner
    return type(module).__name__


def device_type_of(module):
    """The type of the device of a module's parameters, such as "cuda"."""
    return next(module.parameters()).device.type


def map_tensors(torch, function, value):
    """The value with `function(tensor)` in place of its tensors; itself if that changes none of them."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        items = {key: map_tensors(torch, function, item) for key, item in value.items()}
        if all(items[key] is item for key, item in value.items()):
            return value
        return type(value)(items)
    if isinstance(value, (list, tuple)):
        items = [map_tensors(torch, function, item) for item in value]
        if all(new is old for new, old in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _map_dataclass(torch, function, value)
    return value


def _map_dataclass(torch, function, value):
    changed = value
    for field in dataclasses.fields(value):
        old = getattr(value, field.name, None)
        new = map_tensors(torch, function, old)
        if new is not old:
            changed = copy.copy(value) if changed is value else changed
            object.__setattr__(changed, field.name, new)
    return changed


def to_float32(torch, value):
    """The value with tensors of float32 in place of those of 16 bits, as accelerate's `convert_to_fp32`."""
    halves = (torch.bfloat16, torch.float16)
    return map_tensors(torch, lambda tensor: tensor.float() if tensor.dtype in halves else tensor, value)


def first_line(error):
    """The first line of an error's text, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:160]


def is_out_of_memory(torch, error):
    """Returns whether a device has too little memory."""
    return isinstance(error, torch.cuda.OutOfMemoryError)


def try_forward(torch, module, changed, unchanged):
    """The result of `changed()`, and None; or if that fails, that of `unchanged(error)` from the same state of the
    generators of random numbers, and the error."""
    states = _rng_states(torch, module)
    try:
        return changed(), None
    except (RuntimeError, TypeError, ValueError) as raised:
        if is_out_of_memory(torch, raised):
            raise
        error = raised
    for restore, state in states:
        restore(state)
    return unchanged(error), error


def _rng_states(torch, module):
    states = [(torch.set_rng_state, torch.get_rng_state())]
    device = next(module.parameters()).device
    if device.type == "cuda":
        states.append((lambda state: torch.cuda.set_rng_state(state, device), torch.cuda.get_rng_state(device)))
    return states


def wrap_constructors(classes, construct_by):
    """Lets `construct_by(optimizer, arguments, construct)` make the optimizers of classes and of their subclasses.

    `arguments` are those of the call, by name; `construct(**changes)` runs the constructor with some of them replaced.
    AdamW calls the constructor of Adam: the inner one is left alone.
    """
    constructing = set()

    def wrapper_of(original):
        signature = inspect.signature(original)

        def init(self, *args, **kwargs):
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError:
                return original(self, *args, **kwargs)
            if id(self) in constructing:
                return original(self, *args, **kwargs)
            if "params" in bound.arguments:
                bound.arguments["params"] = _reusable_params(bound.arguments["params"])

            def construct(**changes):
                bound.arguments.update(changes)
                return original(*bound.args, **bound.kwargs)

            constructing.add(id(self))
            try:
                return construct_by(self, bound.arguments, construct)
            finally:
                constructing.discard(id(self))

        return init

    for kind in classes:
        if "__init__" in vars(kind):
            wrap(kind, "__init__", wrapper_of)


def _reusable_params(params):
    """The parameters for an optimizer with lists in place of generators, which can be used only once."""
    params = list(params) if hasattr(params, "__next__") else params
    if not isinstance(params, (list, tuple)):
        return params
    groups = {id(group) for group in params if isinstance(group, dict) and hasattr(group.get("params"), "__next__")}
    if not groups:
        return params
    return [{**group, "params": list(group["params"])} if id(group) in groups else group for group in params]


def params_argument(torch, arguments):
    """The tensors among the parameters given to the constructor of an optimizer."""
    tensors = []
    for item in arguments.get("params", ()):
        items = item.get("params", ()) if isinstance(item, dict) else item
        items = [items] if isinstance(items, torch.Tensor) else items
        tensors += [tensor for tensor in items if isinstance(tensor, torch.Tensor)]
    return tensors


def replace_adam(torch, construct_other, report):
    """Lets `construct_other(optimizer, kind, arguments)` make those that the script makes as Adam or AdamW (`kind`), as
    objects of another class, which it returns the name of; it raises an exception where it cannot.

    The names of the classes stay what they are, so that it does not matter how a script imports them, and subclasses
    work as before.
    """
    kinds = (torch.optim.Adam, torch.optim.AdamW)
    tally = Tally(report)

    def construct_by(optimizer, arguments, construct):
        kind = type(optimizer)
        if kind not in kinds:
            return construct()
        try:
            name = construct_other(optimizer, kind, arguments)
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            optimizer.__class__ = kind
            report(0, first_line(error))
            return construct()
        # Some schedulers change the momentum, which Adam has as the first of `betas`.
        betas = arguments.get("betas", (0.9, 0.999))
        for options in (optimizer.defaults, *optimizer.param_groups):
            options.setdefault("betas", betas)
        tally.add(name)

    wrap_constructors(kinds, construct_by)


def default_of(kind, name):
    """The default of an argument of a constructor."""
    return inspect.signature(kind.__init__).parameters[name].default


def optimizer_classes(torch):
    """The optimizers of torch."""
    kinds = [getattr(torch.optim, name) for name in dir(torch.optim)]
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)]
    return [kind for kind in kinds if kind is not torch.optim.Optimizer]


def has_option(kind, name):
    """Returns whether the constructor of an optimizer has an option, which it may lack in older releases."""
    return name in inspect.signature(kind.__init__).parameters


def parameters_of(optimizer):
    """The parameters of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class StepWatchers:
    """Functions that are called after each step of each optimizer."""

    def __init__(self):
        self.functions = []
        self.is_installed = False

    def add(self, torch, function):
        """Adds a function; returns one that removes it."""
        if not self.is_installed:
            self.is_installed = True
            self._install(torch)
        self.functions.append(function)
        return lambda: self._remove(function)

    def _remove(self, function):
        # The hook stays: torch iterates over its hooks while they run.
        self.functions = [other for other in self.functions if other is not function]

    def _install(self, torch):
        # `torch.optim` deletes the names of its modules.
        register = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", None)
        if register is not None:
            register(lambda optimizer, args, kwargs: self._stepped(optimizer))
        else:
            wrap_steps(torch, self._wrapper_of, outside=True)

    def _wrapper_of(self, step):
        def step_and_call(optimizer, *args, **kwargs):
            result = step(optimizer, *args, **kwargs)
            self._stepped(optimizer)
            return result

        return step_and_call

    def _stepped(self, optimizer):
        for function in self.functions:
            function(optimizer)


_step_watchers = StepWatchers()


def after_step(torch, function):
    """Calls `function(optimizer)` after each step of each optimizer; returns a function that ends this."""
    return _step_watchers.add(torch, function)


def wrap_steps(torch, wrapper_of, outside=False):
    """Wraps the step of every class of optimizers, inside or outside torch's hooks before and after a step.

    `profile_hook_step` (torch/optim/optimizer.py) adds the hooks when the first optimizer of a class is made.
    """
    hook = torch.optim.Optimizer.profile_hook_step

    def profile_hook_step(function):
        if not outside:
            return hook(functools.wraps(function)(wrapper_of(function)))
        hooked = hook(function)
        return functools.wraps(hooked)(wrapper_of(hooked))

    torch.optim.Optimizer.profile_hook_step = staticmethod(profile_hook_step)


def wrap_clipping(torch, name, wrapper_of):
    """Wraps `clip_grad_norm_` or `clip_grad_value_`, both where it is defined and where it is exported."""
    wrap(torch.nn.utils.clip_grad, name, wrapper_of)
    setattr(torch.nn.utils, name, getattr(torch.nn.utils.clip_grad, name))


def scaler_class(torch):
    """The class of gradient scalers, which was that of CUDA before PyTorch 2.3."""
    return getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


class OncePerModule:
    """Calls `apply(module)` once for each outermost module, before its first training forward, until a few steps of
    optimizers have been made (a job may train several modules in turns), and then `end()`."""

    STEPS = 3

    def __init__(self, torch, apply, end=None):
        self.torch = torch
        self.apply = apply
        self.end = end
        self.seen = weakref.WeakSet()
        self.steps = 0
        self.stop_watching = watch_forwards(torch, self._forward)
        self.stop_counting = after_step(torch, self._stepped)

    def _forward(self, module, forward, args, kwargs):
        if module not in self.seen and is_training(self.torch, module):
            self.seen.add(module)
            self.apply(module)
        return forward(*args, **kwargs)

    def _stepped(self, _optimizer):
        if not self.seen:
            return
        self.steps += 1
        if self.steps == self.STEPS:
            self.stop_watching()
            self.stop_counting()
            if self.end is not None:
                self.end()


class GradientReads:
    """Calls `noted(tensor, module)` when code outside PyTorch and the measures reads the `grad` of a tensor."""

    # All that watch, and the attribute that they share.
    watching = []
    shown = []

    def __init__(self, torch, noted):
        self.kind = torch.Tensor
        self.noted = noted

    def start(self):
        """Begins to watch."""
        if self in self.watching:
            return
        if "grad" not in vars(self.kind):
            self.shown[:] = [WatchedGradient(self.kind.grad)]
            self.kind.grad = self.shown[0]
        self.watching.append(self)

    def stop(self):
        """Ends this; with the last one, the attribute of torch is shown again."""
        if self in self.watching:
            self.watching.remove(self)
            if not self.watching and vars(self.kind).get("grad") is self.shown[0]:
                del self.kind.grad


class WatchedGradient:
    """An attribute of `torch.Tensor` that hides the one of the C class below it."""

    def __init__(self, attribute):
        self.attribute = attribute

    def __get__(self, tensor, kind=None):
        if tensor is None:
            # torch/_dynamo/utils.py compares attributes of the class.
            return self.attribute
        namespace = sys._getframe(1).f_globals
        module = namespace.get("__name__", "")
        # The namespace of this file is that of all measures where they are joined into one.
        if namespace is not globals() and module.split(".")[0] not in ("torch", "xmem_recorder"):
            for reads in list(GradientReads.watching):
                reads.noted(tensor, module)
        return self.attribute.__get__(tensor)

    def __set__(self, tensor, value):
        self.attribute.__set__(tensor, value)

    def __delete__(self, tensor):
        self.attribute.__delete__(tensor)
