"""What the callbacks for training loops have in common: the prediction, and what is logged of it."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any, Dict, Optional

from . import _gpus
from ._errors import NotFittingError, NotFittingWarning, XmemError
from ._fits import Fits, of_step
from ._step import Step, StepError

__all__ = ["Memory", "Predicting"]

_LOG = logging.getLogger("xmem")


class Memory:
    """The prediction of a training, and its comparison with the GPU."""

    def __init__(self, device: Optional[str], on_misfit: str, steps: int, options: Dict[str, Any]) -> None:
        if on_misfit not in ("warn", "raise"):
            raise ValueError(f"`on_misfit` is warn or raise, not `{on_misfit}`")
        if steps < 1:
            raise ValueError("`steps` is 1 or more")
        self.device = device
        self.is_strict = on_misfit == "raise"
        self.steps = steps
        self.options = options
        self.answer: Optional[Fits] = None
        self.figures: Dict[str, int] = {}

    def predict(self, step: Step) -> None:
        """Predict, and warn or raise `xmem.NotFittingError`. What cannot be predicted never stops a training."""
        if "XMEM_RECORDER" in os.environ:
            _LOG.info("this training is being recorded by xmem: it is not looked at from within")
            return
        options = dict(self.options)
        device = self.device
        if device is None and not {"capacity", "device_file"} & set(options):
            found = _gpus.here()
            if found is None:
                self.leave("there is no GPU: name one (`device=`)")
                return
            options.update(found)
            device = options.pop("device", None)
        try:
            self.answer = of_step(step, device, options.pop("by", "auto"), options.pop("max", None), **options)
        except (XmemError, StepError) as error:
            self.leave(str(error))
            return
        if self.answer:
            _LOG.info("the training fits: %s", self.answer.reason)
        elif self.answer.need_bytes is None:
            self.leave(self.answer.reason)
        elif self.is_strict:
            raise NotFittingError(f"the training does not fit: {self.answer.reason}", 1)
        else:
            warnings.warn(f"the training does not fit: {self.answer.reason}", NotFittingWarning, stacklevel=3)

    def leave(self, reason: str) -> None:
        """Say why there is no prediction."""
        warnings.warn(f"the memory of this training is not predicted: {reason}", NotFittingWarning, stacklevel=3)

    def compare(self) -> Dict[str, int]:
        """Return what is logged: the prediction beside the peaks of the GPU so far, in bytes."""
        figures = _gpus.peaks()
        if self.answer is not None:
            answer = self.answer.replay
            figures["predicted_reserved_bytes"] = answer.peak_reserved_bytes
            figures["predicted_allocated_bytes"] = answer.peak_allocated_bytes
            if answer.need_bytes is not None:
                figures["predicted_need_bytes"] = answer.need_bytes
        self.figures = figures
        return {f"xmem/{name}": value for name, value in figures.items()}


class Predicting:
    """What the callbacks of all training loops show."""

    _memory: Memory
    """The prediction, and its comparison with the GPU."""

    @property
    def prediction(self) -> Optional[Fits]:
        """The answer of `xmem.fits`. `None` before the first batch, or if nothing could be predicted."""
        return self._memory.answer

    @property
    def figures(self) -> Dict[str, int]:
        """What was logged, in bytes: predicted and measured peaks. Empty before that."""
        return dict(self._memory.figures)
