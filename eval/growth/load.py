"""Measures how the cost of a page grows with the collection, when pages are loaded into a server.

    python3 eval/growth/load.py FILE [--program doppel] [--step 10000] [--serve="--group-members-max 100"]

FILE has one JSON record a line. A fresh `doppel serve` gets them in steps from `doppel load --flush`. One line is
printed for each step: the pages in the collection, the server's processor time for each page of the step, the exact
comparisons of the index for each page, the pages a second, and the server's memory. Processor time includes all that
the server does until the last decision is made. A last step with fewer pages is left out.
"""

import argparse
import json
import shlex
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from server import free_port, processor_seconds, resident_megabytes, running, wait_until_ready


def steps(path: Path, size: int) -> Iterator[list[str]]:
    """The lines of a file, `size` at a time. Fewer at the end are left out."""
    lines: list[str] = []
    with path.open(encoding="utf-8") as records:
        for line in records:
            lines.append(line)
            if len(lines) == size:
                yield lines
                lines = []


def comparisons(port: int) -> int:
    """Number of exact comparisons that the index has made."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/reports/load-balance", timeout=60) as answer:
        return sum(node["comparisons"] for node in json.load(answer)["nodes"])


def measure(program: str, path: Path, step: int, options: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="doppel-growth") as name:
        folder, port = Path(name), free_port()
        with (folder / "log").open("wb") as log, running(program, folder / "data", port, log, options) as server:
            wait_until_ready(server, port)
            costs, pages = [], 0
            print(f"{'pages':>9} {'us/page':>8} {'compared':>8} {'pages/s':>8} {'MB':>6}")
            for lines in steps(path, step):
                part = folder / "part.jsonl"
                part.write_text("".join(lines), encoding="utf-8")
                compared, processor, clock = comparisons(port), processor_seconds(server.pid), time.monotonic()
                command = [program, "load", "--flush", "--server", f"http://127.0.0.1:{port}", str(part)]
                loaded = subprocess.run(command, check=False, capture_output=True, text=True)
                if loaded.returncode != 0:
                    raise SystemExit(f"{loaded.stderr}the server says:\n{(folder / 'log').read_text()}")
                costs.append((processor_seconds(server.pid) - processor) * 1e6 / len(lines))
                pages += len(lines)
                speed = len(lines) / (time.monotonic() - clock)
                compared = (comparisons(port) - compared) / len(lines)
                memory = resident_megabytes(server.pid)
                print(f"{pages:>9} {costs[-1]:>8.0f} {compared:>8.2f} {speed:>8.0f} {memory:>6}", flush=True)
            if costs:
                print(f"the last step costs {costs[-1] / costs[0]:.2f} times as much as the first")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file", type=Path, help="records, one JSON object a line")
    arguments.add_argument("--program", default="doppel", help="the program to measure (default: doppel)")
    arguments.add_argument("--step", type=int, default=10_000, help="pages in a step (default: 10000)")
    arguments.add_argument("--serve", default="", help="further options of serve, in one argument")
    given = arguments.parse_args()
    measure(given.program, given.file, given.step, shlex.split(given.serve))


if __name__ == "__main__":
    main()
