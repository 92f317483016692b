"""Servers that are started and ended by the module, and the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_the_module_is_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run([sys.executable, "-m", "doppel", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("doppel ")
    done = subprocess.run([sys.executable, "-m", "doppel", "status"], capture_output=True, text=True)
    assert done.returncode == 2
    monkeypatch.setenv("DOPPEL", "/nowhere/doppel")
    with pytest.raises(doppel.ProgramError, match="/nowhere/doppel"):
        doppel.program()
