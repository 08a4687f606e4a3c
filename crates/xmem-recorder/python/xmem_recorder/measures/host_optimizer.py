"""The state of the optimizer is kept in host memory, where its steps are made too.

Costs the time of copying gradients and parameters to the host and back, and of the step on the CPU.
"""

import os
import weakref

from .common import Tally, parameters_of, wrap_steps

NAME = "host-optimizer"
TITLE = "Optimizer in host memory"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
CODE = "optimizer = torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW)"


def install(torch, option, report):
    """Wraps the steps of all optimizers."""
    host = _HostOptimizers(torch, report)
    wrap_steps(torch, host.wrapper_of)


class _HostOptimizers:
    """Runs steps with tensors of the host in place of the parameters."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.tally = Tally(report)
        # By optimizer, its copies of parameters by the address of the parameter; None where it is left alone.
        self.copies = weakref.WeakKeyDictionary()

    def wrapper_of(self, step):
        def step_on_host(optimizer, closure=None, *args, **kwargs):
            if optimizer not in self.copies:
                self._decide(optimizer)
            if self.copies[optimizer] is None:
                return step(optimizer, closure, *args, **kwargs) if closure else step(optimizer, *args, **kwargs)
            loss = None
            if closure is not None:
                with self.torch.enable_grad():
                    loss = closure()
            with self.torch.no_grad():
                self._step(step, optimizer, args, kwargs)
            return loss

        return step_on_host

    def _decide(self, optimizer):
        name = type(optimizer).__name__
        reason = self._reason(optimizer, name)
        if reason:
            self.report(0, reason)
        else:
            self.tally.add(f"parameters of {name}", len(parameters_of(optimizer)))
        self.copies[optimizer] = None if reason else {}

    def _reason(self, optimizer, name):
        """Why an optimizer is left as it is."""
        kinds = (self.torch.Tensor, self.torch.nn.Parameter)
        parameters = parameters_of(optimizer)
        if name == "LBFGS":
            return "LBFGS evaluates the loss several times in a step"
        if not type(optimizer).__module__.startswith("torch.optim"):
            return f"{name} is not one of PyTorch's optimizers"
        if any(group.get("capturable") for group in optimizer.param_groups):
            return "the step is to be captured in a CUDA graph (capturable=True)"
        if any(type(parameter) not in kinds for parameter in parameters):
            return "the parameters are not ordinary tensors"
        if all(p.device.type == "cpu" for p in parameters) and os.environ.get("XMEM_MEASURES_TEST") != "1":
            return "the parameters are in host memory already"
        return ""

    def _step(self, step, optimizer, args, kwargs):
        """A step with the copies in place of the parameters: in the groups and as the keys of the state.

        The optimizer has its own parameters otherwise, so that its state can be saved and loaded as ever.
        """
        groups = [(group, group["params"]) for group in optimizer.param_groups]
        state = optimizer.state
        hosts = {}
        for group, parameters in groups:
            group["params"] = [self._copy(optimizer, p, hosts) for p in parameters if p.grad is not None]
        optimizer.state = type(state)(dict)
        for parameter, host in hosts.values():
            if parameter in state:
                optimizer.state[host] = self._state_on_host(state[parameter])
        scales = self._scales_on_host(optimizer)
        try:
            step(optimizer, *args, **kwargs)
        finally:
            for name, scale in scales.items():
                setattr(optimizer, name, scale)
            for group, parameters in groups:
                group["params"] = parameters
            of_hosts, optimizer.state = optimizer.state, state
        for parameter, host in hosts.values():
            if host in of_hosts:
                state[parameter] = of_hosts[host]
            parameter.copy_(host, non_blocking=True)

    def _copy(self, optimizer, parameter, hosts):
        """The copy of a parameter, with its present value and gradient."""
        torch = self.torch
        copies = self.copies[optimizer]
        host = copies.get(id(parameter))
        if host is None or host.shape != parameter.shape or host.dtype != parameter.dtype:
            pin = parameter.device.type == "cuda"
            host = copies[id(parameter)] = torch.empty_like(parameter, device="cpu", pin_memory=pin)
            host.grad = None
        host.copy_(parameter)
        if parameter.grad.is_sparse or host.grad is None or host.grad.is_sparse:
            host.grad = parameter.grad.detach().to("cpu", copy=True)
        else:
            host.grad.copy_(parameter.grad)
        hosts[id(parameter)] = (parameter, host)
        return host

    def _state_on_host(self, state):
        """The state of a parameter; it may have been made or loaded where the parameter is."""
        for name, value in state.items():
            if isinstance(value, self.torch.Tensor) and value.device.type != "cpu":
                state[name] = value.to("cpu")
        return state

    def _scales_on_host(self, optimizer):
        """Moves what GradScaler leaves to a fused optimizer (torch/amp/grad_scaler.py, `step`); returns what it was."""
        scales = {}
        for name in ("grad_scale", "found_inf"):
            value = getattr(optimizer, name, None)
            if isinstance(value, self.torch.Tensor):
                scales[name] = value
                setattr(optimizer, name, value.to("cpu"))
        return scales
