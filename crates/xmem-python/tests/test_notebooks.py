"""The notebooks of the documentation run, and show the results that are kept in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List

import pytest
from conftest import REPOSITORY

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = REPOSITORY / "docs" / "notebooks"


def _printed(notebook: Any) -> List[List[str]]:
    """The text of the results of each cell; what is drawn as HTML is left out, and so are messages."""
    cells: List[List[str]] = []
    for cell in notebook.cells:
        outputs = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
        cells.append([one.get("text") or one.get("data", {}).get("text/plain", "") for one in outputs])
    return cells


@pytest.mark.parametrize("name", ["answer", "paper", pytest.param("record", marks=pytest.mark.torch)])
def test_a_notebook_shows_what_it_prints(name: str, tmp_path: Path) -> None:
    path = NOTEBOOKS / f"{name}.ipynb"
    kept = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(REPOSITORY)}}).execute()
    if os.environ.get("UPDATE_EXPECT") == "1":
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)
    else:
        assert _printed(notebook) == _printed(kept)
