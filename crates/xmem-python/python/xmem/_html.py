"""An answer as a piece of HTML for notebooks: verdict, memory by role, memory over time. It needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Any, List, Mapping, Sequence

from ._sizes import show_size

__all__ = ["replay"]

# The size of the picture over time, in its own units.
WIDTH = 600
HEIGHT = 110

STYLE = """
.xmem{--ink:#1f2328;--dim:#59636e;--rule:#d8dee4;--bar:#0072b2;--area:#56b4e9;--good:#1a7f37;--bad:#b42318;--open:#9a6700;
font:13px system-ui,sans-serif;color:var(--ink);max-width:46em}
@media(prefers-color-scheme:dark){.xmem{--ink:#e6edf3;--dim:#9198a1;--rule:#2a313c;--bar:#4ea3d3;--area:#2384c1;
--good:#3fb950;--bad:#ff7b72;--open:#d29922}}
[data-jp-theme-light="true"] .xmem{--ink:#1f2328;--dim:#59636e;--rule:#d8dee4;--bar:#0072b2;--area:#56b4e9;--good:#1a7f37;
--bad:#b42318;--open:#9a6700}
[data-jp-theme-light="false"] .xmem{--ink:#e6edf3;--dim:#9198a1;--rule:#2a313c;--bar:#4ea3d3;--area:#2384c1;--good:#3fb950;
--bad:#ff7b72;--open:#d29922}
.xmem b.fits{color:var(--good)}.xmem b.does_not_fit{color:var(--bad)}.xmem b.tight,.xmem b.no_verdict{color:var(--open)}
.xmem .row{display:flex;gap:.6em;align-items:center;margin:1px 0}.xmem .name{width:9em;color:var(--dim)}
.xmem .size{width:6.5em;text-align:right;font-variant-numeric:tabular-nums}.xmem .line{flex:1}
.xmem .bar{height:.7em;background:var(--bar);border-radius:2px;min-width:1px}
.xmem svg{display:block;width:100%;height:auto;margin-top:.6em}.xmem text{fill:var(--dim);font-size:10px}
.xmem .area{fill:var(--area);fill-opacity:.55}.xmem .reserved{fill:none;stroke:var(--ink);stroke-width:1}
.xmem .limit{stroke:var(--bad);stroke-dasharray:4 3}.xmem .start{stroke:var(--rule)}
""".strip().replace("\n", "")

WORDS = {"fits": "FITS", "tight": "TIGHT", "does_not_fit": "DOES NOT FIT", "no_verdict": "NO VERDICT"}


def replay(document: Mapping[str, Any]) -> str:
    """Return the HTML of an answer (schema `xmem.replay/2`). Every name in it is escaped."""
    decision = str(document["decision"])
    device, peak = document["device"], document["peak"]
    figures = [
        ("peak allocated", peak["allocated_bytes"]),
        ("peak reserved", peak["reserved_bytes"]),
        ("in nvidia-smi", peak["device_bytes"]),
    ]
    shown = " · ".join(f"{name} <b>{show_size(size)}</b>" for name, size in figures)
    return (
        f'<div class="xmem"><style>{STYLE}</style>'
        f'<div><b class="{escape(decision)}">{escape(WORDS.get(decision, decision))}</b> '
        f"{escape(str(document['summary']))}</div>"
        f'<div class="name" style="width:auto">{escape(str(device["title"]))} · {shown}</div>'
        f"{_roles(document['by_role'])}{_over_time(document)}</div>"
    )


def _roles(by_role: Mapping[str, int]) -> str:
    rows = sorted(((size, role) for role, size in by_role.items() if size), reverse=True)
    if not rows:
        return ""
    largest = rows[0][0]
    lines = (
        f'<div class="row"><span class="name">{escape(role.replace("_", " "))}</span>'
        f'<span class="size">{show_size(size)}</span>'
        f'<span class="line"><div class="bar" style="width:{100 * size / largest:.1f}%"></div></span></div>'
        for size, role in rows
    )
    return f'<div style="margin-top:.6em">{"".join(lines)}</div>'


def _over_time(document: Mapping[str, Any]) -> str:
    curve = document["curve"]
    allocated: List[int] = curve["allocated_bytes"]
    reserved: List[int] = curve["reserved_bytes"]
    if len(allocated) < 2:
        return ""
    available = int(document["device"]["available_bytes"])
    highest = max(max(allocated), max(reserved), 1)
    # The line of the device is shown where it says something.
    is_near = available < 3 * highest
    top = max(highest, available if is_near else 0)
    area = f"0,{HEIGHT} {_points(allocated, top)} {WIDTH},{HEIGHT}"
    starts = "".join(
        f'<line class="start" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{HEIGHT}"/>'
        f'<text x="{at + 3:.1f}" y="{HEIGHT + 11}">{start["iteration"]}</text>'
        for start in curve["iteration_starts"]
        for at in [start["point"] * WIDTH / (len(allocated) - 1)]
    )
    y = HEIGHT * (1 - available / top)
    limit = f'<line class="limit" x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>' if is_near else ""
    return (
        f'<svg viewBox="0 -2 {WIDTH} {HEIGHT + 16}" role="img"><title>Memory over the requests of the run, by '
        f"iteration: at most {show_size(max(allocated))} allocated (area), {show_size(max(reserved))} reserved (line)"
        f'</title>{starts}<polygon class="area" points="{area}"/>'
        f'<polyline class="reserved" points="{_points(reserved, top)}"/>{limit}</svg>'
    )


def _points(values: Sequence[int], top: int) -> str:
    step = WIDTH / (len(values) - 1)
    return " ".join(f"{at * step:.1f},{HEIGHT * (1 - value / top):.1f}" for at, value in enumerate(values))
