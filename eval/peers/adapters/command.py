"""Command line of an adapter: `run` does the measured work, `answer` reads its result."""

import sys
from collections.abc import Callable
from pathlib import Path

from comparison.answer import Answer
from comparison.settings import Settings


def main(run: Callable[[Settings], None], answer: Callable[[Settings], Answer]) -> None:
    """Executes the command line `run FILE` or `answer FILE`, where FILE has the settings."""
    step, settings = sys.argv[1], Settings.read(Path(sys.argv[2]))
    if step == "run":
        run(settings)
    else:
        answer(settings).write(Path(settings.work) / "answer.json")
