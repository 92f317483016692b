"""The change feed as an iterable with a cursor that can be kept."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Protocol

from .contract.types import ChangeLine, ChangesAnswer


class GetChanges(Protocol):
    """The operation that fetches a section of the feed."""

    def __call__(self, *, cursor: str | None, wait: int | None, limit: int | None) -> ChangesAnswer: ...


class Feed(Iterable[ChangeLine]):
    """The events of the feed one by one: `for change in feed`, or with `sections` many at a time.

    `cursor` is where to go on after the last section of which all events have been worked off: an event is, once the next one is asked
    for. A section has at most `limit` events; within the first one `cursor` is what it was at the beginning, so None where that was
    the start of the feed. So it can be kept at any time, and whoever goes on from it misses nothing, but sees again the events of the
    section that was under way. An event tells the newest state of a page, so to see one twice does no harm. To keep the cursor with
    what the events were used for, in one transaction, use `sections`. Another `for`, after the end or an exception, goes on at `cursor`.

    >>> import doppel
    >>> with doppel.Server() as server, server.client() as client:
    ...     _ = client.record_page({"url": "https://example.org/a", "text": "some words"})
    ...     _ = client.flush(wait=True)
    ...     feed = client.changes()
    ...     [(change.url, change.status) for change in feed]
    ...     [change.url for change in client.changes(feed.cursor)]
    [('https://example.org/a', 'unique')]
    []
    """

    def __init__(self, get: GetChanges, cursor: str | None, *, follow: bool, wait: int, limit: int) -> None:
        self.cursor = cursor
        """Where to go on. None is the start of the feed."""
        self._get = get
        self._follow = follow
        self._wait = wait
        self._limit = limit

    def sections(self) -> Iterator[ChangesAnswer]:
        """Sections with at least one event. Keep `section.cursor` when its events are worked off; `cursor` of the feed is that of the
        section before until the next one is asked for.
        """
        while True:
            section = self._get(cursor=self.cursor, wait=self._wait if self._follow else None, limit=self._limit)
            if section.changes:
                yield section
            self.cursor = section.cursor
            if section.at_end and not self._follow:
                return

    def __iter__(self) -> Iterator[ChangeLine]:
        for section in self.sections():
            yield from section.changes


AsyncGetChanges = Callable[[str | None, int | None, int], Awaitable[ChangesAnswer]]
"""The same operation, to be awaited: cursor, wait, limit."""


class AsyncFeed(AsyncIterable[ChangeLine]):
    """The events of the feed one by one: `async for`, or with `sections` many at a time. `cursor` is as that of `Feed`."""

    def __init__(self, get: AsyncGetChanges, cursor: str | None, *, follow: bool, wait: int, limit: int) -> None:
        self.cursor = cursor
        """Where to go on. None is the start of the feed."""
        self._get = get
        self._follow = follow
        self._wait = wait
        self._limit = limit

    async def sections(self) -> AsyncIterator[ChangesAnswer]:
        """Sections with at least one event, as `Feed.sections`."""
        while True:
            section = await self._get(self.cursor, self._wait if self._follow else None, self._limit)
            if section.changes:
                yield section
            self.cursor = section.cursor
            if section.at_end and not self._follow:
                return

    async def __aiter__(self) -> AsyncIterator[ChangeLine]:
        async for section in self.sections():
            for change in section.changes:
                yield change
