"""Runs torch's profiler over the script, counts its iterations, saves the trace, ends the script.

The recording begins when the first module is made or the first tensor goes to the GPU, after the
imports. An iteration ends with a step of each optimizer; without a step, backward passes count, and
without these, forward calls of the model. What follows a pass or a call belongs to its iteration, which
ends where the next one begins, or with the script.
"""

import atexit
import functools
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
import weakref

from . import engine, errors, evaluation, lengths, profilers, saving, session, swapping
from .facts import cudnn, metadata
from .imports import inside_import
from .patching import replace
from .ranks import place
from .virtual import compilation, library, nccl, outside
from .weights import missing

# An optimizer without a step is waited for until another has made this many times the requested
# steps.
MAX_STEP_RATIO = 3
# Forward calls per requested iteration after which optimizers without a step are disregarded.
FORWARDS_WITHOUT_STEP = 20
# Calls without gradients, in all, after which the same holds: an evaluation may come before the first step.
EVALUATIONS_WITHOUT_STEP = 1000
# The same as the first for backward passes, whose gradients the optimizer may accumulate.
BACKWARDS_WITHOUT_STEP = 200
# Iterations, per requested one, from which on an attempt with less memory is no reason to begin again.
MAX_ATTEMPTS_RATIO = 20
# Consecutive steps that a gradient scaler may skip before they count.
MAX_SKIPPED_STEPS = 10
# Iterations of which the resident memory is kept.
MAX_RESIDENT = 1000
# Units of iterations.
STEPS = "optimizer steps"
BACKWARDS = "backward passes"
FORWARDS = "forward calls"
# Models of which a message is sent.
MAX_MODELS_SENT = 10
# Times that the end of the script is raised, if the script catches it, before the process exits.
MAX_RAISES = 10


class Finished(SystemExit):
    """Ends the script: the recording is complete."""

    def __init__(self):
        super().__init__(0)


class _State:
    """The state of the run."""

    def __init__(self):
        self.torch = None
        self.profiler = None
        self.thread = None
        self.pid = os.getpid()
        self.began = False
        self.over = False
        self.wanted_end = None
        self.raised = 0
        self.failure = None
        self.exit_code = None
        self.optimizers = []
        self.steps = {}
        # The times that memory had run out when each optimizer was made, and at the last step.
        self.failures_before = {}
        self.failures = 0
        # The iterations before the counted steps.
        self.rounds_before = 0
        self.skipped = 0
        self.rounds = 0
        self.rounds_by = STEPS
        self.resident = []
        self.passes = {}
        self.backwards = 0
        self.in_backward = False
        self.calls = {}
        self.evaluations = {}
        self.roots = []
        self.batch = None
        self.last_round = None
        self.limit = None


_state = _State()
_depth = threading.local()


def install(torch):
    """Wraps the functions that show the progress of the script."""
    _state.torch = torch
    _watch_modules(torch)
    _watch_optimizers(torch)
    replace(torch.autograd, "backward", _counted_backward)
    lengths.install(torch, lambda: _state.rounds)
    swapping.install(torch)
    _watch_the_end()


def inside_module():
    """Returns whether a module is being called on this thread."""
    return getattr(_depth, "value", 0) > 0


def mark(name):
    """Writes a mark to the trace: an annotation of no length."""
    if _state.profiler is None or _state.over:
        return
    operators = _state.torch.ops.profiler
    handle = operators._record_function_enter_new(name, None)
    operators._record_function_exit._RecordFunction(handle)


def mark_stream(stream):
    """Writes a mark from which on memory is allocated on another stream, if that is the recorded thread's."""
    if threading.get_ident() == _state.thread:
        mark(f"xmem::stream {stream}")


def is_recording():
    """Returns whether the profiler runs."""
    return _state.profiler is not None and not _state.over


def begin():
    """Starts the profiler, unless it has been started."""
    if _state.began or _state.torch is None:
        return
    _state.began = True
    _stop_watching_constructors()
    if not _is_to_be_recorded():
        _state.over = True
        return
    stacks = session.settings()["stacks"] and not compilation.began()
    if stacks:
        _import_lazy_parts()
    _state.thread = threading.get_ident()
    if threading.current_thread() is threading.main_thread():
        _install_signal_handlers()
    else:
        _depth.guard = _EndOfThread()
    if not engine.is_virtual():
        # The address space of a virtual GPU would count.
        _state.limit = saving.limit_memory(session.settings().get("max_memory"))
    _state.last_round = time.monotonic()
    gpus = session.settings().get("gpus", 1)
    if gpus > 1 and place.wanted() is None:
        which = "the GPU with most memory" if engine.is_virtual() else "one GPU with all tensors"
        session.note(f"the script sees {gpus} GPUs; the answer is about {which}")
    _state.profiler = profilers.start(_state.torch, stacks)
    session.send("recording")


