"""The page of the public names of the package, from their signatures and docstrings: `python tests/reference.py` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator, List, Optional, Union

import griffe

SOURCES = Path(__file__).resolve().parent.parent / "python"
PAGE = Path(__file__).resolve().parents[3] / "docs/reference/python.md"

HEAD = """\
# Python package

The public names of `xmem` ([guide](../guide/python.md)). This page is generated from the docstrings of the package;
`crates/xmem-python/tests/reference.py` writes it. All sizes are bytes. Names that begin with `_` are private.
"""

# Behind `xmem`, in this order: modules for other packages.
MODULES = ("transformers", "lightning")

# A module whose names are those of pytest, and whose text says how it is used.
PLUGIN = "pytest_plugin"

# Classes whose objects users make; those of the others come from functions.
MADE_BY_USERS = ("recording", "MemoryCallback")

# What other packages call.
HOOK = "on_"


def _text(docstring: Optional[griffe.Docstring]) -> str:
    """Return a docstring with its examples in fences."""
    lines: List[str] = []
    is_example = False
    for line in (docstring.value if docstring else "").splitlines():
        begins = line.startswith(">>> ")
        if begins and not is_example:
            lines.append("```python")
        elif is_example and not line.strip():
            lines.append("```")
        is_example = begins or (is_example and bool(line.strip()))
        lines.append(line)
    return "\n".join([*lines, "```"] if is_example else lines)


def _parameter(parameter: griffe.Parameter) -> str:
    is_many = parameter.kind is griffe.ParameterKind.var_positional
    stars = "*" if is_many else "**" if parameter.kind is griffe.ParameterKind.var_keyword else ""
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not None:
        text += f": {parameter.annotation}"
    if parameter.default is not None and not stars:
        text += f" = {parameter.default}" if parameter.annotation is not None else f"={parameter.default}"
    return text


def _signature(function: griffe.Function, name: str) -> str:
    parts: List[str] = []
    for parameter in function.parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is griffe.ParameterKind.keyword_only and "*" not in parts and not any(
            part.startswith("*") for part in parts
        ):
            parts.append("*")
        parts.append(_parameter(parameter))
    returns = f" -> {function.returns}" if function.returns is not None else ""
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _code(text: str) -> List[str]:
    return ["```py", text, "```", ""]


def _functions(function: griffe.Function, name: str) -> List[str]:
    """Return the signatures of a function, or of its overloads, and its text."""
    # The overloads of a function lie in its module or class.
    overloads = getattr(function.parent, "overloads", {}).get(function.name) or [function]
    return [*_code("\n".join(_signature(one, name) for one in overloads)), _text(function.docstring), ""]


def _members(owner: griffe.Class) -> Iterator[griffe.Object]:
    for name, member in owner.members.items():
        if not name.startswith(("_", HOOK)) and member.docstring is not None:
            yield member  # type: ignore[misc]


def _class(owner: griffe.Class, name: str) -> List[str]:
    bases = f"({', '.join(str(base) for base in owner.bases)})" if owner.bases else ""
    made = owner.members.get("__init__")
    head = f"class {name}{bases}"
    if isinstance(made, griffe.Function) and name in MADE_BY_USERS:
        head += "\n\n" + _signature(made, name).split(" -> ")[0]
    lines = [*_code(head), _text(owner.docstring), ""]
    attributes = [member for member in _members(owner) if not member.is_function]
    if attributes:
        lines += ["| attribute | type | |", "|---|---|---|"]
        for member in attributes:
            text = re.sub(r"\s+", " ", member.docstring.value if member.docstring else "").replace("|", "\\|")
            annotation = str(getattr(member, "annotation", "") or "").replace("|", "\\|")
            lines.append(f"| `{member.name}` | `{annotation}` | {text} |")
        lines.append("")
    for member in _members(owner):
        if isinstance(member, griffe.Function):
            lines += _functions(member, f"{name}.{member.name}")
    return lines


def _object(given: Union[griffe.Object, griffe.Alias], name: str) -> List[str]:
    found = given.final_target if isinstance(given, griffe.Alias) else given
    lines = [f"## `{name}`", ""]
    if isinstance(found, griffe.Class):
        return lines + _class(found, name.rsplit(".", 1)[-1])
    if isinstance(found, griffe.Function):
        return lines + _functions(found, name)
    raise TypeError(f"{name} is neither a class nor a function")


def page() -> str:
    """Return the text of the page."""
    package = griffe.load("xmem", search_paths=[str(SOURCES)])
    names = [str(name) for name in package.exports or []]
    lines = [HEAD]
    for name in sorted(names, key=lambda name: (name[0].isupper(), name)):
        lines += _object(package[name], f"xmem.{name}")
    for module in MODULES:
        found = package[module]
        for name in found.exports or []:
            lines += _object(found[str(name)], f"xmem.{module}.{name}")
    lines += [f"## `xmem.{PLUGIN}`", "", _text(package[PLUGIN].docstring), ""]
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
