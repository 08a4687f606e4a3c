"""Wraps the functions of torch that show the course of a script, and exports its graph when it has been seen."""

import threading
import weakref

from .. import session
from ..imports import inside_import
from ..patching import replace, replace_everywhere, wrap_steps
from . import course, gradients, names
from .tape import Tape, place_of_caller


class Watch:
    """The state of the run."""

    def __init__(self, torch, first_step, finish):
        self.torch = torch
        self.tape = Tape(torch)
        self.course = course.Course()
        self.finish = finish
        # Steps that are run before the iteration that is exported.
        self.steps_before = first_step - 1
        self.thread = None
        self.depth = 0
        self.inside_backward = False
        # True from the first call of a model on; from the step that ends the iteration on; once the graph was taken.
        self.runs = self.is_stepped = self.is_over = False
        # The modules that were called, with the names that they have in the script.
        self.called = names.Called(torch)
        self.modes = {}
        self.trainable = {}
        self.checkpoint = None
        self.original_call = None
        # Numbers of the tensors of the loss and of the results of models, for what the script keeps.
        self.losses, self.results = [], []
        self.kept = None
        # Whether the script holds results of its models, other than the loss, when a backward pass begins.
        self.holds_results = False

    def is_last_iteration(self):
        """Returns whether this iteration is the one that is exported."""
        return self.steps_before == 0

    def is_watching(self):
        """Returns whether calls on this thread belong to the script."""
        return not self.is_over and not self.inside_backward and self.depth == 0 and self.on_thread()

    def raise_again(self):
        """Ends the script again if it has caught its end; see `end`."""

    def on_thread(self):
        """Returns whether this is the thread that calls models."""
        return self.thread is None or self.thread == threading.get_ident()


def install(torch, first_step, finish):
    """Installs the wrappers; `finish(watch)` is called when the iteration has been seen, and ends the script."""
    watch = Watch(torch, first_step, finish)
    _watch_functions(torch, watch)
    _watch_calls(torch, watch)
    _watch_optimizers(torch, watch)
    replace(torch.autograd, "backward", lambda original: _backward(watch, original))
    _watch_clipping(torch, watch)
    _watch_scaler(torch, watch)
    _watch_checkpoints(torch, watch)
    _watch_own_functions(torch, watch)
    return watch


def _watch_functions(torch, watch):
    """Sees functions of torch by a mode at the bottom of the stack, which stays for the whole run."""
    mode_class = torch.overrides.TorchFunctionMode

    class Functions(mode_class):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if not watch.runs or not watch.is_watching():
                return function(*args, **kwargs)
            entry = watch.tape.begin(function, args, kwargs)
            _note_changes(torch, watch, entry, function, args, kwargs)
            watch.depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                watch.depth -= 1
            if watch.tape.end(entry, result):
                entry.place = place_of_caller()
            return result

    watch.mode_of_thread = Functions
    watch.threads = {threading.get_ident()}
    Functions().__enter__()


def _note_changes(torch, watch, entry, function, args, kwargs):
    """Notes the tensor that a function changes in place."""
    name = getattr(function, "__name__", "")
    if name in ("__setitem__", "__set__") or name.endswith("_") and not name.endswith("__"):
        if args and isinstance(args[0], torch.Tensor):
            entry.changed.append(watch.tape.number_of(args[0]))
    if isinstance(kwargs.get("out"), torch.Tensor):
        entry.changed.append(watch.tape.number_of(kwargs["out"]))


