"""Rows as pages: the URL under which the program knows a row, the line that it reads, and the way back.

A row without a URL has one that tells its number. Such URLs are of one length and in the order of the rows, so that under the usual
winner order the first row of a group wins.
"""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urldefrag

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .sources import Chunk

_PREFIX = "https://rows.invalid/"
_DIGITS = 12
_MILLISECOND = timedelta(milliseconds=1)


def row_url(row: int) -> str:
    """The URL of a row that has none."""
    return f"{_PREFIX}{row:0{_DIGITS}d}"


class _Version(NamedTuple):
    """The newest row of a URL: its date, the date that the program is told, and its number."""

    given: datetime
    told: datetime
    row: int


class Rows:
    """Writes rows as lines for the program, and knows afterwards which row each of its pages is.

    Where rows have URLs, about 300 bytes of each are held; otherwise nothing of a row is.
    """

    def __init__(self, out: BinaryIO) -> None:
        self.count = 0
        """Rows so far."""
        self.superseded = array("q")
        """Rows that have the URL of another row with a later date, or with the same date and further down."""
        self._out = out
        self._encoder = msgspec.json.Encoder()
        self._newest: dict[str, _Version] = {}
        self._now = datetime.now(UTC).replace(microsecond=0)

    def write(self, chunk: Chunk) -> None:
        """Writes the rows of a chunk."""
        for line in self._lines(chunk):
            self._out.write(line)

    def _lines(self, chunk: Chunk) -> Iterator[bytes]:
        kind = "html" if chunk.is_html else "text"
        for at, text in enumerate(chunk.texts):
            page: dict[str, Any] = {"url": row_url(self.count), kind: "" if text is None else text}
            fetched = None if chunk.dates is None else moment(chunk.dates[at])
            url = None if chunk.urls is None else chunk.urls[at]
            if isinstance(url, str) and url.startswith(("http://", "https://", "file://")):
                page["url"], fetched = self._version(urldefrag(url).url, fetched)
            if fetched is not None:
                page["fetched_at"] = fetched
            yield self._encoder.encode(page) + b"\n"
            self.count += 1

    def _version(self, url: str, fetched: Any) -> tuple[str, Any]:
        """The name and the date of a row with a URL. A later row of the same date gets a date one millisecond later, so that it is
        clear which is the newest. A date that cannot be read is left to the program to refuse.
        """
        given = fetched or self._now
        if not isinstance(given, datetime):
            return url, given
        told = given
        before = self._newest.get(url)
        if before is not None:
            if given < before.given:
                self.superseded.append(self.count)
                return url, given
            told = max(given, before.told + _MILLISECOND)
            self.superseded.append(before.row)
        self._newest[url] = _Version(given, told, self.count)
        return url, told

    def rows_of(self, urls: pa.Array) -> pa.Array:
        """The number of the row of each page, by its URL; null for a null."""
        if not self._newest:
            return pc.cast(pc.utf8_slice_codeunits(urls, start=len(_PREFIX)), pa.int64())
        return pa.array([self._row(url) for url in urls.to_pylist()], pa.int64())

    def _row(self, url: str | None) -> int | None:
        if url is None:
            return None
        known = self._newest.get(url)
        return int(url.removeprefix(_PREFIX)) if known is None else known.row


def moment(value: object) -> Any:
    """A date as the program takes it: RFC 3339, in UTC where it has no zone. What is no date is left as it is, to be refused."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value
