"""`python -m xmem`: the program with the same arguments."""

from __future__ import annotations

import os
import subprocess
import sys

from ._program import find


def main() -> None:
    """Become the program; where a process cannot become another, run it and end with its code."""
    command = [str(find()), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
