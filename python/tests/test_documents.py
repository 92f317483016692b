"""The examples in Markdown run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [(path.name, EXAMPLE.findall(path.read_text())) for path in paths]
    return [(f"{name}-{number}", code) for name, codes in found for number, code in enumerate(codes, 1)]


def test_there_are_examples() -> None:
    names = {name.rsplit("-", 1)[0] for name, _ in examples()}
    assert names >= {"README.md", "PYTHON.md"}


@pytest.mark.parametrize(("name", "code"), examples(), ids=[name for name, _ in examples()])
def test_an_example_runs(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "example"})