def _is_to_be_recorded():
    if os.getpid() != _state.pid or multiprocessing.current_process().daemon:
        return False
    return place.is_wanted()


def _import_lazy_parts():
    """Imports torch's compiler, else imported by the first optimizer: 100,000 Python calls."""
    try:
        import torch._dynamo  # noqa: F401
    except Exception:
        pass


class _EndOfThread:
    """Saves the recording at the end of its thread, which alone can stop the profiler."""

    def __del__(self):
        finish("end")


# ---------------------------------------------------------------------------------------------
# Modules
# ---------------------------------------------------------------------------------------------


def _watch_modules(torch):
    module = torch.nn.Module
    original_init = module.__init__

    def init(self, *args, **kwargs):
        if not inside_import():
            begin()
        return original_init(self, *args, **kwargs)

    module.__init__ = init
    _watched["init"] = (module, original_init)
    if "_wrapped_call_impl" in vars(module):
        _watch_calls(module)
    else:
        _watch_calls_by_hooks(torch)


_watched = {}


def _stop_watching_constructors():
    """Restores the constructor, so that recorded stacks show no wrapper."""
    module, original = _watched.pop("init", (None, None))
    if module is not None:
        module.__init__ = original


def _watch_calls(module):
    """Wraps only outermost calls: during one, the original is restored."""
    original = module._call_impl

    def call_impl(self, *args, **kwargs):
        if inside_module() or _is_traced():
            return original(self, *args, **kwargs)
        return outermost(self, functools.partial(original, self), args, kwargs)

    def outermost(self, call, args, kwargs):
        args, kwargs = lengths.change_arguments(args, kwargs)
        sample = _sample(self, args, kwargs)
        if evaluation.is_known(sample):
            _left_out()
            return evaluation.result_like(_state.torch, sample)
        _called(self, args, kwargs)
        _depth.value = 1
        module._call_impl = original
        try:
            result = call(*args, **kwargs)
        finally:
            module._call_impl = call_impl
            _depth.value = 0
        evaluation.computed(_state.torch, self, sample, result)
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
                if inside_module():
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
        depth = getattr(_depth, "value", 0)
        if depth == 0 and not _is_traced():
            _called(module, args, {})
        _depth.value = depth + 1

    def after(module, args, result):
        _depth.value = max(getattr(_depth, "value", 1) - 1, 0)

    hooks.register_module_forward_pre_hook(before)
    hooks.register_module_forward_hook(after)


def _called(module, args, kwargs):
    """Handles the call of a module from outside all others."""
    if _state.over:
        _raise_again()
        return
    if _state.profiler is None or next(module.parameters(), None) is None:
        return
    if _inside_backward():
        # A checkpointed part of a model is computed again.
        return
    _finish_if_requested()
    cudnn.sample(_state.torch)
    calls = _state.calls.get(id(module), 0)
    if calls == 0:
        _state.roots.append(weakref.ref(module))
        _send_model(module)
    if calls > 0 and not _state.steps:
        _count_without_steps(calls, _state.evaluations.get(id(module), 0))
    if not module.training and not _state.torch.is_grad_enabled():
        _state.evaluations[id(module)] = _state.evaluations.get(id(module), 0) + 1
    _state.calls[id(module)] = calls + 1
    shapes = _shapes(args, kwargs)
    if shapes and (_state.batch is None or module.training):
        _state.batch = shapes


def _is_traced():
    """Returns whether `torch.jit.trace` calls the model, as for a graph in TensorBoard: that is no pass, and sizes are
    tensors."""
    return _state.torch._C._get_tracing_state() is not None


