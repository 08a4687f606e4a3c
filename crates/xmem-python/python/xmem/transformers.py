"""The callback for the Trainer of transformers: predict the memory of a training before its first step.

```python
from transformers import Trainer, TrainingArguments
from xmem.transformers import MemoryCallback

trainer = Trainer(model, TrainingArguments("out"), train_dataset=dataset, callbacks=[MemoryCallback()])
trainer.train()
```
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ._callback import Memory, Predicting
from ._step import Step, loss_in

__all__ = ["MemoryCallback"]


class MemoryCallback(Predicting, TrainerCallback):
    """Predict whether a training fits, at its first batch, and log the prediction beside what the GPU needed.

    `device` is a name of `xmem.devices()`; without one, it is the GPU that is there. If the training does not fit,
    `on_misfit="warn"` warns (`xmem.NotFittingWarning`), and `on_misfit="raise"` raises `xmem.NotFittingError`. After
    `steps` steps of the optimizer, predicted and measured peaks are logged, in bytes, through the Trainer: to its
    history, the console, TensorBoard, Weights & Biases, MLflow and whatever else it reports to. `options` are those of
    `xmem.fits` for a model, such as `max="20GiB"` or `by="graph"`.

    The prediction is that of the first batch and of one process; later batches may be larger. It takes seconds, computes
    nothing, and leaves the model as it is. Shards of FSDP and DeepSpeed are not predicted, and a warning says so.

    Raises `ValueError` for another `on_misfit`.
    """

    def __init__(
        self, device: Optional[str] = None, *, on_misfit: str = "warn", steps: int = 3, **options: Any
    ) -> None:
        self._memory = Memory(device, on_misfit, steps, options)
        self._hook: Any = None
        self._is_logged = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Wait for the first batch."""
        self._is_logged = False
        model, optimizer = kwargs.get("model"), kwargs.get("optimizer")
        if not state.is_world_process_zero or model is None:
            return
        reason = _unlike(args, optimizer)
        if reason is not None:
            self._memory.leave(reason)
            return
        # The optimizer of accelerate has that of PyTorch in it.
        optimizer = getattr(optimizer, "optimizer", optimizer)

        def look(module: torch.nn.Module, positional: Any, keywords: Any) -> None:
            if module.training:
                self._hook.remove()
                self._memory.predict(_step(module, positional, keywords, optimizer, args))

        self._hook = model.register_forward_pre_hook(look, with_kwargs=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the figures after the first steps."""
        if self._is_logged or state.global_step < self._memory.steps or not state.is_world_process_zero:
            return
        self._is_logged = True
        figures = self._memory.compare()
        if figures:
            _log(self, args, state, control, figures)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the figures of a training that was shorter, and let go of the model."""
        if self._hook is not None:
            self._hook.remove()
        self._memory.steps, steps = 0, self._memory.steps
        self.on_step_end(args, state, control)
        self._memory.steps = steps


def _unlike(args: TrainingArguments, optimizer: Any) -> Optional[str]:
    """Return why a training is unlike what can be predicted."""
    if getattr(args, "deepspeed", None) or getattr(args, "fsdp", None):
        return "it shards its model (FSDP or DeepSpeed); `xmem profile` records such a job"
    if args.n_gpu > 1:
        return "torch.nn.DataParallel runs it on several GPUs"
    return None if optimizer is not None else "it has no optimizer yet"


def _step(module: torch.nn.Module, positional: Any, keywords: Any, optimizer: Any, args: TrainingArguments) -> Step:
    # The forward of accelerate enters autocast itself.
    is_wrapped = "_original_forward" in vars(module)
    dtype = None if is_wrapped else torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None
    batch = _Call(tuple(positional), dict(keywords))
    return Step(
        module,
        batch,
        _forward,
        optimizer,
        dtype,
        accumulation=args.gradient_accumulation_steps,
        clip_grad=bool(args.max_grad_norm),
    )


class _Call:
    def __init__(self, positional: Any, keywords: Dict[str, Any]) -> None:
        self.positional = positional
        self.keywords = keywords


def _forward(model: Any, batch: _Call) -> Any:
    return loss_in(model(*batch.positional, **batch.keywords))


def _log(
    callback: TrainerCallback, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Dict[str, int]
) -> None:
    """Log as the Trainer does: to its history, and to all callbacks, which a callback is not told; they called this one."""
    state.log_history.append({**logs, "step": state.global_step})
    frame: Any = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if callback in (getattr(caller, "callbacks", None) or ()) and hasattr(caller, "on_log"):
            caller.on_log(args, state, control, dict(logs))
            return
        frame = frame.f_back
