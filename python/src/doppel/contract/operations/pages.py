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

        A page that is not on record is also recorded as gone, with the outcome `confirmed`.

        `url`: URL of the page.

        `fetched_at`: Time at which the page was found to be gone, in RFC 3339, at most 24 hours ahead.
        Default: now.

        A server with tokens asks for one with the role `write`.
        """
        return self.ask(Call("DELETE", "/v1/pages", Taken, query={"url": url, "fetched_at": fetched_at}))

    def purge(self, *, host: str | None = None, url: str | None = None) -> Purged:
        """Purge a page, or every page of a host, without leaving a record.

        A purge differs from a deletion: because no record is left, the service would accept an older version
        of the page again.

        `host`: Host whose pages to purge, in lower case and without a port. Pages of its subdomains are not
        purged.

        `url`: URL of the page to purge. A purge has either this field or `host`.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/purge", Purged, body={"host": host, "url": url}))


class AsyncPagesCalls(AsyncCaller):
    """Operations of the tag `pages`, to be awaited."""

    async def delete_page(self, url: str, *, fetched_at: datetime | None = None) -> Taken:
        """Record that a page is gone.

        A page that is not on record is also recorded as gone, with the outcome `confirmed`.

        `url`: URL of the page.

        `fetched_at`: Time at which the page was found to be gone, in RFC 3339, at most 24 hours ahead.
        Default: now.

        A server with tokens asks for one with the role `write`.
        """
        return await self.ask(Call("DELETE", "/v1/pages", Taken, query={"url": url, "fetched_at": fetched_at}))

    async def purge(self, *, host: str | None = None, url: str | None = None) -> Purged:
        """Purge a page, or every page of a host, without leaving a record.

        A purge differs from a deletion: because no record is left, the service would accept an older version
        of the page again.

        `host`: Host whose pages to purge, in lower case and without a port. Pages of its subdomains are not
        purged.

        `url`: URL of the page to purge. A purge has either this field or `host`.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("POST", "/v1/purge", Purged, body={"host": host, "url": url}))
