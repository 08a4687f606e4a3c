"""Where the tests are run: in the repository, with the program that `XMEM_PROGRAM` names or that is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import List

import pytest

pytest_plugins = ["pytester"]

REPOSITORY = Path(__file__).resolve().parents[3]
HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests that record."""
    config.addinivalue_line("markers", "torch: records with PyTorch")


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Skip tests that record where there is no PyTorch."""
    for item in items:
        if item.get_closest_marker("torch") and not HAS_TORCH:
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Make the repository the folder of a test, unless it runs tests of its own."""
    if "pytester" not in request.fixturenames:
        monkeypatch.chdir(REPOSITORY)
