"""Everything public is documented, the examples in the documentation run, and types hold under `mypy --strict`."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

import reference
import xmem
from conftest import HAS_TORCH
from test_guide import blocks

PACKAGE = Path(xmem.__file__).parent
MODULES = sorted(
    "xmem." + module.name for module in pkgutil.iter_modules([str(PACKAGE)]) if module.name != "__main__"
)

# Modules for packages that need not be there.
INTEGRATIONS = ("xmem.lightning", "xmem.transformers")


def _is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in decorators)


def _constants(body: List[ast.stmt], exported: List[str], place: str) -> Iterator[str]:
    """Yield the exported values of a module that no text follows."""
    for node, after in zip(body, [*body[1:], None]):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for target in targets:
            if isinstance(target, ast.Name) and target.id in exported and not is_text:
                yield f"{place}.{target.id}"


def _undocumented(body: List[ast.stmt], place: str) -> Iterator[str]:
    for at, node in enumerate(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if not _is_overload(node) and ast.get_docstring(node) is None:
                yield f"{place}.{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from _undocumented(node.body, f"{place}.{node.name}")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and ".Ran" not in place:
            after = body[at + 1] if at + 1 < len(body) else None
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if node.simple and place.count(".") > 1 and not is_text and not place.split(".")[-1].startswith("_"):
                yield f"{place}.{node.target.id}"


def _exported(tree: ast.Module) -> List[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def test_everything_public_is_documented() -> None:
    missing: List[str] = []
    for path in sorted(PACKAGE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if ast.get_docstring(tree) is None:
            missing.append(path.name)
        missing += _undocumented(tree.body, f"xmem.{path.stem}")
        missing += _constants(tree.body, _exported(tree), f"xmem.{path.stem}")
    assert missing == []
    assert all(getattr(xmem, name).__doc__ for name in xmem.__all__)


@pytest.mark.parametrize("name", ["xmem", *MODULES])
def test_examples_of_the_documentation_run(name: str) -> None:
    if name in INTEGRATIONS:
        pytest.importorskip(name.partition(".")[2])
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS
    failed = 0
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        needs_torch = "import torch" in (test.docstring or "") or "xmem.record(" in (test.docstring or "")
        if test.examples and (HAS_TORCH or not needs_torch):
            failed += doctest.DocTestRunner(optionflags=flags).run(test).failed
    assert failed == 0


def test_types_hold_under_strict_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    project = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "python/xmem", "tests", str(_written(tmp_path / "guide"))],
        cwd=project,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()


def _written(folder: Path) -> Path:
    """Write the blocks of the guide's page as modules of a package, and return its folder."""
    folder.mkdir()
    (folder / "__init__.py").touch()
    count = 0
    for number, (language, text) in enumerate(blocks()):
        if language == "python" and not text.startswith("%"):
            count += 1
            imports = "" if "import xmem" in text else "import torch\nimport xmem\n"
            (folder / f"block_{number}.py").write_text(imports + text, encoding="utf-8")
    assert count >= 8
    return folder


def test_the_page_of_public_names_is_written_from_the_sources() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run python tests/reference.py"
    shown = set(re.findall(r"^## `(xmem\.\w+)`$", reference.page(), re.MULTILINE))
    assert {f"xmem.{name}" for name in xmem.__all__} <= shown
