"""What the program says beside its pages, with the rows called as the caller calls them: the summary and the report."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
# Arrow for Python has no types.
from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from .rows import DIGITS, PREFIX, Rows, called_elsewhere

_NAME = re.compile(rf"{re.escape(PREFIX)}(\d{{{DIGITS}}})(?!\d)")
_STAYING = re.compile(rf"{re.escape(PREFIX)}[^\s<\"]+")
_LINE = re.compile(r"^rows\.jsonl, line (\d+)")


def of_rows(summary: bytes, rows: Rows, ids: pa.ChunkedArray) -> bytes:
    """The program's summary, as JSON, with ids instead of names, and with the bad rows that it has not seen."""
    told: dict[str, Any] = msgspec.json.decode(summary)
    for group in told.get("largest", []):
        group["winner"] = _called(group["winner"], rows, ids)
    unread = rows.count - rows.written
    if unread:
        told["input"]["bad"]["row that is no page"] = unread
        told["records"]["read"] += unread
        told["records"]["bad"] += unread
    return msgspec.json.encode(told)


def reasons(lines: list[str], rows: Rows) -> list[str]:
    """What the program says of bad rows, with the numbers of rows."""
    if rows.stay:
        return lines
    said = [_NAME.sub(lambda name: f"row {int(name[1])}", line.removeprefix("doppel: ")) for line in lines]
    return [_LINE.sub(lambda line: f"row {int(line[1]) - 1}", line) for line in said]


def _called(name: str, rows: Rows, ids: pa.ChunkedArray) -> Any:
    if rows.stay:
        return called_elsewhere(name)
    found = _NAME.fullmatch(name)
    if found is None:
        return name
    id = ids[int(found[1])].as_py()
    return id if isinstance(id, (str, int, float)) else str(id)


def write_report(written: Path, target: Path, rows: Rows, ids: pa.ChunkedArray) -> None:
    """Writes the report that the program has written to where it is wanted, with ids instead of names."""
    page = written.read_text()
    shown = _STAYING if rows.stay else _NAME
    page = shown.sub(lambda name: html.escape(str(_called(html.unescape(name[0]), rows, ids))), page)
    target.write_text(page)