def _send_model(module):
    if len(_state.roots) > MAX_MODELS_SENT:
        return
    parameters = list(module.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    session.send("model", name=type(module).__name__, parameters=count, bytes=size)


def _sample(module, args, kwargs):
    """The kind of a call that evaluates a model before it is trained; None for other calls."""
    if _state.steps or _state.backwards or not is_recording() or not _live_optimizers():
        return None
    if threading.get_ident() != _state.thread:
        return None
    return evaluation.kind(_state.torch, module, args, kwargs)


def _left_out():
    """Counts a call that is not computed; an optimizer that makes no step after many of them makes none."""
    _finish_if_requested()
    evaluation.left_out += 1
    if evaluation.left_out >= EVALUATIONS_WITHOUT_STEP:
        _state.rounds, _state.rounds_by = max(_state.calls.values(), default=0), FORWARDS
        finish("forwards")
        raise Finished


def _inside_backward():
    task = getattr(_state.torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def _count_without_steps(calls, evaluations=0):
    """Counts the passes that have ended, at the beginning of the next one; `calls` are those of the called
    module, of which some are evaluations. If the script has an optimizer, they are no iterations until it
    is clear that it makes no step."""
    wanted = session.settings()["steps"]
    if _state.backwards:
        done, by = _state.backwards, BACKWARDS
        no_step = done >= wanted * BACKWARDS_WITHOUT_STEP
    else:
        done, by = calls, FORWARDS
        no_step = done - evaluations >= wanted * FORWARDS_WITHOUT_STEP
        no_step = no_step or evaluations >= EVALUATIONS_WITHOUT_STEP
    _mark_pass(done, by)
    if _live_optimizers():
        ends = no_step
    else:
        ends = done >= wanted
        if done > _state.rounds:
            _iteration(done, by)
    if ends:
        _state.rounds, _state.rounds_by = done, by
        finish("backwards" if _state.backwards else "forwards")
        raise Finished


def _mark_pass(number, by):
    if number > _state.passes.get(by, 0):
        _state.passes[by] = number
        mark(f"xmem::{'backward' if by == BACKWARDS else 'forward'} {number}")


def _count_last_pass():
    """Counts the passes of a script that ends without a step of an optimizer; the last one ends with it."""
    if _state.steps:
        return
    done, by = max(_state.calls.values(), default=0), FORWARDS
    if _state.backwards:
        done, by = _state.backwards, BACKWARDS
    _mark_pass(done, by)
    if done > _state.rounds:
        _iteration(done, by)


def _shapes(args, kwargs):
    tensor = _state.torch.Tensor
    values = list(args) + list(kwargs.values())
    for value in list(values):
        if isinstance(value, (list, tuple)):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())
    return [list(value.shape) for value in values if isinstance(value, tensor)][:16]


# ---------------------------------------------------------------------------------------------
# Optimizers
# ---------------------------------------------------------------------------------------------


def _watch_optimizers(torch):
    optimizer = torch.optim.Optimizer

    def patch_step_function(original):
        def patch(self):
            begin()
            if not any(known() is self for known in _state.optimizers):
                _state.optimizers.append(weakref.ref(self))
                # One that no longer exists may have had the same id.
                _state.steps.pop(id(self), None)
                _state.failures_before[id(self)] = _failures()
            return original(self)

        return patch

    replace(optimizer, "_patch_step_function", patch_step_function)
    hook = optimizer.profile_hook_step

    def profile_hook_step(function):
        inner = hook(function)

        def stepping(self, *args, **kwargs):
            result = inner(self, *args, **kwargs)
            _stepped(self)
            return result

        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(stepping, name, getattr(function, name, None))
        stepping.__wrapped__ = function
        return stepping

    optimizer.profile_hook_step = staticmethod(profile_hook_step)
    scalers = [torch.cuda.amp.GradScaler]
    if hasattr(torch.amp, "GradScaler"):
        scalers.insert(0, torch.amp.GradScaler)
    for scaler in scalers:
        if "step" in vars(scaler):
            replace(scaler, "step", _scaled_step)


def _scaled_step(original):
    def scaled_stepping(self, optimizer, *args, **kwargs):
        before = _state.steps.get(id(optimizer), 0)
        result = original(self, optimizer, *args, **kwargs)
        if _state.steps.get(id(optimizer), 0) == before:
            _state.skipped += 1
            if _state.skipped == MAX_SKIPPED_STEPS:
                session.note("the gradient scaler skips every step: gradients are not finite")
            if _state.skipped >= MAX_SKIPPED_STEPS:
                _stepped(optimizer)
        else:
            _state.skipped = 0
        return result

    return scaled_stepping


def _failures():
    """The times that a device had too little memory."""
    cuda = _state.torch.cuda
    if not engine.is_virtual() or not cuda.is_initialized():
        return 0
    return sum(cuda.memory_stats(device).get("num_ooms", 0) for device in range(cuda.device_count()))


def _begin_again(optimizer):
    """Begins to count again if memory has run out since the last step: the script tries less, such as a smaller batch,
    and what it did before is no iteration of that. Optimizers of the attempt before may still exist."""
    failures = _failures()
    if failures == _state.failures or _state.rounds > session.settings()["steps"] * MAX_ATTEMPTS_RATIO:
        return
    if _state.failures_before.get(id(optimizer), 0) == failures:
        _state.optimizers = [
            known for known in _state.optimizers if _state.failures_before.get(id(known()), 0) == failures
        ]
    _state.failures = failures
    _state.rounds_before = _state.rounds
    _state.steps.clear()


def _live_optimizers():
    _state.optimizers = [known for known in _state.optimizers if known() is not None]
    return [known() for known in _state.optimizers]


def _stepped(optimizer):
    """Handles a step of an optimizer."""
    if _state.over:
        _raise_again()
        return
    if _state.profiler is None:
        return
    # A hook of a gradient steps on the thread of the engine, which cannot end the script.
    inside_backward = _state.in_backward and _inside_backward()
    if threading.get_ident() != _state.thread and not inside_backward:
        session.note(
            "training runs on another thread than the one that made the model; only that one is recorded"
        )
        return
    if not _state.steps and _state.rounds_by != STEPS:
        # The passes before the first step were no iterations.
        _state.rounds, _state.resident = 0, []
    _begin_again(optimizer)
    _state.steps[id(optimizer)] = _state.steps.get(id(optimizer), 0) + 1
    if not inside_backward:
        _count_steps()


def _count_steps():
    """Ends the iteration in which each optimizer has made a step."""
    wanted = session.settings()["steps"]
    counts = [_state.steps.get(id(known), 0) for known in _live_optimizers()] or [0]
    if _state.rounds_before + min(counts) > _state.rounds:
        _iteration(_state.rounds_before + min(counts), STEPS)
    _finish_if_requested()
    if min(counts) >= wanted or max(counts) >= wanted * MAX_STEP_RATIO and not min(counts):
        _state.rounds = _state.rounds_before + (min(counts) or max(counts))
        finish("steps")
        raise Finished


def _iteration(number, by):
    now = time.monotonic()
    _state.rounds, _state.rounds_by = number, by
    seconds = round(now - _state.last_round, 3)
    _state.last_round = now
    if by == STEPS:
        mark(f"xmem::iteration {number}")
    if len(_state.resident) < MAX_RESIDENT:
        _state.resident.append(saving.resident_memory())
    session.send("iteration", number=number, seconds=seconds, of=by)
    if engine.is_virtual():
        library.end_iteration()
        outside.measure(_state.torch)
        nccl.wait_for_collectives()


def _counted_backward(original):
    def backward(*args, **kwargs):
        counts = is_recording() and threading.get_ident() == _state.thread
        counts = counts and not _inside_backward()
        if counts and not _state.calls:
            # No module is called that would show where the next iteration begins.
            _finish_if_requested()
            if not _state.steps:
                _count_without_steps(0)
        if not counts:
            return original(*args, **kwargs)
        steps = sum(_state.steps.values())
        _state.in_backward = True
        try:
            result = original(*args, **kwargs)
        finally:
            _state.in_backward = False
        if not _state.backwards and not _state.steps:
            # Forward calls are no iterations of their own.
            _state.rounds, _state.resident = 0, []
        _state.backwards += 1
        if sum(_state.steps.values()) > steps:
            _count_steps()
        return result

    return backward


# ---------------------------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------------------------


def _watch_the_end():
    """Watches for exceptions, exits and forks."""
    hook = sys.excepthook

    def excepthook(kind, value, trace):
        _state.failure = (kind, value, trace)
        missing.explain(value, is_recording())
        hook(kind, value, trace)

    sys.excepthook = excepthook
    thread_hook = threading.excepthook

    def thread_excepthook(failed):
        if failed.thread is not None and failed.thread.ident == _state.thread:
            _state.failure = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        thread_hook(failed)

    threading.excepthook = thread_excepthook
    leave = sys.exit

    def exit(status=None):
        _state.exit_code = status
        leave(status)

    sys.exit = exit
    replace(traceback, "print_exception", _except_the_end)
    leave_at_once = os._exit

    def _exit(status):
        if os.getpid() == _state.pid:
            _state.exit_code = status
            _at_the_end()
        leave_at_once(status)

    os._exit = _exit
    _state.leave_at_once = leave_at_once
    atexit.register(_at_the_end)
    os.register_at_fork(after_in_child=_forget)


def _except_the_end(original):
    """Prints no traceback of the end of the recording, where a context manager prints whatever passes it."""

    def print_exception(*args, **kwargs):
        if not any(isinstance(value, Finished) for value in (*args, *kwargs.values())):
            original(*args, **kwargs)

    return print_exception


def _forget():
    """Disables the recording in a forked child."""
    _state.over = True
    _state.began = True
    _state.raised = None


def _at_the_end():
    if _state.profiler is None or _state.over:
        return
    if not _state.rounds and not session.is_first():
        # A helper process of the script that uses torch, or what a launcher started, without an iteration.
        reason, detail = _reason()
        if reason in ("exception", "memory"):
            session.send("raised", text=detail)
        _state.over = True
        if threading.get_ident() == _state.thread:
            profilers.stop(_state.profiler)
        return
    finish(*_reason())


def _reason():
    """The reason why the script ended, and its detail."""
    if _state.failure is not None:
        kind, _, traceback = _state.failure
        if issubclass(kind, KeyboardInterrupt):
            return "signal", "SIGINT"
        where = errors.describe_type(kind, traceback)
        if issubclass(kind, MemoryError) or "DefaultCPUAllocator" in _failure_text():
            return "memory", where
        return "exception", where
    if _state.exit_code not in (None, 0):
        # A text is printed by Python, which exits with 1.
        code = _state.exit_code
        return "exit", str(int(code)) if isinstance(code, int) else "1"
    return "end", None


def _failure_text():
    """The message of the exception that ended the script, which stays in this process."""
    try:
        return "" if _state.failure is None else str(_state.failure[1])
    except Exception:
        return ""


def _install_signal_handlers():
    """Saves the recording at SIGUSR2, which `xmem profile` sends, and at SIGTERM and SIGHUP."""

    def stop(_number, _frame):
        _end_now(session.stop_reason() or "signal", None, Finished())

    signal.signal(signal.SIGUSR2, stop)

    def terminated(number, _frame):
        name = signal.Signals(number).name
        finish("signal", name)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, terminated)


