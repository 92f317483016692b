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
        """Why are two pages, or are they not, duplicates?

        `a`: One page.

        `b`: The other.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/explain", Explanation, query={"a": a, "b": b}))

    def probe_page(
        self, *, html: str | None = None, market: str | None = None, text: str | None = None, url: str | None = None
    ) -> Probed:
        """What would this text be? Nothing is stored.

        Under the policies `content` and `copies` the answer to HTML says in `main_content` what of it is
        compared, and shows the beginning of what each rule leaves out.

        `html`: An HTML document of at most 16 MiB, or

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        `text`: plain text or Markdown of at most 16 MiB.

        `url`: Where it was found: relative links of a redirect are resolved against it, and what is stored
        under it is not taken for a partner. A policy that reads the site (`by-site`, `copies`) needs it, with
        a host.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call("POST", "/v1/probe", Probed, body={"html": html, "market": market, "text": text, "url": url})
        )

    def get_status(self, url: str, *, market: str | None = None) -> Advice:
        """What is this page?

        `duplicate` is verified on the present contents of the page and of the one in `duplicate_of`; every
        other status means: keep the page.

        `url`: The page.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/status", Advice, query={"url": url, "market": market}))

    def get_statuses(self, urls: list[str], *, market: str | None = None) -> StatusAnswers:
        """What are these pages?

        `urls`: The pages, at most 1,000. What is no page URL is answered as such.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("POST", "/v1/status", StatusAnswers, body={"urls": urls, "market": market}))

    def get_winner_rules(self) -> Winners:
        """By which rules does a page win?

        The rules are fixed when the collection is created; the markets are those that the server was started
        with.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/winners", Winners))


class AsyncAdviceCalls(AsyncCaller):
    """Operations of the tag `advice`, to be awaited."""

    async def explain_pair(self, a: str, b: str) -> Explanation:
        """Why are two pages, or are they not, duplicates?

        `a`: One page.

        `b`: The other.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/explain", Explanation, query={"a": a, "b": b}))

    async def probe_page(
        self, *, html: str | None = None, market: str | None = None, text: str | None = None, url: str | None = None
    ) -> Probed:
        """What would this text be? Nothing is stored.

        Under the policies `content` and `copies` the answer to HTML says in `main_content` what of it is
        compared, and shows the beginning of what each rule leaves out.

        `html`: An HTML document of at most 16 MiB, or

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        `text`: plain text or Markdown of at most 16 MiB.

        `url`: Where it was found: relative links of a redirect are resolved against it, and what is stored
        under it is not taken for a partner. A policy that reads the site (`by-site`, `copies`) needs it, with
        a host.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("POST", "/v1/probe", Probed, body={"html": html, "market": market, "text": text, "url": url})
        )

    async def get_status(self, url: str, *, market: str | None = None) -> Advice:
        """What is this page?

        `duplicate` is verified on the present contents of the page and of the one in `duplicate_of`; every
        other status means: keep the page.

        `url`: The page.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/status", Advice, query={"url": url, "market": market}))

    async def get_statuses(self, urls: list[str], *, market: str | None = None) -> StatusAnswers:
        """What are these pages?

        `urls`: The pages, at most 1,000. What is no page URL is answered as such.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("POST", "/v1/status", StatusAnswers, body={"urls": urls, "market": market}))

    async def get_winner_rules(self) -> Winners:
        """By which rules does a page win?

        The rules are fixed when the collection is created; the markets are those that the server was started
        with.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/winners", Winners))