def _watch_calls(torch, watch):
    """Wraps outermost calls of modules."""
    module_class = torch.nn.Module
    original = watch.original_call = module_class._call_impl

    def call_impl(self, *args, **kwargs):
        if watch.is_over and watch.depth == 0:
            watch.raise_again()
        if not watch.is_watching() or torch._C._get_tracing_state() is not None or inside_import():
            return original(self, *args, **kwargs)
        has_parameters = next(self.parameters(), None) is not None
        if not watch.runs and not has_parameters:
            return original(self, *args, **kwargs)
        if has_parameters:
            _model_called(watch, self)
        entry = watch.tape.begin(self, args, kwargs, names.of_arguments(self))
        entry.place = place_of_caller()
        watch.depth += 1
        module_class._call_impl = original
        try:
            result = original(self, *args, **kwargs)
        finally:
            module_class._call_impl = call_impl
            watch.depth -= 1
        watch.tape.end(entry, result)
        if has_parameters:
            watch.results.extend(entry.outputs)
        return result

    module_class._call_impl = watch.call_impl = call_impl


def _model_called(watch, module):
    if watch.is_stepped:
        watch.kept = {
            "loss": bool(watch.tape.alive(watch.losses)),
            "outputs": bool(watch.tape.alive(set(watch.results) - set(watch.losses))),
            "outputs_at_backward": watch.holds_results,
        }
        watch.finish(watch)
        return
    if not watch.runs:
        watch.runs, watch.thread = True, threading.get_ident()
        if watch.thread not in watch.threads:
            # Modes are a thread's own.
            watch.threads.add(watch.thread)
            watch.mode_of_thread().__enter__()
        _send_model(module)
    watch.called.add(module)
    for part in module.modules():
        watch.modes[part] = part.training
    if watch.torch.is_grad_enabled():
        watch.course.note(course.FORWARD)


