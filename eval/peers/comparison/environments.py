"""Python environments of the tools, one per tool, with the versions that `requirements` pins."""

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"


class NotInstalled(Exception):
    """Error of an environment that could not be made. The message has the end of the output of pip."""


def environment(name: str, folder: Path) -> Path:
    """Returns the Python of an environment below the folder. Makes the environment if it is missing or out of date."""
    wanted, place = REQUIREMENTS / f"{name}.txt", folder / name
    stamp = place / "installed.txt"
    python = place / "bin" / "python"
    if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
        return python
    shutil.rmtree(place, ignore_errors=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", wanted]
    for command in ([sys.executable, "-m", "venv", place], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NotInstalled(f"{name}: {(done.stderr or done.stdout)[-1_000:].strip()}")
    shutil.copyfile(wanted, stamp)
    return python
