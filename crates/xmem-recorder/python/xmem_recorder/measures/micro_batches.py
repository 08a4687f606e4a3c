"""Each batch is processed in parts, whose gradients are accumulated: activations are those of one part.

Smaller batches use the GPU less well, so steps take longer.
"""

import importlib
import weakref

from .common import scaler_class, watch_forwards, wrap, wrap_clipping, wrap_steps

NAME = "micro-batches"
TITLE = "Batches in {option} parts"
CHANGES = "rounding"
NEEDS = ""
OPTION = "2"
CODE = "(loss / parts).backward(); if (index + 1) % parts == 0: optimizer.step(); optimizer.zero_grad()"


def install(torch, option, report):
    """Lets DataLoaders yield parts of batches, and everything after the backward pass take effect for the last of them.

    Losses must be means over the batch. An epoch has more iterations: what a script counts or averages by iteration,
    or ends after a number of them, is that of parts.
    """
    importlib.import_module("torch.utils.data")

    _MicroBatches(torch, int(option), report)


class _MicroBatches:
    """The state of the loop."""

    def __init__(self, torch, parts, report):
        self.torch = torch
        self.parts = parts
        self.report = report
        # None until the first backward pass.
        self.is_on = None if parts > 1 else False
        self.has_batch_norm = False
        self.is_in_scaler = False
        self.loaders = _SplitLoaders(torch, parts)
        # Calls of the step by optimizer, since the last that took effect.
        self.calls = weakref.WeakKeyDictionary()
        # The optimizer of each parameter, by its address.
        self.owners = {}
        self.schedulers = _Schedulers(torch, self)
        self.stop_watching = watch_forwards(torch, self._forward)
        wrap(torch.Tensor, "backward", self._backward)
        wrap(torch.optim.Optimizer, "add_param_group", self._add_param_group)
        wrap_steps(torch, self._step, outside=True)
        wrap(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        wrap(torch.nn.Module, "zero_grad", self._zero_grad_of_module)
        for name, unless in (("step", self.is_partial), ("unscale_", self.is_partial), ("update", self._was_partial)):
            wrap(scaler_class(torch), name, self._scaler(name, unless))
        wrap_clipping(torch, "clip_grad_norm_", self._clip_norm)
        wrap_clipping(torch, "clip_grad_value_", self._clip_value)

    def is_partial(self, optimizer):
        """Returns whether the next step of an optimizer is that of a part that is not the last of its batch."""
        return bool(self.is_on) and self.calls.get(optimizer, 0) + 1 < self.parts

    def has_begun(self, optimizer):
        """Returns whether gradients are being accumulated for an optimizer."""
        return bool(self.is_on) and self.calls.get(optimizer, 0) > 0

    def _was_partial(self):
        return any(calls > 0 for calls in self.calls.values())

    def _forward(self, module, forward, args, kwargs):
        kind = self.torch.nn.modules.batchnorm._BatchNorm
        self.has_batch_norm = self.has_batch_norm or any(isinstance(inner, kind) for inner in module.modules())
        return forward(*args, **kwargs)

    def _decide(self):
        """At the first backward pass: its batch must come from a loader."""
        self.stop_watching()
        self.is_on = self.loaders.size is not None
        if not self.is_on:
            return self.report(0, self.loaders.reason)
        note = "; batch norm sees smaller batches" if self.has_batch_norm else ""
        self.report(1, f"batches of {self.loaders.size} in {self.parts} parts{note}")

    def _backward(self, original):
        def backward(tensor, gradient=None, *args, **kwargs):
            if self.is_on is None:
                self._decide()
            if self.is_on:
                if gradient is not None:
                    gradient = gradient / self.parts
                elif tensor.numel() == 1:
                    gradient = self.torch.full_like(tensor, 1 / self.parts)
            return original(tensor, gradient, *args, **kwargs)

        return backward

    def _add_param_group(self, original):
        def add_param_group(optimizer, param_group):
            result = original(optimizer, param_group)
            for parameter in optimizer.param_groups[-1]["params"]:
                self.owners[id(parameter)] = weakref.ref(optimizer)
            return result

        return add_param_group

    def _count(self, optimizer):
        """Counts a call of the step; returns whether it takes effect."""
        self.schedulers.stepped()
        if not self.is_on:
            return True
        is_partial = self.is_partial(optimizer)
        self.calls[optimizer] = self.calls.get(optimizer, 0) + 1 if is_partial else 0
        return not is_partial

    def _step(self, original):
        def step(optimizer, *args, **kwargs):
            # A GradScaler has counted this step.
            if self.is_in_scaler:
                return original(optimizer, *args, **kwargs)
            closure = args[0] if args else kwargs.get("closure")
            if closure is not None and self.is_on is None:
                # The first backward pass may be in the closure, and decide.
                return self._step_after(closure, original, optimizer)
            if self._count(optimizer):
                return original(optimizer, *args, **kwargs)
            if closure is None:
                return None
            with self.torch.enable_grad():
                return closure()

        return step

    def _step_after(self, closure, original, optimizer):
        decided = []

        def first_closure():
            loss = closure()
            decided.append(self._count(optimizer) if not decided else True)
            if not decided[0]:
                raise _PartialStep(loss)
            return loss

        try:
            return original(optimizer, first_closure)
        except _PartialStep as partial:
            return partial.loss

    def _zero_grad(self, original):
        def zero_grad(optimizer, *args, **kwargs):
            return None if self.has_begun(optimizer) else original(optimizer, *args, **kwargs)

        return zero_grad

    def _zero_grad_of_module(self, original):
        def zero_grad(module, *args, **kwargs):
            owner = self._owner(module.parameters())
            return None if owner is not None and self.has_begun(owner) else original(module, *args, **kwargs)

        return zero_grad

    def _owner(self, parameters):
        """The optimizer of the first of some parameters that has one."""
        parameters = [parameters] if isinstance(parameters, self.torch.Tensor) else parameters
        for parameter in parameters:
            owner = self.owners.get(id(parameter), lambda: None)()
            if owner is not None:
                return owner
        return None

    def _scaler(self, name, unless):
        def wrapper_of(original):
            def function(scaler, *args, **kwargs):
                if not self.is_on or not scaler.is_enabled():
                    return original(scaler, *args, **kwargs)
                if name != "step":
                    of_step = args[:1] if name == "unscale_" else ()
                    return None if unless(*of_step) else original(scaler, *args, **kwargs)
                if not self._count(args[0]):
                    return None
                self.is_in_scaler = True
                try:
                    return original(scaler, *args, **kwargs)
                finally:
                    self.is_in_scaler = False

            return function

        return wrapper_of

    def _clip_norm(self, original):
        def clip_grad_norm_(parameters, max_norm, *args, **kwargs):
            parameters = [parameters] if isinstance(parameters, self.torch.Tensor) else list(parameters)
            owner = self._owner(parameters)
            if owner is not None and self.is_partial(owner):
                # Which returns the norm and multiplies by 1.
                max_norm = float("inf")
            return original(parameters, max_norm, *args, **kwargs)

        return clip_grad_norm_

    def _clip_value(self, original):
        def clip_grad_value_(parameters, *args, **kwargs):
            parameters = [parameters] if isinstance(parameters, self.torch.Tensor) else list(parameters)
            owner = self._owner(parameters)
            if owner is None or not self.is_partial(owner):
                original(parameters, *args, **kwargs)

        return clip_grad_value_


class _PartialStep(Exception):
    """Leaves a step after its closure."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss


class _SplitLoaders:
    """DataLoaders, which are made with a smaller batch size."""

    def __init__(self, torch, parts):
        self.parts = parts
        # The batch size of the loader that was iterated last, and why there is none.
        self.size = None
        self.reason = "no DataLoader with a batch size"
        self.sizes = weakref.WeakKeyDictionary()
        # The size of the parts of each dataset, by its address: frameworks make loaders again from their attributes.
        self.of_datasets = {}
        self.length_was_read = False
        loader = torch.utils.data.DataLoader
        wrap(loader, "__init__", self._init)
        wrap(loader, "__iter__", self._iter)
        wrap(loader, "__len__", self._len)

    def _init(self, original):
        def init(loader, dataset, batch_size=1, *args, **kwargs):
            size = batch_size
            if kwargs.get("batch_sampler") is not None or len(args) > 2 and args[2] is not None:
                size = self._size_of_sampler(kwargs.get("batch_sampler"))
            elif batch_size is not None and self.of_datasets.get(id(dataset)) == batch_size:
                size = batch_size * self.parts
            elif batch_size is not None and batch_size % self.parts == 0:
                batch_size //= self.parts
                self.of_datasets[id(dataset)] = batch_size
            elif batch_size is not None:
                self.reason = f"a batch size of {batch_size} cannot be divided by {self.parts}"
                size = None
            original(loader, dataset, batch_size, *args, **kwargs)
            if size is not None:
                self.sizes[loader] = size
                if loader.batch_sampler is not None:
                    self.sizes[loader.batch_sampler] = size

        return init

    def _size_of_sampler(self, sampler):
        """The batch size of a loader that has been made with the batch sampler of another, as by accelerate."""
        while sampler is not None:
            if sampler in self.sizes:
                return self.sizes[sampler]
            sampler = getattr(sampler, "batch_sampler", None)
        self.reason = "the DataLoader has a batch sampler"
        return None

    def _iter(self, original):
        def iterate(loader):
            self.size = self.sizes.get(loader)
            return original(loader)

        return iterate

    def _len(self, original):
        def length(loader):
            if loader in self.sizes:
                self.length_was_read = True
            return original(loader)

        return length


class _Schedulers:
    """Schedulers of the learning rate that are stepped once per iteration take effect once per batch.

    Those that are stepped once per epoch are left alone, and so are those that were made after the script had asked for
    the length of a loader: it counts parts, and most probably so does the schedule.
    """

    def __init__(self, torch, loop):
        self.loop = loop
        # The calls of steps of optimizers by scheduler, since its own.
        self.calls = weakref.WeakKeyDictionary()
        self.counts_parts = weakref.WeakKeyDictionary()
        self.is_inside = False
        module = torch.optim.lr_scheduler
        kinds = {id(kind): kind for kind in vars(module).values() if isinstance(kind, type)}
        for kind in kinds.values():
            if "step" in vars(kind) and kind.__module__ == module.__name__:
                wrap(kind, "step", self._step)

    def stepped(self):
        """Notes the step of an optimizer."""
        for scheduler in list(self.calls):
            self.calls[scheduler] += 1

    def _step(self, original):
        def step(scheduler, *args, **kwargs):
            if self.is_inside:
                return original(scheduler, *args, **kwargs)
            if self._is_skipped(scheduler):
                return None
            self.is_inside = True
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self.is_inside = False

        return step

    def _is_skipped(self, scheduler):
        # Constructors make a first step.
        counts_parts = self.counts_parts.setdefault(scheduler, self.loop.loaders.length_was_read)
        calls = self.calls.get(scheduler, 0)
        self.calls[scheduler] = 0
        optimizer = getattr(scheduler, "optimizer", None)
        return calls == 1 and not counts_parts and optimizer is not None and self.loop.has_begun(optimizer)
