"""A server that is measured: its port, its processor time and its memory."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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


@contextmanager
def running(program: str, folder: Path, port: int, log: IO[bytes], options: list[str]) -> Iterator[subprocess.Popen]:
    """A server on a data directory, which is stopped at the end."""
    command = [program, "serve", "--data", str(folder), "--listen", f"127.0.0.1:{port}", *options]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
