"""Pages as JSON lines: cut into batches, answered line by line, and sent again where a line asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .contract.types import LineAnswer, Page
from .errors import Unexpected

AnyPage = Page | Mapping[str, Any]
"""A page: a `Page`, or a dictionary with its fields."""

LINES_MAX = 1_000
"""Pages of a batch where nothing else is said. The server takes 100,000."""
BYTES_MAX = 8 << 20
"""Bytes of a batch where nothing else is said. The server takes 64 MiB, and a page of 16 MiB."""

_ENCODER = msgspec.json.Encoder()
_ANSWER = msgspec.json.Decoder(LineAnswer)


def line(page: AnyPage) -> bytes:
    """A page as a line of JSON."""
    return _ENCODER.encode(page) + b"\n"


@dataclass(slots=True)
class Batch:
    """Some pages that are sent together, and what came back for each."""

    first: int
    """The number of its first page among all that are sent, from 1."""
    lines: list[bytes] = field(default_factory=list[bytes])
    _answers: dict[int, LineAnswer] = field(default_factory=dict[int, LineAnswer])

    def body(self) -> bytes:
        """The lines that have no answer, or are to be sent again."""
        return b"".join(self.lines[at] for at in self._open())

    def take(self, content: bytes) -> tuple[int, int]:
        """Reads the answers to `body`. Says how many lines were settled, and how many are to be sent again."""
        answers = [_ANSWER.decode(one) for one in content.splitlines() if one]
        sent = self._open()
        if len(answers) != len(sent):
            raise Unexpected(f"{len(sent)} pages were sent and {len(answers)} answers came")
        again = 0
        for at, answer in zip(sent, answers, strict=True):
            self._answers[at] = msgspec.structs.replace(answer, line=self.first + at)
            again += answer.error is not None and answer.error.code == "retry"
        return len(sent) - again, again

    def answers(self) -> Iterator[LineAnswer]:
        """The answer to each page, in their order."""
        for at in range(len(self.lines)):
            yield self._answers[at]

    def _open(self) -> list[int]:
        def settled(at: int) -> bool:
            answer = self._answers.get(at)
            return answer is not None and (answer.error is None or answer.error.code != "retry")

        return [at for at in range(len(self.lines)) if not settled(at)]


class Batches:
    """Collects pages into batches of at most so many lines and bytes. A page that is longer is a batch of its own."""

    def __init__(self, lines_max: int, bytes_max: int) -> None:
        if lines_max < 1 or bytes_max < 1:
            raise ValueError("a batch has room for at least one line and one byte")
        self._lines_max = lines_max
        self._bytes_max = bytes_max
        self._batch = Batch(first=1)
        self._bytes = 0

    def add(self, page: AnyPage) -> Batch | None:
        """Adds a page. Gives back a batch that is full, if the page no longer fits into it."""
        added = line(page)
        full = None
        held = self._batch.lines
        if held and (len(held) >= self._lines_max or self._bytes + len(added) > self._bytes_max):
            full = self.rest()
        self._batch.lines.append(added)
        self._bytes += len(added)
        return full

    def rest(self) -> Batch | None:
        """What has been added since the last batch, if anything."""
        batch = self._batch
        if not batch.lines:
            return None
        self._batch = Batch(first=batch.first + len(batch.lines))
        self._bytes = 0
        return batch


def batches(pages: Iterable[AnyPage], lines_max: int, bytes_max: int) -> Iterator[Batch]:
    """The batches of all pages. One batch is in memory at a time, and the page after it."""
    collected = Batches(lines_max, bytes_max)
    for page in pages:
        if full := collected.add(page):
            yield full
    if rest := collected.rest():
        yield rest
