"""Python environments of the tools, one for each, with the versions that are pinned in `requirements`."""

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"


class NotInstalled(Exception):
    """An environment could not be made; the message has the end of what pip printed."""


def environment(name: str, folder: Path) -> Path:
    """The Python of an environment below the folder, which is made where it is not there, or its requirements have changed."""
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
