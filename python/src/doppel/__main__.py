"""`python -m doppel` is the program `doppel`."""

from __future__ import annotations

import os
import subprocess
import sys

from .errors import ProgramError
from .program import program


def main() -> None:
    """Becomes the program, with all arguments."""
    try:
        path = str(program())
    except ProgramError as error:
        sys.exit(f"doppel: {error}")
    if sys.platform == "win32":
        sys.exit(subprocess.run([path, *sys.argv[1:]]).returncode)
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
