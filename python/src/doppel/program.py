"""Where the program is that the package came with, and how it is run."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from .errors import ProgramError

_NAME = "doppel.exe" if sys.platform == "win32" else "doppel"
LINES_SHOWN = 20


def program() -> Path:
    """The program `doppel`: what the environment variable `DOPPEL` names, or else what was installed with this package, or else what is
    on the path. Raises `ProgramError` where there is none.

    >>> import subprocess
    >>> subprocess.run([program(), "--version"], capture_output=True, text=True).stdout
    'doppel ...'
    """
    named = os.environ.get("DOPPEL")
    if named:
        path = Path(named)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise ProgramError(f"DOPPEL names {named}, which is no program")
        return path.resolve()
    for folder in _folders():
        path = folder / _NAME
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(_NAME)
    if found is None:
        raise ProgramError("the program doppel is not there: install this package with pip, or name it in DOPPEL")
    return Path(found)


def _folders() -> Iterator[Path]:
    """Where pip puts programs: into the environment, for the user, or beside a folder that was given with `--target`."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")))
    yield Path(__file__).resolve().parent.parent / "bin"


def last_lines(path: Path) -> list[str]:
    """The last lines of what a program wrote into a file."""
    with path.open(errors="replace") as file:
        return [line.rstrip("\n") for line in deque(file, LINES_SHOWN)]


def options(given: dict[str, object]) -> list[str]:
    """Options of a command: `index_nodes=2` is `--index-nodes 2`, True a flag, None and False nothing, and a list one option each.

    >>> options({"tau": 0.9, "detect_language": True, "allow_host": ["a", "b"], "winners": None})
    ['--tau', '0.9', '--detect-language', '--allow-host', 'a', '--allow-host', 'b']
    """
    arguments: list[str] = []
    for name, value in given.items():
        option = "--" + name.strip("_").replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is None or value is False:
            continue
        else:
            for one in cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else [value]:
                arguments += [option, str(one)]
    return arguments
