"""Draws the timeline of an answer of `xmem replay --format json` as SVG.

    xmem replay traces/big_gpt2s_adam_b6/trace.json.zst -d rtx3060-12g --cudnn model -f json \
        | python3 docs/images/timeline.py > docs/images/timeline.svg
"""

import json
import sys

WIDTH, HEIGHT = 800, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 44
GIB = 2**30


def main():
    answer = json.load(sys.stdin)
    curve = answer["curve"]
    allocated, reserved = curve["allocated_bytes"], curve["reserved_bytes"]
    steps = len(allocated)
    top = max(reserved) * 1.08

    def x(step):
        return LEFT + step * (WIDTH - LEFT - RIGHT) / steps

    def y(size):
        return HEIGHT - BOTTOM - size * (HEIGHT - TOP - BOTTOM) / top

    def staircase(values):
        corners = []
        for step, value in enumerate(values):
            if step == 0 or value != values[step - 1]:
                corners.append(f"L{x(step):.1f} {y(value):.1f}")
            if step + 1 == steps or value != values[step + 1]:
                corners.append(f"L{x(step + 1):.1f} {y(value):.1f}")
        return " ".join(corners)

    base = f"{y(0):.1f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        "<title>Memory over the requests of a training job</title>",
        "<style>",
        ".text { fill: #24292f } .line { stroke: #d0d7de } .back { fill: #ffffff }",
        ".reserved { fill: none; stroke: #9a6700; stroke-width: 1.5 }",
        ".allocated { fill: #0969da; fill-opacity: .35; stroke: #0969da }",
        "@media (prefers-color-scheme: dark) {",
        ".text { fill: #e6edf3 } .line { stroke: #30363d } .back { fill: #0d1117 }",
        ".reserved { stroke: #d29922 } .allocated { fill: #58a6ff; stroke: #58a6ff }",
        "}",
        "</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
    ]
    size = 0
    while size <= top:
        parts.append(f'<path class="line" d="M{LEFT} {y(size):.1f} H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="text" text-anchor="end" x="{LEFT - 8}" y="{y(size) + 4:.1f}">'
            f"{size // GIB} GiB</text>"
        )
        size += GIB
    for start in curve["iteration_starts"]:
        at = x(start["point"])
        parts.append(f'<path class="line" stroke-dasharray="3 3" d="M{at:.1f} {TOP} V{base}"/>')
        parts.append(
            f'<text class="text" x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}">'
            f"iteration {start['iteration']}</text>"
        )
    parts += [
        f'<path class="allocated" d="M{LEFT} {base} {staircase(allocated)} V{base} Z"/>',
        f'<path class="reserved" d="M{LEFT} {base} {staircase(reserved)}"/>',
        f'<text class="text" x="{LEFT}" y="18">reserved (line) and allocated (area); peaks '
        f"{max(reserved) / GIB:.2f} and {max(allocated) / GIB:.2f} GiB</text>",
        f'<text class="text" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">'
        "allocator requests, in program order</text>",
        "</svg>",
    ]
    print("\n".join(parts))


main()
