"""Servers that are started and ended by the module, and the program itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import doppel
from texts import text


def test_a_directory_stays_and_a_temporary_one_goes(tmp_path: Path) -> None:
    with doppel.Server(tmp_path / "data", tau=0.9) as server, server.client() as client:
        client.record_page({"url": "https://a.example/", "text": text("a")})
        client.flush(wait=True)
        with pytest.raises(doppel.ProgramError, match="running already"):
            server.start()
    with pytest.raises(doppel.ProgramError, match="not running"):
        _ = server.url
    with doppel.Server(tmp_path / "data") as server, server.client() as client:
        assert client.get_status("https://a.example/").status == "unique"
        assert client.get_savings().policy == "jaccard:tau=0.9"
    with doppel.Server() as server:
        folder = server.data
        assert folder.is_dir()
    assert not folder.parent.exists()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(doppel.ProgramError, match="tau") as raised:
        doppel.Server(tau=7).start()
    assert raised.value.code == 2
    assert raised.value.lines
    (tmp_path / "data").write_text("no directory")
    with pytest.raises(doppel.ProgramError) as raised:
        doppel.Server(tmp_path / "data").start()
    assert raised.value.code == 1


def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = "import doppel; server = doppel.Server().start(); print(server._process.pid)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


WAITS = """
import sys, time, doppel
def rows():
    yield {"text": "a"}
    print("ready", flush=True)
    time.sleep(60)
    yield {"text": "b"}
"""
ENDED = {
    "dedup": WAITS + "doppel.dedup(rows())",
    "server": WAITS + "server = doppel.Server().start(); print(server._process.pid); list(rows())",
}


@pytest.mark.parametrize("kind", ENDED)
def test_a_process_that_is_ended_leaves_nothing(kind: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", ENDED[kind]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(1 + (kind == "server"))]
        assert said[-1] == "ready\n"
        assert list(tmp_path.iterdir())
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
    if kind == "server":
        with pytest.raises(ProcessLookupError):
            os.kill(int(said[0]), 0)


def test_a_handler_of_the_process_is_left_alone() -> None:
    def own(number: int, frame: object) -> None: ...

    signal.signal(signal.SIGTERM, own)
    try:
        with doppel.Server():
            assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with doppel.Server(), doppel.Server():
        doppel.dedup([{"text": "a"}])
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_module_is_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run([sys.executable, "-m", "doppel", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("doppel ")
    done = subprocess.run([sys.executable, "-m", "doppel", "status"], capture_output=True, text=True)
    assert done.returncode == 2
    monkeypatch.setenv("DOPPEL", "/nowhere/doppel")
    with pytest.raises(doppel.ProgramError, match="/nowhere/doppel"):
        doppel.program()


def test_a_fork_leaves_the_server_alone() -> None:
    with doppel.Server() as server:
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(tell, b"x")
            time.sleep(60)
            os._exit(0)
        os.read(ready, 1)
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        with server.client() as client:
            assert client.get_health() == "ok\n"
