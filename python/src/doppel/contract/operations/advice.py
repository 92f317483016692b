"""Operations of the contract: advice.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from ...call import AsyncCaller, Call, Caller
from ..types import (
    Advice,
    Explanation,
    Probed,
    StatusAnswers,
    Winners,
)


class AdviceCalls(Caller):
    """Operations of the tag `advice`."""

    def explain_pair(self, a: str, b: str) -> Explanation:
        """Explain why two pages are duplicates or not.

        `a`: URL of one page.

        `b`: URL of the other page.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/explain", Explanation, query={"a": a, "b": b}))

    def probe_page(
        self, *, html: str | None = None, market: str | None = None, text: str | None = None, url: str | None = None
    ) -> Probed:
        """Show what a page would be, without storing it.

        Under the policies `content` and `copies`, the answer for HTML describes in `main_content` which part
        of the page is compared, and shows the beginning of the text that each rule leaves out.

        `html`: HTML document of at most 16 MiB. A probe has either this field or `text`.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        `text`: Plain text or Markdown of at most 16 MiB. A probe has either this field or `html`.

        `url`: URL at which the page was found. Relative links of a redirect are resolved against it, and the
        stored page with this URL does not count as a partner. A policy that reads the site (`by-site`,
        `copies`) needs a URL with a host.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call("POST", "/v1/probe", Probed, body={"html": html, "market": market, "text": text, "url": url})
        )

    def get_status(self, url: str, *, market: str | None = None) -> Advice:
        """Look up the status of a page.

        The status `duplicate` is verified on the current contents of the page and of the page in
        `duplicate_of`. Keep a page whose status is `winner`, `unique`, `secondary` or `pending`.

        `url`: URL of the page.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/status", Advice, query={"url": url, "market": market}))

    def get_statuses(self, urls: list[str], *, market: str | None = None) -> StatusAnswers:
        """Look up the statuses of many pages.

        `urls`: URLs of the pages, at most 1,000. A text that is not a page URL gets an error of its own in
        the answer.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("POST", "/v1/status", StatusAnswers, body={"urls": urls, "market": market}))

    def get_winner_rules(self) -> Winners:
        """Show the rules by which winners are elected, and the markets.

        The rules are fixed when the collection is created. The markets are fixed when the server starts.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/winners", Winners))


class AsyncAdviceCalls(AsyncCaller):
    """Operations of the tag `advice`, to be awaited."""

    async def explain_pair(self, a: str, b: str) -> Explanation:
        """Explain why two pages are duplicates or not.

        `a`: URL of one page.

        `b`: URL of the other page.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/explain", Explanation, query={"a": a, "b": b}))

    async def probe_page(
        self, *, html: str | None = None, market: str | None = None, text: str | None = None, url: str | None = None
    ) -> Probed:
        """Show what a page would be, without storing it.

        Under the policies `content` and `copies`, the answer for HTML describes in `main_content` which part
        of the page is compared, and shows the beginning of the text that each rule leaves out.

        `html`: HTML document of at most 16 MiB. A probe has either this field or `text`.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        `text`: Plain text or Markdown of at most 16 MiB. A probe has either this field or `html`.

        `url`: URL at which the page was found. Relative links of a redirect are resolved against it, and the
        stored page with this URL does not count as a partner. A policy that reads the site (`by-site`,
        `copies`) needs a URL with a host.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("POST", "/v1/probe", Probed, body={"html": html, "market": market, "text": text, "url": url})
        )

    async def get_status(self, url: str, *, market: str | None = None) -> Advice:
        """Look up the status of a page.

        The status `duplicate` is verified on the current contents of the page and of the page in
        `duplicate_of`. Keep a page whose status is `winner`, `unique`, `secondary` or `pending`.

        `url`: URL of the page.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/status", Advice, query={"url": url, "market": market}))

    async def get_statuses(self, urls: list[str], *, market: str | None = None) -> StatusAnswers:
        """Look up the statuses of many pages.

        `urls`: URLs of the pages, at most 1,000. A text that is not a page URL gets an error of its own in
        the answer.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("POST", "/v1/status", StatusAnswers, body={"urls": urls, "market": market}))

    async def get_winner_rules(self) -> Winners:
        """Show the rules by which winners are elected, and the markets.

        The rules are fixed when the collection is created. The markets are fixed when the server starts.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/winners", Winners))
