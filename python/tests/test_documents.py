"""The examples in Markdown run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A comment `<!-- not run: REASON -->` above an example leaves it out.
EXAMPLE = re.compile(r"^(<!-- not run: .*? -->\n+)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (f"{path.relative_to(ROOT)}-{number}", code)
        for path in paths
        for number, (left_out, code) in enumerate(EXAMPLE.findall(path.read_text()), 1)
        if not left_out
    ]


def test_there_are_examples() -> None:
    names = {name.rsplit("-", 1)[0] for name, _ in examples()}
    assert names >= {"README.md", "docs/guides/python.md"}


@pytest.mark.parametrize(("name", "code"), examples(), ids=[name for name, _ in examples()])
def test_an_example_runs(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "example"})
