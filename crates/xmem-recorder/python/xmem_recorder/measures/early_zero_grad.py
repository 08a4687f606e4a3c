"""Gradients are freed right after the step of the optimizer instead of before the next backward pass.

The next forward pass runs without them; the time is the same.
"""

import weakref

from .common import GradientReads, Tally, after_step, parameters_of, watch_forwards, wrap

NAME = "early-zero-grad"
TITLE = "Gradients freed after the step"
CHANGES = "nothing"
NEEDS = ""
OPTION = ""
EXCLUDES = "step-in-backward"
CODE = "optimizer.step(); optimizer.zero_grad(set_to_none=True)"


def install(torch, option, report):
    """Frees the gradients of optimizers for which the script does so later: it calls `zero_grad` of them or of a
    module with their parameters."""
    _EarlyZeroGrad(torch, report)


class _EarlyZeroGrad:
    """Watches what the script zeroes, and whether it reads gradients after the step.

    After the first step of an optimizer its gradients are freed only when the next forward pass begins.
    """

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.tally = Tally(report)
        # Addresses of the parameters that the script has zeroed, until all optimizers are known to be.
        self.zeroed = set()
        # By optimizer whether its gradients are freed.
        self.freed = weakref.WeakKeyDictionary()
        self.owners = {}
        self.is_off = False
        self.reads = GradientReads(torch, self._read)
        self.stop_watching = None
        wrap(torch.optim.Optimizer, "zero_grad", self._zero_grad_of(parameters_of))
        wrap(torch.nn.Module, "zero_grad", self._zero_grad_of(lambda module: module.parameters()))
        self.stop_counting = after_step(torch, self._stepped)

    def _zero_grad_of(self, parameters):
        def wrapper_of(original):
            def zero_grad(owner, set_to_none=True):
                if not self.is_off:
                    if set_to_none:
                        self._zeroes(parameters(owner))
                    else:
                        self._turn_off("the script keeps gradients as zeros (set_to_none=False)")
                return original(owner, set_to_none)

            return zero_grad

        return wrapper_of

    def _zeroes(self, parameters):
        if not self.freed or not all(self.freed.values()):
            self.zeroed.update(id(parameter) for parameter in parameters)

    def _read(self, parameter, module):
        if parameter.is_leaf and id(parameter) in self.owners:
            self._turn_off(f"{module} reads gradients after the step")

    def _stepped(self, optimizer):
        if self.freed.get(optimizer):
            return _free_gradients(optimizer)
        if optimizer not in self.freed and self._is_shared(optimizer):
            return self._turn_off("several optimizers have the same parameters")
        self.freed[optimizer] = False
        self.reads.start()
        if self.stop_watching is None:
            self.stop_watching = watch_forwards(self.torch, self._forward)

    def _is_shared(self, optimizer):
        """Returns whether another optimizer has a parameter of this one."""
        owner = weakref.ref(optimizer)
        others = [self.owners.setdefault(id(parameter), owner)() for parameter in parameters_of(optimizer)]
        return any(other is not None and other is not optimizer for other in others)

    def _forward(self, _module, forward, args, kwargs):
        """The first forward pass after the step of an optimizer whose gradients are not freed yet."""
        if self.stop_watching is not None:
            self._stop()
            for optimizer in [optimizer for optimizer, is_freed in self.freed.items() if not is_freed]:
                if self.zeroed.issuperset(id(parameter) for parameter in parameters_of(optimizer)):
                    self.freed[optimizer] = True
                    _free_gradients(optimizer)
                    self.tally.add(type(optimizer).__name__)
        return forward(*args, **kwargs)

    def _stop(self):
        self.reads.stop()
        if self.stop_watching is not None:
            self.stop_watching()
            self.stop_watching = None

    def _turn_off(self, reason):
        self.is_off = True
        self._stop()
        self.stop_counting()
        self.freed.clear()
        self.report(0, reason)


def _free_gradients(optimizer):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
