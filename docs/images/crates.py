"""Draws the crate graph of the workspace (crates.svg): python3 docs/images/crates.py

An edge leads from a crate to one that it uses, unless another of its crates leads there, too.
"""

import json
import subprocess
from pathlib import Path

WIDTH, HEIGHT, STEP_X, STEP_Y, MARGIN = 132, 28, 156, 52, 12


def graph():
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.check_output(command))["packages"]
    crates = {p["name"]: p["dependencies"] for p in packages if "/crates/" in p["manifest_path"]}
    uses = {
        name: {d["name"] for d in dependencies if d["kind"] is None and d["name"] in crates}
        for name, dependencies in crates.items()
    }

    def reached(name):
        return uses[name].union(*(reached(other) for other in uses[name]))

    def column(name):
        return 1 + max((column(other) for other in uses[name]), default=-1)

    edges = [
        (name, other)
        for name in sorted(uses)
        for other in sorted(uses[name])
        if not any(other in reached(third) for third in uses[name] - {other})
    ]
    return {name: column(name) for name in sorted(uses)}, edges


def draw(columns, edges):
    rows, places = {}, {}
    most = max(list(columns.values()).count(c) for c in columns.values())
    for name, column in columns.items():
        count = list(columns.values()).count(column)
        row = rows.setdefault(column, 0)
        rows[column] += 1
        x = MARGIN + column * STEP_X
        y = MARGIN + ((most - count) / 2 + row) * STEP_Y
        places[name] = (x, y)
    width = 2 * MARGIN + max(columns.values()) * STEP_X + WIDTH
    height = 2 * MARGIN + (most - 1) * STEP_Y + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The crates of the workspace and what each uses</title>",
        "<style>text{font:12px sans-serif;text-anchor:middle;fill:#222}rect{fill:#e8eef7;stroke:#5b7aa8}",
        "path{fill:none;stroke:#8a8f98}@media(prefers-color-scheme:dark){text{fill:#ddd}",
        "rect{fill:#27313f;stroke:#7d9cc9}}</style>",
    ]
    for name, other in edges:
        (x1, y1), (x2, y2) = places[name], places[other]
        start, end = (x1, y1 + HEIGHT / 2), (x2 + WIDTH, y2 + HEIGHT / 2)
        bend = (start[0] - end[0]) / 2
        lines.append(
            f'<path d="M{start[0]:g} {start[1]:g}C{start[0] - bend:g} {start[1]:g} '
            f'{end[0] + bend:g} {end[1]:g} {end[0]:g} {end[1]:g}"/>'
        )
    for name, (x, y) in places.items():
        lines.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>')
        lines.append(f'<text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2 + 4:g}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("crates.svg").write_text(draw(*graph()))