def _send_model(module):
    parameters = list(module.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    session.send("model", name=type(module).__name__, parameters=count, bytes=size)


def _watch_optimizers(torch, watch):
    optimizer_class = torch.optim.Optimizer

    def patch_step_function(original):
        def patch(self):
            if not any(known() is self for known in watch.course.optimizers):
                watch.course.optimizers.append(weakref.ref(self))
            return original(self)

        return patch

    def stepping(step):
        def wrapper(self, *args, **kwargs):
            if watch.is_over or not watch.on_thread():
                return step(self, *args, **kwargs)
            return _stepped(watch, self, step, args, kwargs)

        return wrapper

    def zero_grad(original):
        def wrapper(self, set_to_none=True):
            watch.course.note(course.ZERO_GRAD, set_to_none=bool(set_to_none), of=weakref.ref(self))
            watch.depth += 1
            try:
                return original(self, set_to_none=set_to_none)
            finally:
                watch.depth -= 1

        return wrapper

    replace(optimizer_class, "_patch_step_function", patch_step_function)
    wrap_steps(torch, stepping)
    replace(optimizer_class, "zero_grad", zero_grad)
    replace(torch.nn.Module, "zero_grad", zero_grad)


def _stepped(watch, optimizer, step, args, kwargs):
    """Runs the step, but for the last one: its state takes memory that nobody looks at."""
    state = watch.course
    state.steps[id(optimizer)] = state.steps.get(id(optimizer), 0) + 1
    has_closure = bool(args or kwargs.get("closure"))
    if has_closure:
        # It calls the model.
        result = step(optimizer, *args, **kwargs)
    else:
        is_last = state.is_complete() and watch.is_last_iteration()
        watch.depth += 1
        try:
            result = None if is_last else step(optimizer, *args, **kwargs)
        finally:
            watch.depth -= 1
    state.note(course.STEP, optimizer=optimizer, closure=has_closure)
    if not state.is_complete():
        return result
    if watch.is_last_iteration():
        watch.is_stepped = bool(state.backwards)
    else:
        watch.steps_before -= 1
    if not watch.is_stepped:
        watch.tape.clear()
        watch.losses, watch.results = [], []
        state.begin_iteration()
        state.steps.clear()
    return result


def _backward(watch, original):
    def backward(tensors, *args, **kwargs):
        if watch.is_over or watch.inside_backward or not watch.on_thread():
            return original(tensors, *args, **kwargs)
        roots = [tensors] if isinstance(tensors, watch.torch.Tensor) else list(tensors)
        numbers = [watch.tape.number_of(root) for root in roots]
        if watch.runs and not watch.is_stepped:
            watch.course.note(course.BACKWARD, index=len(watch.course.backwards))
            watch.course.backwards.append((numbers, place_of_caller()))
            watch.losses.extend(number for number in numbers if number is not None)
            watch.holds_results |= bool(watch.tape.alive(set(watch.results) - set(watch.losses)))
        if gradients.can_be_left_out(watch, args, kwargs):
            gradients.fill(watch)
            return None
        watch.inside_backward = True
        try:
            return original(tensors, *args, **kwargs)
        finally:
            watch.inside_backward = False

    return backward


def _watch_clipping(torch, watch):
    def clipping(kind):
        def wrapper_of(original):
            def clip(parameters, *args, **kwargs):
                if watch.course.clipping is None:
                    watch.course.clipping = {
                        "kind": kind,
                        "foreach": kwargs.get("foreach"),
                    }
                watch.course.note(course.CLIP)
                watch.depth += 1
                try:
                    return original(parameters, *args, **kwargs)
                finally:
                    watch.depth -= 1

            return clip

        return wrapper_of

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        original = getattr(torch.nn.utils.clip_grad, name)
        replace(torch.nn.utils.clip_grad, name, clipping(name.rstrip("_").replace("_", "-")))
        if getattr(torch.nn.utils, name, None) is original:
            setattr(torch.nn.utils, name, getattr(torch.nn.utils.clip_grad, name))


def _watch_scaler(torch, watch):
    def scale(original):
        def wrapper(self, outputs):
            watch.course.uses_scaler = watch.course.uses_scaler or self.is_enabled()
            return original(self, outputs)

        return wrapper

    def hidden(original):
        def wrapper(self, *args, **kwargs):
            watch.depth += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                watch.depth -= 1

        return wrapper

    scaler = torch.amp.GradScaler
    replace(scaler, "scale", scale)
    for name in ("unscale_", "update"):
        replace(scaler, name, hidden)


def _watch_own_functions(torch, watch):
    """Notes functions with a backward of their own: an export has the operators of their forward alone."""
    function_class = torch.autograd.Function
    original = function_class.__dict__["apply"]

    def apply(cls, *args, **kwargs):
        is_of_torch = cls.__module__.partition(".")[0] == "torch"
        if watch.runs and not (is_of_torch or watch.is_over) and watch.on_thread() and torch.is_grad_enabled():
            watch.course.functions.add(cls.__qualname__)
        return original.__get__(None, cls)(*args, **kwargs)

    function_class.apply = classmethod(apply)


def _watch_checkpoints(torch, watch):
    """Notes which modules are called within checkpoints; the graph holds their operators without the checkpoint."""
    import torch.utils.checkpoint

    def checkpointed(original):
        def checkpoint(function, *args, use_reentrant=None, context_fn=None, **kwargs):
            if watch.checkpoint is not None:
                return watch.checkpoint(function, args, kwargs)
            if context_fn is not None:
                kwargs["context_fn"] = context_fn
            with_gradients = torch.is_grad_enabled()
            if with_gradients and not (watch.inside_backward or watch.is_stepped or watch.is_over):
                watch.course.checkpoints.append(
                    {
                        "function": function,
                        "use_reentrant": use_reentrant,
                        "preserve_rng_state": kwargs.get("preserve_rng_state", True),
                        "selective": context_fn is not None,
                        "tensors": sum(isinstance(value, torch.Tensor) for value in args),
                    }
                )
            # A reentrant checkpoint computes without gradients first.
            outside = watch.tape.has_gradients
            watch.tape.has_gradients = outside or with_gradients
            try:
                return original(function, *args, use_reentrant=use_reentrant, **kwargs)
            finally:
                watch.tape.has_gradients = outside

        return checkpoint

    replace_everywhere(torch.utils.checkpoint, "checkpoint", checkpointed)
