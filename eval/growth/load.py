"""Measures how the cost of a page grows with the collection, when pages are loaded into a server.

    python3 eval/growth/load.py FILE [--program doppel] [--step 10000] [--serve="--group-members-max 100"]

FILE has one JSON record a line. A fresh `doppel serve` gets them in steps from `doppel load --flush`. One line is
printed for each step: the pages in the collection, the server's processor time for each page of the step, the pages a
second, and the server's memory. Processor time includes all that the server does until the last decision is made. A
last step with fewer pages is left out.
"""

import argparse
import os
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


def steps(path: Path, size: int) -> Iterator[list[str]]:
    """The lines of a file, `size` at a time. Fewer at the end are left out."""
    lines: list[str] = []
    with path.open(encoding="utf-8") as records:
        for line in records:
            lines.append(line)
            if len(lines) == size:
                yield lines
                lines = []


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def processor_seconds(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(process: int) -> int:
    """Memory of a process, in 10^6 bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:")) // 10**6


def wait_until_ready(server: subprocess.Popen, port: int) -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise SystemExit(f"the server ended with exit code {server.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not answer after 30 s")


def measure(program: str, path: Path, step: int, options: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="doppel-growth") as name:
        folder, port = Path(name), free_port()
        with (folder / "log").open("w") as log:
            command = [program, "serve", "--data", str(folder / "data"), "--listen", f"127.0.0.1:{port}", *options]
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_ready(server, port)
            costs, pages = [], 0
            print(f"{'pages':>9} {'us/page':>8} {'pages/s':>8} {'MB':>6}")
            for lines in steps(path, step):
                part = folder / "part.jsonl"
                part.write_text("".join(lines), encoding="utf-8")
                processor, clock = processor_seconds(server.pid), time.monotonic()
                command = [program, "load", "--flush", "--server", f"http://127.0.0.1:{port}", str(part)]
                loaded = subprocess.run(command, check=False, capture_output=True, text=True)
                if loaded.returncode != 0:
                    raise SystemExit(f"{loaded.stderr}the server says:\n{(folder / 'log').read_text()}")
                costs.append((processor_seconds(server.pid) - processor) * 1e6 / len(lines))
                pages += len(lines)
                speed = len(lines) / (time.monotonic() - clock)
                print(f"{pages:>9} {costs[-1]:>8.0f} {speed:>8.0f} {resident_megabytes(server.pid):>6}", flush=True)
            if costs:
                print(f"the last step costs {costs[-1] / costs[0]:.2f} times as much as the first")
        finally:
            server.terminate()
            try:
                server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


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
