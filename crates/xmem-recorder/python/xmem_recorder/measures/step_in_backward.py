"""The optimizer makes its step for each parameter as soon as the backward pass has its gradient, which is then freed.

Gradients of all parameters never exist at once. The backward pass makes many small steps, which costs some time.
"""

import functools
import threading
import weakref

from .common import GradientReads, Tally, after_step, parameters_of, scaler_class, wrap, wrap_clipping

NAME = "step-in-backward"
TITLE = "Optimizer step in the backward pass"
CHANGES = "nothing"
NEEDS = ""
OPTION = ""
EXCLUDES = "micro-batches host-optimizer"
CODE = "parameter.register_post_accumulate_grad_hook(lambda p: (optimizer_of[p].step(), optimizer_of[p].zero_grad()))"


def install(torch, option, report):
    """Follows all optimizers. The first step runs as it is, to see whether the measure applies, and with several
    optimizers the first two of each."""
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        return report(0, "this release of PyTorch has no hook for accumulated gradients")
    _StepsInBackward(torch, report)


class _StepOptimizer:
    """An optimizer that is followed."""

    def __init__(self, optimizer):
        self.optimizer = weakref.ref(optimizer)
        self.is_on = False
        self.steps = 0
        self.hooked = set()
        # Times that the gradient of a parameter was accumulated since the last step, by the address of the parameter.
        self.accumulated = {}
        # The learning rates when the first of them was.
        self.rates = None
        # Parameters on several devices have a thread each in the backward pass.
        self.lock = threading.Lock()

    def current_rates(self):
        return [float(group["lr"]) if "lr" in group else None for group in self.optimizer().param_groups]

    def step(self, index, parameter):
        """The step of one parameter: that of an optimizer whose only group has only this parameter."""
        optimizer = self.optimizer()
        with self.lock:
            groups = optimizer.param_groups
            optimizer.param_groups = [{**groups[index], "params": [parameter]}]
            try:
                # Without the hooks before and after a step (torch/optim/optimizer.py, `profile_hook_step`).
                type(optimizer).step.__wrapped__(optimizer)
            finally:
                optimizer.param_groups = groups
        parameter.grad = None


class _StepsInBackward:
    """All optimizers, and the wrapped functions that show that the measure does not apply."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.tally = Tally(report)
        self.optimizers = weakref.WeakKeyDictionary()
        self.handles = []
        self.is_off = False
        self.reads = GradientReads(torch, self._read)
        self.stop_watching = after_step(torch, self._stepped)
        wrap(torch.optim.Optimizer, "add_param_group", self._add_param_group)
        wrap(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            wrap_clipping(torch, name, self._refusing("gradients are clipped"))
        wrap(scaler_class(torch), "scale", self._scale)

    def _refuse(self, reason):
        """Ends the measure for all optimizers."""
        if self.is_off:
            return
        self.is_off = True
        self.stop_watching()
        self.reads.stop()
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self.report(0, reason)

    def _refusing(self, reason):
        def wrapper_of(original):
            def function(*args, **kwargs):
                self._refuse(reason)
                return original(*args, **kwargs)

            return function

        return wrapper_of

    def _scale(self, original):
        def scale(scaler, outputs):
            if scaler.is_enabled():
                self._refuse("gradients are scaled by a GradScaler")
            return original(scaler, outputs)

        return scale

    def _zero_grad(self, original):
        def zero_grad(optimizer, set_to_none=True):
            if not set_to_none:
                self._refuse("the script keeps gradients as zeros (set_to_none=False)")
            return original(optimizer, set_to_none)

        return zero_grad

    def _add_param_group(self, original):
        def add_param_group(optimizer, param_group):
            result = original(optimizer, param_group)
            if not self.is_off:
                self._follow(optimizer)
            return result

        return add_param_group

    def _follow(self, optimizer):
        """Adds hooks to the parameters of the last group of an optimizer."""
        reason = _step_is_not_separable(optimizer)
        if reason:
            return self._refuse(reason)
        followed = self.optimizers.get(optimizer)
        if followed is None:
            followed = self.optimizers[optimizer] = _StepOptimizer(optimizer)
        index = len(optimizer.param_groups) - 1
        for parameter in optimizer.param_groups[index]["params"]:
            # A constructor may run twice.
            if parameter.requires_grad and parameter.is_leaf and id(parameter) not in followed.hooked:
                followed.hooked.add(id(parameter))
                hook = functools.partial(self._accumulated, followed, index)
                self.handles.append(parameter.register_post_accumulate_grad_hook(hook))

    def _accumulated(self, followed, index, parameter):
        """The backward pass has added to the gradient of a parameter."""
        if self.is_off or followed.optimizer() is None:
            return
        if not followed.accumulated:
            followed.rates = followed.current_rates()
        count = followed.accumulated[id(parameter)] = followed.accumulated.get(id(parameter), 0) + 1
        if count > 1:
            self._refuse("gradients are accumulated over several backward passes")
        elif followed.is_on:
            followed.step(index, parameter)
        else:
            self.reads.start()

    def _read(self, parameter, module):
        """A module of the script reads a gradient."""
        if any(id(parameter) in followed.accumulated for followed in self.optimizers.values()):
            self._refuse(f"{module} reads gradients between the backward pass and the step")

    def _stepped(self, optimizer):
        """The script has made a step."""
        followed = self.optimizers.get(optimizer)
        if followed is None or not followed.accumulated:
            return
        if followed.rates != followed.current_rates():
            return self._refuse("the learning rate is set between the backward pass and the step")
        followed.accumulated.clear()
        if not any(other.accumulated for other in self.optimizers.values()):
            self.reads.stop()
        followed.steps += 1
        # A model may get gradients from the loss of another one, after its own step.
        if not followed.is_on and followed.steps >= min(2, len(self.optimizers)):
            self._turn_on(followed)

    def _turn_on(self, followed):
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return self._refuse("gradients are exchanged between processes")
        followed.is_on = True
        optimizer = followed.optimizer()
        self.tally.add(f"parameters of {type(optimizer).__name__}", len(parameters_of(optimizer)))


def _step_is_not_separable(optimizer):
    """Why the step of an optimizer cannot be made for one parameter at a time."""
    name = type(optimizer).__name__
    owner = next(kind for kind in type(optimizer).__mro__ if "step" in vars(kind))
    if not owner.__module__.startswith("torch.optim"):
        return f"{name} is not one of PyTorch's optimizers"
    if owner.__name__ == "LBFGS":
        return "LBFGS evaluates the loss several times in a step"
    return ""
