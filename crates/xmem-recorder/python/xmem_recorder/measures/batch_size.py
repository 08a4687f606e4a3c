"""The batch size of the script's DataLoaders for training is another one.

For scripts without an option for it. An epoch has fewer or more iterations; learning rates stay as they are.
"""

import importlib
import weakref

from .common import Tally, wrap

NAME = "batch-size"
TITLE = "DataLoaders with a batch size of {option}"
CHANGES = "training"
NEEDS = ""
OPTION = "8"
CODE = "DataLoader(dataset, batch_size={option}, ...)"


def install(torch, option, report):
    """Sets the batch size of DataLoaders that shuffle or have an iterable dataset as they are made. Others are for
    evaluation, unless there are only such: then, of those that are iterated with gradients enabled as that begins."""
    _BatchSize(torch, int(option), report)


class _BatchSize:
    """What is known of the loaders of the script."""

    def __init__(self, torch, size, report):
        self.torch = torch
        self.size = size
        self.report = report
        self.data = importlib.import_module("torch.utils.data")
        self.tally = Tally(report)
        self.is_changed = weakref.WeakSet()
        # Whether there is a loader that shuffles: then others are for evaluation.
        self.is_shuffled = False
        report(0, "no DataLoader with a batch size is iterated with gradients enabled")
        wrap(self.data.DataLoader, "__init__", self._init)
        wrap(self.data.DataLoader, "__iter__", self._iter)

    def _init(self, original):
        def init(loader, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, *args, **kwargs):
            is_iterable = isinstance(dataset, self.data.IterableDataset)
            is_drawn = sampler is not None and not isinstance(sampler, self.data.SequentialSampler)
            before = batch_size
            # Before the loader is made, so that other measures see it.
            is_changed = batch_sampler is None and batch_size is not None and (shuffle or is_drawn or is_iterable)
            if is_changed:
                batch_size = self.size
            original(loader, dataset, batch_size, shuffle, sampler, batch_sampler, *args, **kwargs)
            if is_changed:
                self.is_shuffled = True
                if loader.batch_sampler is not None:
                    self.is_changed.add(loader.batch_sampler)
                self.tally.add(f"DataLoader (batch size {before})")
            elif not isinstance(getattr(batch_sampler, "sampler", None), (type(None), self.data.SequentialSampler)):
                self.is_shuffled = True
                self._change(loader)

        return init

    def _iter(self, original):
        def iterate(loader):
            if not self.is_shuffled and self.torch.is_grad_enabled():
                self._change(loader)
            return original(loader)

        return iterate

    def _change(self, loader):
        sampler = loader.batch_sampler
        before = getattr(sampler, "batch_size", None)
        if not isinstance(before, int):
            if not self.tally.counts:
                self.report(0, "the DataLoader has no batch size: the script makes batches by itself")
            return
        # As the loader that another one was made from, with its batch sampler.
        is_new = sampler not in self.is_changed
        self.is_changed.add(sampler)
        sampler.batch_size = self.size
        # Not by setattr, which a DataLoader refuses.
        loader.__dict__["batch_size"] = self.size
        if is_new:
            self.tally.add(f"DataLoader (batch size {before})")
