"""The callbacks for the Trainers of transformers and of Lightning, on a CPU."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any, Dict, List

import pytest

import xmem
from conftest import HAS_TORCH
from xmem import _gpus

if not HAS_TORCH:
    pytest.skip("PyTorch is not installed", allow_module_level=True)

import torch

WIDTH = 1024
GPU = {"max_memory_reserved_bytes": 7, "max_memory_allocated_bytes": 5}
NAMES = {
    "max_memory_reserved_bytes", "max_memory_allocated_bytes", "predicted_reserved_bytes", "predicted_allocated_bytes",
    "predicted_need_bytes",
}


class Inputs(torch.utils.data.Dataset[Any]):
    """Rows of numbers."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Dict[str, torch.Tensor]:
        return {"value": torch.randn(WIDTH)}


def weights(answer: "xmem.Fits | None") -> int:
    """Return the bytes of the parameters in an answer."""
    assert answer is not None
    return answer.replay.by_role["parameter"]


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a GPU have these peaks: nothing is measured on a CPU."""
    monkeypatch.setattr(_gpus, "peaks", lambda: dict(GPU))


def trainer(folder: Path, callback: Any, **options: Any) -> Any:
    """Return a Trainer of transformers for a layer of 4 MiB."""
    transformers: Any = pytest.importorskip("transformers")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, value: torch.Tensor) -> Dict[str, torch.Tensor]:
            return {"loss": self.layer(value).pow(2).mean()}

    given = transformers.TrainingArguments(
        str(folder), max_steps=4, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no", **options
    )
    return transformers.Trainer(Model(), given, train_dataset=Inputs(), callbacks=[callback])


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize("options", [{}, {"bf16": True}, {"gradient_accumulation_steps": 2}], ids=str)
def test_transformers_logs_prediction_and_peaks(tmp_path: Path, options: Dict[str, Any]) -> None:
    transformers: Any = pytest.importorskip("transformers")
    from xmem.transformers import MemoryCallback

    told: List[Dict[str, Any]] = []

    class Reporter(transformers.TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            told.append(dict(logs))

    callback = MemoryCallback("t4-16g", steps=2)
    training = trainer(tmp_path, callback, **options)
    training.add_callback(Reporter())
    with warnings.catch_warnings():
        warnings.simplefilter("error", xmem.NotFittingWarning)
        training.train()
    assert callback.prediction and weights(callback.prediction) == 4 * (WIDTH * WIDTH + WIDTH)
    assert callback.prediction.replay.by_role["optimizer_state"] >= 2 * 4 * WIDTH * WIDTH
    logged = [logs for logs in told if "xmem/predicted_need_bytes" in logs]
    assert len(logged) == 1 and {name.replace("xmem/", "") for name in logged[0]} == NAMES == set(callback.figures)
    assert logged[0]["xmem/max_memory_reserved_bytes"] == 7
    kept = [entry for entry in training.state.log_history if "xmem/predicted_need_bytes" in entry]
    assert [entry["step"] for entry in kept] == [2]
    assert training.state.global_step == 4


def test_transformers_stops_or_warns(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from xmem.transformers import MemoryCallback

    stopped = trainer(tmp_path, MemoryCallback("t4-16g", on_misfit="raise", max="10MiB"))
    with pytest.raises(xmem.NotFittingError, match="does not fit: needs .*, limit 10.00 MiB"):
        stopped.train()
    assert stopped.state.global_step == 0
    warned = trainer(tmp_path, MemoryCallback(capacity="10MiB"))
    with pytest.warns(xmem.NotFittingWarning, match="does not fit"):
        warned.train()
    assert warned.state.global_step == 4
    with pytest.raises(ValueError, match="warn or raise"):
        MemoryCallback(on_misfit="stop")


def test_without_a_gpu_or_an_answer_the_training_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from xmem.transformers import MemoryCallback

    if not torch.cuda.is_available():
        training = trainer(tmp_path, MemoryCallback(on_misfit="raise"))
        with pytest.warns(xmem.NotFittingWarning, match="there is no GPU"):
            training.train()
        assert training.state.global_step == 4
    unknown = MemoryCallback("no-such-card", on_misfit="raise")
    training = trainer(tmp_path, unknown)
    with pytest.warns(xmem.NotFittingWarning, match="unknown device"):
        training.train()
    assert training.state.global_step == 4 and unknown.prediction is None and unknown.figures.keys() <= GPU.keys()


def test_a_training_that_is_recorded_is_not_looked_at(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, transformers\n"
        "from xmem.transformers import MemoryCallback\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(1024, 1024)\n"
        "    def forward(self, value):\n"
        "        return {'loss': self.layer(value).pow(2).mean()}\n"
        "options = transformers.TrainingArguments('out', max_steps=3, report_to=[], disable_tqdm=True, save_strategy='no')\n"
        "callback = MemoryCallback('t4-16g', on_misfit='raise', max='1MiB')\n"
        "rows = [{'value': torch.randn(1024)} for _ in range(32)]\n"
        "transformers.Trainer(Model(), options, train_dataset=rows, callbacks=[callback]).train()\n"
        "print('prediction', callback.prediction)\n"
    )
    recording = xmem.record(script, device="t4-16g", cwd=tmp_path)
    assert recording.replay().fits and "prediction None" in recording.stdout


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize("options", [{}, {"precision": "bf16-mixed", "accumulate_grad_batches": 2}], ids=str)
def test_lightning_logs_prediction_and_peaks(tmp_path: Path, options: Dict[str, Any]) -> None:
    lightning: Any = _lightning()
    from xmem.lightning import MemoryCallback

    told: List[Any] = []

    class Logger(lightning.loggers.CSVLogger):
        def log_metrics(self, metrics: Any, step: Any = None) -> None:
            told.append((step, dict(metrics)))

    callback = MemoryCallback("t4-16g", steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xmem.NotFittingWarning)
        _fit(lightning, callback, logger=Logger(tmp_path), **options)
    assert callback.prediction and weights(callback.prediction) == 4 * (WIDTH * WIDTH + WIDTH)
    logged = [(step, logs) for step, logs in told if "xmem/predicted_need_bytes" in logs]
    assert len(logged) == 1 and logged[0][0] == 2 and len(logged[0][1]) == len(NAMES)


def test_lightning_stops() -> None:
    lightning: Any = _lightning()
    from xmem.lightning import MemoryCallback

    with pytest.raises(xmem.NotFittingError, match="limit 10.00 MiB"):
        _fit(lightning, MemoryCallback("t4-16g", on_misfit="raise", max="10MiB"), logger=False)


def _lightning() -> Any:
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    import lightning.pytorch

    return lightning.pytorch


def _fit(lightning: Any, callback: Any, **options: Any) -> None:
    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)

        def training_step(self, batch: Any, number: int) -> Any:
            loss = self.layer(batch["value"]).pow(2).mean() * torch.ones((), device=self.device)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    training = lightning.Trainer(
        max_steps=4, accelerator="cpu", callbacks=[callback], enable_progress_bar=False, enable_checkpointing=False,
        enable_model_summary=False, **options
    )
    training.fit(Module(), torch.utils.data.DataLoader(Inputs(), batch_size=8))
    assert training.global_step == 4
