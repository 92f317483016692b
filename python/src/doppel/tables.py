"""CSV and TSV as the program reads them (docs/reference/formats.md): a stray quote costs one row, and not all rows up to the next quote."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LINES_MAX = 100_000
"""How many lines a cell in quotes may be over."""
_SEPARATORS = ",;\t|"


@dataclass(frozen=True, slots=True)
class BadRow:
    """Why a row cannot be read."""

    reason: str


def separator_of(line: str) -> str:
    """The separator that the row of names has most of."""
    return max(_SEPARATORS, key=line.count)


def said_separator(line: str) -> str | None:
    """The separator that a line in front of the names says; None where it says none.

    >>> said_separator("sep=;"), said_separator("id,text")
    (';', None)
    """
    said = line.rstrip("\r\n").strip('"')
    if said[:4].lower() != "sep=" or len(said) != 5 or said[4] == '"':
        return None
    return said[4]


class Rows:
    """The rows of lines of text, each with the number of its first line."""

    def __init__(self, lines: Iterable[str], separator: str) -> None:
        self.line = 0
        """The number of the line that was read last, from 1."""
        self._lines = iter(lines)
        self._again: deque[str] = deque()
        self._separator = separator

    def __iter__(self) -> Iterator[tuple[int, list[str] | BadRow]]:
        while (line := self._next()) is not None:
            if line.strip("\r\n"):
                number = self.line
                yield number, self._row(line) if '"' in line else line.rstrip("\r\n").split(self._separator)

    def _next(self) -> str | None:
        line = self._again.popleft() if self._again else next(self._lines, None)
        self.line += line is not None
        return line

    def _row(self, text: str) -> list[str] | BadRow:
        """The cells of a row that begins with a line, and may be over several."""
        cells: list[str] = []
        at = 0
        while True:
            if text.startswith('"', at):
                found = self._quoted(text, at)
                if isinstance(found, BadRow):
                    return found
                text, cell, at = found
            else:
                end = text.find(self._separator, at)
                end = len(text.rstrip("\r\n")) if end < 0 else end
                cell, at = text[at:end], end
            cells.append(cell)
            if not text.startswith(self._separator, at):
                return cells
            at += len(self._separator)

    def _quoted(self, text: str, at: int) -> tuple[str, str, int] | BadRow:
        """The cell in quotes that begins at a place: the text with all lines of it, the cell, and the place behind it."""
        first, behind = self.line, list[str]()
        begin, parts = at + 1, list[str]()
        while True:
            end = text.find('"', begin)
            if end < 0:
                line = None if len(behind) >= LINES_MAX else self._next()
                if line is None:
                    never = (
                        "is never closed" if len(behind) < LINES_MAX else f"is not closed within {LINES_MAX:,} lines"
                    )
                    return self._fault(f"the quote that begins in line {first} {never}", behind)
                behind.append(line)
                parts.append(text[begin:])
                text, begin = line, 0
                continue
            parts.append(text[begin:end])
            if not text.startswith('"', end + 1):
                break
            parts.append('"')
            begin = end + 2
        end += 1
        while text.startswith(" ", end) and self._separator != " ":
            end += 1
        if text[end:].strip("\r\n") and not text.startswith(self._separator, end):
            return self._fault(f"text behind the closing quote of a cell that begins in line {first}", behind)
        return text, "".join(parts), end

    def _fault(self, reason: str, behind: list[str]) -> BadRow:
        """Goes back to the line behind that of a quote."""
        self._again.extendleft(reversed(behind))
        self.line -= len(behind)
        return BadRow(reason)
