"""Operations of the contract: pages.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

from ...call import AsyncCaller, Call, Caller
from ..types import (
    Purged,
    Taken,
)


class PagesCalls(Caller):
    """Operations of the tag `pages`."""

    def delete_page(self, url: str, *, fetched_at: datetime | None = None) -> Taken:
        """Record that a page is gone.

        One that is not on record is recorded as gone, too, with the outcome `confirmed`.

        `url`: The page.

        `fetched_at`: When it was found to be gone; RFC 3339, now where none is given, at most 24 hours ahead.

        A server with tokens asks for one with the role `write`.
        """
        return self.ask(Call("DELETE", "/v1/pages", Taken, query={"url": url, "fetched_at": fetched_at}))

    def purge(self, *, host: str | None = None, url: str | None = None) -> Purged:
        """Forget a page, or every page of a host, altogether.

        Unlike a deletion it leaves no record, so an older version of the page would be taken again.

        `host`: The host whose pages to forget, lower case, without a port; not its subdomains.

        `url`: The page to forget; this or a host.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/purge", Purged, body={"host": host, "url": url}))


class AsyncPagesCalls(AsyncCaller):
    """Operations of the tag `pages`, to be awaited."""

    async def delete_page(self, url: str, *, fetched_at: datetime | None = None) -> Taken:
        """Record that a page is gone.

        One that is not on record is recorded as gone, too, with the outcome `confirmed`.

        `url`: The page.

        `fetched_at`: When it was found to be gone; RFC 3339, now where none is given, at most 24 hours ahead.

        A server with tokens asks for one with the role `write`.
        """
        return await self.ask(Call("DELETE", "/v1/pages", Taken, query={"url": url, "fetched_at": fetched_at}))

    async def purge(self, *, host: str | None = None, url: str | None = None) -> Purged:
        """Forget a page, or every page of a host, altogether.

        Unlike a deletion it leaves no record, so an older version of the page would be taken again.

        `host`: The host whose pages to forget, lower case, without a port; not its subdomains.

        `url`: The page to forget; this or a host.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("POST", "/v1/purge", Purged, body={"host": host, "url": url}))