def _end_now(reason, detail, exception):
    if threading.get_ident() != _state.thread:
        _state.wanted_end = (reason, detail)
        return
    finish(reason, detail)
    raise exception


def _finish_if_requested():
    if _state.wanted_end is not None and threading.get_ident() == _state.thread:
        finish(*_state.wanted_end)
        raise Finished


def _raise_again():
    """Raises the end of the script again, which the script has caught."""
    if _state.profiler is None or _state.raised is None:
        return
    if threading.get_ident() != _state.thread:
        return
    _state.raised += 1
    if _state.raised > MAX_RAISES:
        sys.stdout.flush()
        sys.stderr.flush()
        _state.leave_at_once(0)
    raise Finished


def finish(reason, detail=None):
    """Stops the profiler and saves the trace; errors are reported, not raised."""
    if _state.over or _state.profiler is None or os.getpid() != _state.pid:
        return
    if threading.get_ident() == _state.thread:
        # The export is not part of the script.
        sys.setprofile(None)
        if reason in ("end", "exit"):
            _count_last_pass()
            if reason == "end" and _state.rounds >= session.settings()["steps"]:
                reason = {FORWARDS: "forwards", BACKWARDS: "backwards"}.get(_state.rounds_by, reason)
    _state.over = True
    saving.restore_memory(_state.limit)
    match = re.search(r"tried to allocate (\d+) bytes", _failure_text())
    needed = int(match.group(1)) if match else None
    evaluation.note()
    try:
        text = _metadata(reason, detail)
        _state.profiler.add_metadata_json("xmem_recording", text)
    except Exception as error:
        text = f"the trace lacks the metadata of the recording: {errors.describe(error)}"
        session.send("note", text=text)
    try:
        profilers.stop(_state.profiler)
        if session.settings()["stacks"] and not engine.is_virtual():
            saving.keep_lines(_state.profiler)
        saving.export(_state.profiler, _state.rounds, reason, detail, needed)
    except Exception as error:
        session.send("failed", text=f"{type(error).__name__}: {error}")


def _metadata(reason, detail):
    models = [root() for root in _state.roots if root() is not None]
    known = [(optimizer, _state.steps.get(id(optimizer), 0)) for optimizer in _live_optimizers()]
    iterations = {
        "by": _state.rounds_by,
        "count": _state.rounds,
        "backwards": _state.backwards,
        "resident": _state.resident,
    }
    ended = {"reason": reason, "detail": detail}
    return metadata.collect(_state.torch, models, known, iterations, _state.batch, ended)
