"""When a request is sent again, and for how long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from .errors import DoppelError, Overloaded, Unavailable, Unreachable

_LOGGER = logging.getLogger("doppel")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a client tries again.

    A request is sent again after 429 and 503 with a `Retry-After`, after as many seconds as that says, and where no connection could
    be made, or one broke off before the answer: everything that the contract has may be asked twice. What makes progress, such as a
    batch of which some lines were taken, begins to count anew. A server that has never answered this client, as at a wrong address, is
    given up after `unanswered` seconds. The logger `doppel` is told: with a warning of each wait for a server that does not answer, with
    an information of each that a server asked for.

    >>> Retries(attempts=1)  # never again
    Retries(attempts=1, seconds=300.0, pause=1.0, pause_max=60.0, unanswered=5.0)
    """

    attempts: int = 20
    """How often a request is sent at most."""
    seconds: float = 300.0
    """After so many seconds of waiting in sum no other attempt is made."""
    pause: float = 1.0
    """Seconds before the first repetition where there was no answer; they double."""
    pause_max: float = 60.0
    """The longest single wait in seconds. A `Retry-After` beyond it is obeyed as that much, so the server may refuse again."""
    unanswered: float = 5.0
    """For how many seconds a server is tried again that has never answered this client. Raise it where the server starts meanwhile."""


class Attempts:
    """The attempts at one request: each failure either gives a wait in seconds, or is final."""

    def __init__(self, retries: Retries, clock: Callable[[], float] = time.monotonic) -> None:
        self._retries = retries
        self._clock = clock
        self.progressed()

    def progressed(self) -> None:
        """Something was achieved: count anew."""
        self._made = 1
        self._begun = self._clock()
        self._pause = self._retries.pause

    def wait(self, retry_after: float | None, *, answered: bool = True) -> float | None:
        """Seconds until the next attempt; None where there is to be none. `answered`: whether the server has ever answered."""
        if self._made >= self._retries.attempts:
            return None
        if retry_after is None:
            retry_after, self._pause = self._pause, self._pause * 2
        wait = min(retry_after, self._retries.pause_max)
        seconds = self._retries.seconds if answered else min(self._retries.seconds, self._retries.unanswered)
        if self._clock() + wait > self._begun + seconds:
            return None
        self._made += 1
        return wait

    def after(self, error: DoppelError, *, answered: bool = True) -> float | None:
        """The same, after an error: None where it is final."""
        wait = None
        if isinstance(error, Unreachable):
            wait = self.wait(None, answered=answered)
        elif isinstance(error, (Overloaded, Unavailable)) and error.retry_after is not None:
            wait = self.wait(error.retry_after)
        if wait is not None:
            level = logging.WARNING if isinstance(error, Unreachable) else logging.INFO
            _LOGGER.log(level, "%s; trying again in %.3g s", error, wait)
        return wait
