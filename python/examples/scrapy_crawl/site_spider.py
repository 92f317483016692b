"""Crawls one site again and again: `scrapy runspider site_spider.py -a site=http://127.0.0.1:8000/`, with `doppel serve` running.

It follows the links of the site, and visits all pages that Doppel has on record, so that it also notices what became of pages that nobody
links to any more. Pages that are duplicates, or gone, are not fetched again for a week.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

import doppel


class SiteSpider(Spider):
    """`site` is the page to begin with; only pages below it are fetched."""

    name = "site"
    custom_settings = {  # noqa: RUF012
        "ITEM_PIPELINES": {"doppel_scrapy.DoppelPipeline": 900},
        "SPIDER_MIDDLEWARES": {"doppel_scrapy.DoppelSpiderMiddleware": 60},
        "REDIRECT_ENABLED": False,
        "DOPPEL_SERVER": os.environ.get("DOPPEL_SERVER", "http://127.0.0.1:7700"),
        "DOPPEL_TOKEN": os.environ.get("DOPPEL_TOKEN"),
    }

    def __init__(self, site: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.site = site

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.site)
        settings = self.settings
        async with doppel.AsyncClient(settings["DOPPEL_SERVER"], token=settings["DOPPEL_TOKEN"]) as client:
            async for page in client.export_pages():
                if page.url.startswith(self.site):
                    yield Request(page.url)

    def parse(self, response: Response) -> Iterator[Request | dict[str, Any]]:
        if not isinstance(response, TextResponse):
            return
        yield {"url": response.url, "html": response.text, "fetched_at": datetime.now(UTC)}
        for link in response.css("a::attr(href)").getall():
            url = response.urljoin(link)
            if url.startswith(self.site):
                yield Request(url)
