"""How far a call is, for people: lines on standard error, of which a terminal has only the last one."""

from __future__ import annotations

import sys
from time import monotonic

_TERMINAL_PAUSE = 0.2
_LINES_PAUSE = 5.0


class Progress:
    """Says what is being done, at most so often that it costs nothing. Without `shown` it says nothing."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._terminal = shown and sys.stderr.isatty()
        self._pause = _TERMINAL_PAUSE if self._terminal else _LINES_PAUSE
        self._begin = self._said = monotonic()
        self._width = 0

    @property
    def seconds(self) -> float:
        """How long the present step takes so far."""
        return monotonic() - self._begin

    def going_on(self, text: str) -> None:
        """Says how far the present step is, if the last line is old enough."""
        if self.shown and monotonic() - self._said >= self._pause:
            self._say(text, end="\r" if self._terminal else "\n")

    def done(self, text: str) -> None:
        """Says what the present step did, with its time; the next one begins."""
        if self.shown:
            self._say(f"{text} in {self.seconds:.1f} s", end="\n")
        self._begin = monotonic()

    def _say(self, text: str, end: str) -> None:
        line = f"doppel: {text}"
        # What a longer line has left on the terminal is written over.
        print(line.ljust(self._width) if self._terminal else line, end=end, file=sys.stderr, flush=True)
        self._width = len(line) if end == "\r" else 0
        self._said = monotonic()
