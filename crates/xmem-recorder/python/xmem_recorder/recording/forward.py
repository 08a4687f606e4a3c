"""Calls of modules from outside all others, which are the passes of models."""

import functools

from .. import engine, session
from ..cpu import places
from ..facts import cudnn
from ..imports import inside_import
from ..patching import replace
from . import after_steps, begin, calls, end, evaluation, iterations, lengths, parts, passes, rest, run, steps

# Models of which a message is sent.
MAX_MODELS_SENT = 10


class _State:
    """Whether the script has put anything on the GPU."""

    def __init__(self):
        self.is_used = False


_state = _State()
_torch = None


def install(torch):
    """Wraps the constructor of modules, up to the begin of the recording, and their calls."""
    global _torch
    _torch = torch
    module = torch.nn.Module
    _watch_constructors(module)
    if "_wrapped_call_impl" in vars(module):
        _watch_calls(module)
    else:
        _watch_calls_by_hooks(torch)


def _watch_constructors(module):
    original_init = module.__init__

    def init(self, *args, **kwargs):
        if not inside_import():
            begin.begin()
        return original_init(self, *args, **kwargs)

    def restore():
        """Restores the constructor, so that recorded stacks show no wrapper."""
        module.__init__ = original_init

    module.__init__ = init
    begin.when_begun(restore)


def _watch_calls(module):
    """Wraps only outermost calls: during one, the original is restored."""
    original = module._call_impl

    def call_impl(self, *args, **kwargs):
        if calls.inside_module() or _is_traced():
            return original(self, *args, **kwargs)
        return outermost(self, functools.partial(original, self), args, kwargs)

    def outermost(self, call, args, kwargs):
        args, kwargs = lengths.change_arguments(args, kwargs)
        sample = _sample(self, args, kwargs)
        if evaluation.is_known(sample):
            passes.leave_out()
            return evaluation.result_like(_torch, sample)
        _called(self, args, kwargs)
        calls.set_depth(1)
        module._call_impl = original
        try:
            result = call(*args, **kwargs)
        finally:
            module._call_impl = call_impl
            calls.set_depth(0)
        evaluation.computed(_torch, self, sample, result)
        return result

    def compiling(compile_original):
        """Has the compiler see the original: it would trace these functions, and change what they keep."""

        def compile(self, *args, **kwargs):
            current = module._call_impl
            module._call_impl = original
            try:
                compile_original(self, *args, **kwargs)
            finally:
                module._call_impl = current
            compiled = self._compiled_call_impl

            def compiled_call_impl(*args, **kwargs):
                if calls.inside_module():
                    return compiled(*args, **kwargs)
                return outermost(self, compiled, args, kwargs)

            if compiled is not None:
                self._compiled_call_impl = compiled_call_impl

        return compile

    module._call_impl = call_impl
    replace(module, "compile", compiling)


def _watch_calls_by_hooks(torch):
    """Watches calls in torch 2.0, which has no `_wrapped_call_impl`."""
    hooks = torch.nn.modules.module

    def before(module, args):
        depth = calls.depth()
        if depth == 0 and not _is_traced():
            _called(module, args, {})
        calls.set_depth(depth + 1)

    def after(module, args, result):
        calls.set_depth(max(calls.depth() - 1, 0))

    hooks.register_module_forward_pre_hook(before)
    hooks.register_module_forward_hook(after)


def _called(module, args, kwargs):
    """Handles the call of a module from outside all others."""
    if rest.is_running():
        _called_in_rest(module)
        return
    if run.is_over():
        end.raise_again()
        return
    if not run.is_recording() or next(module.parameters(), None) is None:
        return
    if passes.inside_backward(_torch):
        # A checkpointed part of a model is computed again.
        return
    end.finish_if_requested()
    if _prepares():
        return
    cudnn.sample(_torch)
    parts.called(module)
    count = calls.count(module)
    if count == 0:
        _send_model(module, calls.add_model(module))
    elif not steps.are_counted():
        passes.count_without_steps(count, calls.without_gradients(module))
    if not _torch.is_grad_enabled():
        calls.add_without_gradients(module)
    calls.add(module)
    calls.add_batch(_shapes(args, kwargs), module)


def _prepares():
    """Returns whether a call happens while models are made: nothing is on the GPU yet, so that it is not a pass. On the CPU
    engine, where a script may train without a GPU, this holds for calls without gradients only, such as those of
    parametrizations (torch/nn/utils/parametrize.py) while weights are drawn."""
    if not engine.is_virtual():
        return not _torch.is_grad_enabled() and not places.used()
    cuda = _torch.cuda
    if not _state.is_used:
        _state.is_used = cuda.is_initialized() and any(map(cuda.memory_reserved, range(cuda.device_count())))
    return not _state.is_used


def _called_in_rest(module):
    if run.on_thread() and next(module.parameters(), None) is not None and not passes.inside_backward(_torch):
        end.finish_if_requested()
        after_steps.called(module)


def _is_traced():
    """Returns whether `torch.jit.trace` calls the model, as for a graph in TensorBoard: that is no pass, and sizes are
    tensors."""
    return _torch._C._get_tracing_state() is not None


def _send_model(module, number):
    if number > MAX_MODELS_SENT:
        return
    parameters = list(module.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    session.send("model", name=type(module).__name__, parameters=count, bytes=size)


def _sample(module, args, kwargs):
    """The kind of a call that evaluates a model before it is trained; None for other calls."""
    if steps.are_counted() or iterations.backwards() or not run.is_recording() or not steps.optimizers():
        return None
    if not run.on_thread():
        return None
    return evaluation.kind(_torch, module, args, kwargs)


def _shapes(args, kwargs):
    tensor = _torch.Tensor
    values = list(args) + list(kwargs.values())
    for value in list(values):
        if isinstance(value, (list, tuple)):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())
    return [list(value.shape) for value in values if isinstance(value, tensor)][:16]
