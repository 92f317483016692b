"""Parameters that are options of the program: those that it has, and those that nobody knows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import doppel
from doppel.known_options import DEDUP, SERVE


@pytest.mark.parametrize(("command", "known"), [("dedup", DEDUP), ("serve", SERVE)])
def test_the_lists_of_options_are_those_of_the_program(command: str, known: frozenset[str]) -> None:
    said = subprocess.run([doppel.program(), command, "--help"], capture_output=True, text=True, check=True).stdout
    found = {name.replace("-", "_") for name in re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", said, re.MULTILINE)} - {
        "help"
    }
    assert found == known, f"write this into known_options.py: {' '.join(sorted(found))}"


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("winers", "winners="),
        ("popularty", "popularity="),
        ("Tau", "tau="),
        ("url_feild", "url_field="),
        ("zzzzzz", None),
    ],
)
def test_an_unknown_option_is_named_without_a_run(
    option: str, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPPEL", "/nothing/there")

    def rows() -> Any:
        raise AssertionError("nothing is read")
        yield

    with pytest.raises(TypeError, match=re.escape(f"dedup() has no parameter {option}=")) as refused:
        doppel.dedup(rows(), **cast("Any", {option: 1}))
    assert meant is None or f"do you mean {meant}" in str(refused.value)
    with pytest.raises(TypeError, match=r"Server\(\) has no parameter indexnodes=; do you mean index_nodes="):
        doppel.Server(**cast("Any", {"indexnodes": 2}))


def test_an_import_without_dependencies_says_what_to_install() -> None:
    source = Path(doppel.__file__).parents[1]
    code = f"""
import sys
sys.path.insert(0, {str(source)!r})
import doppel
"""
    # Isolated and without site: nothing that is installed is seen.
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "ImportError: doppel needs httpx, msgspec, pyarrow, and cannot find them: `pip install 'httpx>="
    )
    assert "`pip install doppel-dedup`" in last


def test_the_requirements_are_those_of_the_project() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    import tomllib

    from doppel import _needs

    wanted = tomllib.loads(project.read_text())["project"]
    assert wanted["name"] == "doppel-dedup"
    assert list(vars(_needs)["_NEEDED"].values()) == wanted["dependencies"]
