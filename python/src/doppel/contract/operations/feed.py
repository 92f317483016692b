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
        """Read the status changes since a cursor.

        The feed keeps the newest event of every page. A replay from the start therefore gives every page
        once, including dead pages. Events do not depend on markets: each event names the winner without a
        market. With `Accept: application/x-ndjson`, the answer has one event per line, and the headers
        `doppel-cursor` and `doppel-at-end` have the values of `cursor` and `at_end`.

        `cursor`: Cursor from an earlier answer or from an export. Without a cursor, the feed begins at its
        start.

        `wait`: Maximum number of seconds to wait for the first event, 0 to 60. Default: 0.

        `limit`: Maximum number of events in the answer, 1 to 10,000. Default: 1,000.

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
        """Read the status changes since a cursor.

        The feed keeps the newest event of every page. A replay from the start therefore gives every page
        once, including dead pages. Events do not depend on markets: each event names the winner without a
        market. With `Accept: application/x-ndjson`, the answer has one event per line, and the headers
        `doppel-cursor` and `doppel-at-end` have the values of `cursor` and `at_end`.

        `cursor`: Cursor from an earlier answer or from an export. Without a cursor, the feed begins at its
        start.

        `wait`: Maximum number of seconds to wait for the first event, 0 to 60. Default: 0.

        `limit`: Maximum number of events in the answer, 1 to 10,000. Default: 1,000.

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
