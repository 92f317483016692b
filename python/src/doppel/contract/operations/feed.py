"""Operations of the contract: feed.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from ...call import AsyncCaller, Call, Caller
from ..types import (
    ChangesAnswer,
)


class FeedCalls(Caller):
    """Operations of the tag `feed`."""

    def get_changes(
        self, *, cursor: str | None = None, wait: int | None = None, limit: int | None = None
    ) -> ChangesAnswer:
        """What changed since a cursor?

        The newest event of every page is kept, so a replay from the start gives every page once, dead ones
        among them. The events are without markets: they name the usual winner. With `Accept:
        application/x-ndjson` an answer is one event per line, and `cursor` and `at_end` are in the headers
        `doppel-cursor` and `doppel-at-end`.

        `cursor`: As an earlier answer or an export gave it; without one the feed begins at its start.

        `wait`: Seconds to wait for the first event, 0 to 60; 0 where none is given.

        `limit`: The most events of the answer, 1 to 10,000; 1,000 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call(
                "GET",
                "/v1/changes",
                ChangesAnswer,
                query={"cursor": cursor, "wait": wait, "limit": limit},
                waits=wait or 0,
            )
        )


class AsyncFeedCalls(AsyncCaller):
    """Operations of the tag `feed`, to be awaited."""

    async def get_changes(
        self, *, cursor: str | None = None, wait: int | None = None, limit: int | None = None
    ) -> ChangesAnswer:
        """What changed since a cursor?

        The newest event of every page is kept, so a replay from the start gives every page once, dead ones
        among them. The events are without markets: they name the usual winner. With `Accept:
        application/x-ndjson` an answer is one event per line, and `cursor` and `at_end` are in the headers
        `doppel-cursor` and `doppel-at-end`.

        `cursor`: As an earlier answer or an export gave it; without one the feed begins at its start.

        `wait`: Seconds to wait for the first event, 0 to 60; 0 where none is given.

        `limit`: The most events of the answer, 1 to 10,000; 1,000 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call(
                "GET",
                "/v1/changes",
                ChangesAnswer,
                query={"cursor": cursor, "wait": wait, "limit": limit},
                waits=wait or 0,
            )
        )
