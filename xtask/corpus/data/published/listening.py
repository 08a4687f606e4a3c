"""Runs a script as it is, and writes down figures that it prints: what the drivers of such scripts share."""

import builtins
import json
import re
import runpy
import sys


def run(script, arguments, results, patterns):
    """Runs a script as the main program. `patterns` are regular expressions by the key of a figure, which is their first group.
    If the script raises before the first figure, the error is written in its place."""
    found = {}
    show = builtins.print

    def listen(*words, **options):
        line = " ".join(map(str, words))
        for key, pattern in patterns.items():
            figure = re.match(pattern, line)
            if figure:
                found[key] = {"value": float(figure[1])}
        show(*words, **options)

    builtins.print = listen
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as error:
        show(error)
        found.setdefault(next(iter(patterns)), {"error": f"{type(error).__name__}: {error}"[:200]})
    with open(results, "w") as file:
        json.dump(found, file)
