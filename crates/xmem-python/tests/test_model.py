"""`xmem.fits` for a model in hand: the answer, what it is about, and that the model stays as it is."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Dict

import pytest

import xmem
from conftest import HAS_TORCH

if not HAS_TORCH:
    pytest.skip("PyTorch is not installed", allow_module_level=True)

import torch
from torch import nn

GIB = 1 << 30
WIDTH = 1024
# Weights and biases of the network below, in bytes.
WEIGHTS = 4 * (WIDTH * WIDTH + WIDTH + WIDTH * 10 + 10)


class Doubled(torch.autograd.Function):
    """A derivative of its own, which a graph does not show."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        """Keep the input, and double it."""
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        """Double the gradient."""
        return gradients[0] * 2


class Own(nn.Module):
    """A model with a derivative of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        result: torch.Tensor = Doubled.apply(self.layer(value))
        return result.sum()


def network() -> nn.Sequential:
    """Return a small network."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH, affine=False), nn.Dropout(), nn.Linear(WIDTH, 10))


def batch(size: int = 64) -> "tuple[torch.Tensor, torch.Tensor]":
    """Return inputs and targets."""
    return torch.randn(size, WIDTH), torch.randint(10, (size,))


def ask(model: nn.Module, optimizer: Any = torch.optim.AdamW, **options: Any) -> xmem.Fits:
    """Ask about the training of a classifier on a T4."""
    return xmem.fits(model, batch(), optimizer, "t4-16g", loss=nn.CrossEntropyLoss(), **options)


def state(model: nn.Module) -> Dict[str, Any]:
    """Return all that could change in a model: tensors by identity, version and value, gradients, modes, hooks."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {
        "tensors": {name: (id(one), one._version, one.tolist()) for name, one in tensors.items()},
        "gradients": {name: None if one.grad is None else one.grad.tolist() for name, one in model.named_parameters()},
        "modules": {
            name: (part.training, sorted(vars(part)), len(part._forward_hooks)) for name, part in model.named_modules()
        },
    }


@pytest.mark.parametrize("by", ["graph", "record"])
def test_the_model_stays_as_it_is(by: str) -> None:
    model = network()
    model[2].eval()
    optimizer = torch.optim.AdamW(model.parameters())
    model(batch()[0]).sum().backward()
    optimizer.step()
    before, of_optimizer = state(model), repr(optimizer.state_dict())
    torch.manual_seed(5)
    random.seed(5)
    given = batch()
    values = [one.tolist() for one in given]
    expected = torch.get_rng_state(), random.getstate(), torch.is_grad_enabled(), torch.utils.checkpoint.checkpoint
    answer = xmem.fits(model, given, optimizer, "t4-16g", loss=nn.CrossEntropyLoss(), by=by)
    found = torch.get_rng_state(), random.getstate(), torch.is_grad_enabled(), torch.utils.checkpoint.checkpoint
    assert answer and state(model) == before and repr(optimizer.state_dict()) == of_optimizer
    assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]
    assert [one.tolist() for one in given] == values
    cuda: Any = torch.cuda
    assert not cuda.is_initialized()


def test_the_parts_are_those_of_the_job() -> None:
    roles = ask(network()).replay.by_role
    assert roles["parameter"] == pytest.approx(WEIGHTS, abs=2048)
    assert roles["optimizer_state"] == pytest.approx(2 * WEIGHTS, abs=8192)
    without_state = ask(network(), torch.optim.SGD).replay.by_role
    assert without_state["optimizer_state"] == 0
    inference = xmem.fits(network(), batch()[0], device="t4-16g", inference=True).replay.by_role
    assert inference["gradient"] == inference["optimizer_state"] == 0


