"""Doppel in Scrapy: a pipeline that records pages, and a spider middleware that spares requests and tells of moved and dead pages.

Settings of the project:

    ITEM_PIPELINES = {"doppel_scrapy.DoppelPipeline": 900}
    SPIDER_MIDDLEWARES = {"doppel_scrapy.DoppelSpiderMiddleware": 60}
    REDIRECT_ENABLED = False  # the middleware follows redirects, so that it hears of them
    DOPPEL_SERVER = "http://127.0.0.1:7700"
    DOPPEL_TOKEN = "..."  # where the server has tokens: one with the role `write`
    DOPPEL_RECHECK = 7 * 86400  # seconds after which a page that was a duplicate, or gone, is fetched again
    DOPPEL_BATCH = 500  # pages that are recorded together

An item is a dictionary with the fields of a push: `url`, `fetched_at`, and one of `text`, `html`, `redirect_to` and `dead`. The middleware
stands between the engine and HttpErrorMiddleware (50), so that it hears of errors before they are dropped. Tried with Scrapy 2.19.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

import doppel

STATUSES_MAX = 1_000
"""URLs in one question: the most that the server takes."""
MOVED = {301, 302, 303, 307, 308}
GONE = {404, 410}

logger = logging.getLogger(__name__)


def client_of(crawler: Crawler) -> doppel.AsyncClient:
    """The client that the settings describe."""
    url = crawler.settings.get("DOPPEL_SERVER")
    if not url:
        raise NotConfigured("DOPPEL_SERVER is not set")
    return doppel.AsyncClient(url, token=crawler.settings.get("DOPPEL_TOKEN"))


class DoppelPipeline:
    """Records items in batches. A page that the server does not take is counted and logged; where it takes none after all retries, the
    pages stay and are sent with the next ones.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._client = client_of(crawler)
        self._stats = crawler.stats
        self._batch = crawler.settings.getint("DOPPEL_BATCH", 500)
        self._waiting: list[dict[str, Any]] = []
        # Pages of one URL are recorded in the order in which they came.
        self._sending = asyncio.Lock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self._waiting.append(item)
        if len(self._waiting) >= self._batch:
            await self._send(self._batch)
        return item

    async def close_spider(self) -> None:
        await self._send(1)
        await self._client.aclose()

    async def _send(self, at_least: int) -> None:
        async with self._sending:
            # Another item may have had them sent meanwhile.
            while len(self._waiting) >= at_least:
                pages = self._waiting[: self._batch]
                async for answer in self._client.record_pages(pages):
                    if answer.error is None:
                        self._stats.inc_value(f"doppel/recorded/{answer.outcome}")
                    else:
                        self._stats.inc_value(f"doppel/refused/{answer.error.code}")
                        logger.warning("Doppel did not take a page: %s: %s", answer.url, answer.error.reason)
                del self._waiting[: len(pages)]


class DoppelSpiderMiddleware:
    """Spares requests for pages that Doppel knows as duplicates of a kept page, or as gone, and heard of lately. Makes items of
    redirects and of pages that are gone, and follows the former.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._client = client_of(crawler)
        self._stats = crawler.stats
        self._recheck = timedelta(seconds=crawler.settings.getfloat("DOPPEL_RECHECK", 7 * 86400))
        self._spared: dict[str, bool] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        some: list[Any] = []
        async for one in start:
            some.append(one)
            if len(some) == STATUSES_MAX:
                for left in await self._left(some):
                    yield left
                some = []
        for left in await self._left(some):
            yield left

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        some = [one async for one in result]
        for left in await self._left(some):
            yield left

    def process_spider_exception(self, response: Response, exception: Exception) -> AsyncIterator[Any] | None:
        if isinstance(exception, HttpError) and response.status in MOVED | GONE:
            return self._moved_or_gone(response)
        return None

    async def _moved_or_gone(self, response: Response) -> AsyncIterator[Any]:
        page: dict[str, Any] = {"url": response.url, "fetched_at": datetime.now(UTC)}
        target = response.headers.get("Location")
        if response.status in GONE:
            yield {**page, "dead": True}
        elif target is not None:
            url = response.urljoin(target.decode("latin-1"))
            yield {**page, "redirect_to": url}
            asked = response.request
            for left in await self._left([Request(url, callback=asked.callback, cb_kwargs=asked.cb_kwargs)]):
                yield left

    async def _left(self, some: list[Any]) -> list[Any]:
        """What is not spared."""
        urls = list(dict.fromkeys(one.url for one in some if isinstance(one, Request) and one.url not in self._spared))
        oldest = datetime.now(UTC) - self._recheck
        for start in range(0, len(urls), STATUSES_MAX):
            part = urls[start : start + STATUSES_MAX]
            told = await self._client.get_statuses(part)
            for url, page in zip(part, told.pages, strict=True):
                spared = (
                    page.status in ("duplicate", "dead") and page.fetched_at is not None and page.fetched_at >= oldest
                )
                self._spared[url] = spared
                if spared:
                    self._stats.inc_value(f"doppel/spared/{page.status}")
        return [one for one in some if not (isinstance(one, Request) and self._spared[one.url])]
