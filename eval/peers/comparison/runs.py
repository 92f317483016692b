"""Runs the tools in turn, for some rounds, and reads their answers."""

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from comparison.answer import Answer
from comparison.measured import CommandFailed, Cost, measure
from comparison.settings import Settings
from comparison.tools import ADAPTERS, Tool


@dataclass
class Result:
    """Results of one tool."""

    tool: Tool
    costs: list[Cost] = field(default_factory=list)
    answer: Answer | None = None
    """Answer of the first round."""
    steady: bool = True
    """Whether all rounds had equal answers."""
    failure: str | None = None
    """Reason why the tool has no answer."""

    def median(self, of: Callable[[Cost], float]) -> float:
        """Returns the median of the rounds."""
        return statistics.median(map(of, self.costs))


def run(tools: list[tuple[Tool, Path]], settings: Settings, rounds: int, folder: Path, seconds_max: float, say: Callable[[str], None]) -> list[Result]:
    """Runs each tool once per round, and reads the answers.

    Each round begins with another tool, so no tool is always first. A tool that fails takes no part in later rounds.
    """
    results = [Result(tool) for tool, _ in tools]
    for turn in range(rounds):
        for step in range(len(tools)):
            at = (turn + step) % len(tools)
            result, python = results[at], tools[at][1]
            if result.failure is not None:
                continue
            try:
                cost, answer = _once(result.tool, python, settings, folder, seconds_max)
            except CommandFailed as failure:
                result.failure = str(failure)
                say(f"round {turn + 1}: {result.tool.name} failed")
                continue
            result.costs.append(cost)
            if result.answer is None:
                result.answer = answer
            result.steady &= result.answer == answer
            say(f"round {turn + 1}: {result.tool.name} {cost.wall_seconds:.1f} s")
    return results


def _once(tool: Tool, python: Path, settings: Settings, folder: Path, seconds_max: float) -> tuple[Cost, Answer]:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    own = Settings(**(asdict(settings) | {"work": str(work)}))
    file, log = folder / "settings.json", folder / f"{tool.name}.log"
    own.write(file)
    environment = os.environ | {
        "PYTHONPATH": str(ADAPTERS.parent),
        # A fixed seed of string hashes makes rounds repeatable.
        "PYTHONHASHSEED": "0",
        "RAYON_NUM_THREADS": str(settings.threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(work / "huggingface"),
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    try:
        cost = measure(tool.command(python, own, file), environment, work, log, seconds_max)
        read = [str(python), "-m", f"adapters.{tool.adapter}", "answer", str(file)]
        done = subprocess.run(read, env=environment, cwd=work, capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandFailed(f"the answer of {tool.name} cannot be read:\n{done.stderr[-2_000:]}")
        return cost, Answer.read(work / "answer.json")
    finally:
        shutil.rmtree(work, ignore_errors=True)
