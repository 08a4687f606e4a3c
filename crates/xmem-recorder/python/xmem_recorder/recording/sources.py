"""Sources of the script and of its modules, as syntax trees."""

import ast

# Bytes of the largest source that is read.
MAX_SIZE = 1 << 20


def parse(path):
    """The syntax tree of a file; None if it cannot be read, is not Python or is too large."""
    try:
        with open(path, "rb") as file:
            source = file.read(MAX_SIZE + 1)
        return ast.parse(source) if len(source) <= MAX_SIZE else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