CASES: Dict[str, Dict[str, Any]] = {
    "momentum": {"optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.9)},
    "a function": {"optimizer": lambda parameters: torch.optim.AdamW(list(parameters)[:2], fused=True)},
    "fp16": {"autocast": torch.float16},
    "a loop": {"accumulation": 2, "clip_grad": True},
}


@pytest.mark.parametrize("name", CASES)
def test_graph_and_recording_agree(name: str) -> None:
    graph, recorded = (ask(network(), by=by, **CASES[name]).replay for by in ("graph", "record"))
    assert graph.peak_reserved_bytes == pytest.approx(recorded.peak_reserved_bytes, rel=0.1)
    assert graph.peak_allocated_bytes == pytest.approx(recorded.peak_allocated_bytes, rel=0.02)
    assert graph.by_role["parameter"] == recorded.by_role["parameter"]
    assert graph.by_role["optimizer_state"] == recorded.by_role["optimizer_state"]


def test_an_optimizer_in_hand_is_that_of_its_groups() -> None:
    model = network()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    trained = [one for one in model.parameters() if one.requires_grad]
    answer = ask(model, torch.optim.Adam(trained, amsgrad=True)).replay
    assert answer.by_role["optimizer_state"] == pytest.approx(3 * 4 * (WIDTH * 10 + 10), abs=4096)


def test_a_model_without_data_is_looked_at_as_well() -> None:
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(32768, 32768, bias=False) for _ in range(8)))
    given = torch.empty(8, 32768), torch.empty(8, 32768)
    answer = xmem.fits(model, given, torch.optim.AdamW, "h100-80g", loss=nn.MSELoss())
    assert not answer and answer.need_bytes is not None and answer.need_bytes > 4 * 8 * 4 * GIB
    assert not answer.recording.replay("h200-141g").fits


def test_checkpoints_and_tied_weights_are_followed() -> None:
    class Deep(nn.Module):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Linear(256, 4096), nn.GELU(), nn.Linear(4096, 256)) for _ in range(8)
            )
            self.layers[1] = self.layers[0]
            self.again = again

        def forward(self, value: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                if self.again:
                    value = torch.utils.checkpoint.checkpoint(layer, value, use_reentrant=False)
                else:
                    value = layer(value)
            return value.sum()

    plain, again = (
        xmem.fits(Deep(again), torch.randn(2048, 256), torch.optim.SGD, "t4-16g", by="graph").replay
        for again in (False, True)
    )
    assert plain.by_role["parameter"] == again.by_role["parameter"]
    assert plain.by_role["parameter"] == pytest.approx(7 * 4 * (2 * 256 * 4096 + 4096 + 256), rel=0.01)
    # Each of eight layers keeps two activations of this size, but for the one that is computed again.
    assert plain.peak_allocated_bytes - again.peak_allocated_bytes > 10 * 4 * 2048 * 4096


def test_what_a_graph_does_not_show_is_recorded() -> None:
    inputs = torch.randn(16, WIDTH)
    with pytest.raises(xmem.ModelError, match="Doubled"):
        xmem.fits(Own(), inputs, torch.optim.SGD, "t4-16g", by="graph")
    assert xmem.fits(Own(), inputs, torch.optim.SGD, "t4-16g")

    class Local(Own):
        pass

    with pytest.raises(xmem.ModelError, match="Doubled.*, and another process cannot have it"):
        xmem.fits(Local(), inputs, torch.optim.SGD, "t4-16g")


def test_a_class_of_a_script_is_known_in_the_other_process(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import torch, xmem\n"
        "class Net(torch.nn.Linear):\n"
        "    def forward(self, value):\n"
        "        return super().forward(value).sum()\n"
        "if __name__ == '__main__':\n"
        "    print(bool(xmem.fits(Net(64, 64), torch.randn(2, 64), torch.optim.SGD, 't4-16g', by='record')))\n"
    )
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"True\n"


def test_wrong_questions_say_what_is_wrong() -> None:
    model, inputs = network(), batch()
    with pytest.raises(TypeError, match="give an `optimizer`, or `inference=True`"):
        xmem.fits(model, inputs)
    with pytest.raises(TypeError, match="is no loss"):
        xmem.fits(model, inputs[0], torch.optim.SGD, "t4-16g")
    with pytest.raises(TypeError, match="is a pair"):
        xmem.fits(model, inputs[0], torch.optim.SGD, "t4-16g", loss=nn.CrossEntropyLoss())
    with pytest.raises(TypeError, match="not of this model"):
        ask(model, torch.optim.SGD(network().parameters()))
    with pytest.raises(TypeError, match="torch.optim.AdamW"):
        ask(model, "adamw")
    with pytest.raises(xmem.UsageError, match="unknown device"):
        xmem.fits(model, inputs, torch.optim.SGD, "t5", loss=nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="auto, graph or record"):
        ask(model, by="hand")
    assert not ask(model, max="10MiB")
