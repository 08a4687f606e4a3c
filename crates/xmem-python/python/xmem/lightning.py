"""The callback for the Trainer of Lightning: predict the memory of a training before its first step.

```python
from lightning.pytorch import Trainer
from xmem.lightning import MemoryCallback

Trainer(callbacks=[MemoryCallback()]).fit(module, loader)
```
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from ._callback import Memory, Predicting
from ._step import Step, loss_in

__all__ = ["MemoryCallback"]

_AUTOCAST = {"16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}


class MemoryCallback(Predicting, Callback):
    """Predict whether a training fits, at its first batch, and log the prediction beside what the GPU needed.

    `device` is a name of `xmem.devices()`; without one, it is the GPU that is there. If the training does not fit,
    `on_misfit="warn"` warns (`xmem.NotFittingWarning`), and `on_misfit="raise"` raises `xmem.NotFittingError`. After
    `steps` steps of the optimizer, predicted and measured peaks are logged, in bytes, to all loggers of the Trainer.
    `options` are those of `xmem.fits` for a model, such as `max="20GiB"` or `by="graph"`.

    The prediction is that of `training_step` with the first batch, and of one process; later batches may be larger. It
    takes seconds, computes nothing, and leaves the module as it is. Manual optimization, several optimizers, and shards of
    FSDP and DeepSpeed are not predicted, and a warning says so.

    Raises `ValueError` for another `on_misfit`.
    """

    def __init__(
        self, device: Optional[str] = None, *, on_misfit: str = "warn", steps: int = 3, **options: Any
    ) -> None:
        self._memory = Memory(device, on_misfit, steps, options)
        self._is_predicted = False
        self._is_logged = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Wait for the first batch."""
        self._is_predicted = self._is_logged = False

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Predict at the first batch."""
        if self._is_predicted or not trainer.is_global_zero:
            return
        self._is_predicted = True
        reason = _unlike(trainer, pl_module)
        if reason is not None:
            self._memory.leave(reason)
            return
        self._memory.predict(
            Step(
                pl_module,
                batch,
                _forward,
                trainer.optimizers[0],
                _AUTOCAST.get(str(trainer.precision)),
                accumulation=trainer.accumulate_grad_batches,
                clip_grad=bool(trainer.gradient_clip_val),
                # Lightning clears gradients in the closure of the step, after the forward pass.
                late_zero_grad=True,
            )
        )

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the figures after the first steps."""
        if trainer.global_step >= self._memory.steps:
            self._log(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the figures of a training that was shorter."""
        self._log(trainer)

    def _log(self, trainer: Trainer) -> None:
        if self._is_logged or not trainer.is_global_zero:
            return
        self._is_logged = True
        figures: Dict[str, float] = dict(self._memory.compare())
        for logger in trainer.loggers if figures else ():
            logger.log_metrics(figures, step=trainer.global_step)


def _unlike(trainer: Trainer, module: LightningModule) -> Optional[str]:
    """Return why a training is unlike what can be predicted."""
    strategy = type(trainer.strategy).__name__
    if any(word in strategy for word in ("FSDP", "DeepSpeed", "ModelParallel")):
        return f"it shards its model ({strategy}); `xmem profile` records such a job"
    if not module.automatic_optimization:
        return "it optimizes by itself (automatic_optimization=False)"
    return None if len(trainer.optimizers) == 1 else f"it has {len(trainer.optimizers)} optimizers"


def _forward(module: Any, batch: Any) -> Any:
    return loss_in(module.training_step(batch, 0))
