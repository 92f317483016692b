"""The client whose answers are awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable

import httpx
import msgspec

from .call import Answer, Call
from .closing import AsyncClosing
from .connection import Connection, checked, refused, seconds_to_wait, unreachable
from .contract.operations import AsyncOperations
from .contract.types import ChangesAnswer, ExportLine, LineAnswer, Taken
from .errors import DoppelError, Unexpected
from .feed import AsyncFeed
from .recording import BYTES_MAX, LINES_MAX, AnyPage, Batch, Batches, line
from .retries import Attempts, Retries
from .streams import AsyncChunks, AsyncLines


class AsyncClient(AsyncClosing, AsyncOperations):
    """A client of a Doppel server for asyncio. Its methods and parameters are those of `Client`, to be awaited.

    >>> import asyncio, doppel
    >>> async def main(url):
    ...     async with doppel.AsyncClient(url) as client:
    ...         await client.record_page({"url": "https://example.org/a", "text": "some words"})
    ...         await client.flush(wait=True)
    ...         return [page.url async for page in client.export_pages()]
    >>> with doppel.Server() as server:
    ...     asyncio.run(main(server.url))
    ['https://example.org/a']
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        client_cert: str | os.PathLike[str] | None = None,
        timeout: float = 120.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection.of(url, token, ca, client_cert, timeout)
        self._retries = retries or Retries()
        self._answered = False
        self._http = httpx.AsyncClient(
            base_url=self._connection.url,
            headers=self._connection.headers,
            verify=self._connection.verify,
            transport=transport,
        )

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._connection.url

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def ask(self, call: Call[Answer]) -> Answer:
        """Sends one request, again where the server says when. Raises a `DoppelError`."""
        headers = {} if call.body is None else {"content-type": "application/json"}
        request = self._http.build_request(
            call.method,
            call.path,
            params=call.parameters(),
            content=call.content(),
            headers=headers,
            timeout=self._connection.times(call.waits),
        )
        attempts = Attempts(self._retries if call.retried else Retries(attempts=1))
        content = checked(await self._send(request, attempts))
        try:
            return call.decode(content)
        except msgspec.MsgspecError as error:
            raise Unexpected(f"{call.method} {call.path}: {error}") from error

    async def _send(self, request: httpx.Request, attempts: Attempts, *, stream: bool = False) -> httpx.Response:
        """Sends a request until it is answered with a success, or an attempt is final."""
        while True:
            try:
                response = await self._http.send(request, stream=stream)
                self._answered = True
                if response.is_success:
                    return response
                await response.aread()
                await response.aclose()
                error: DoppelError = refused(response)
            except httpx.HTTPError as failed:
                error = unreachable(self.url, failed, answered=self._answered)
                error.__cause__ = failed
            wait = attempts.after(error, answered=self._answered)
            if wait is None:
                raise error
            await asyncio.sleep(wait)

    async def record_page(self, page: AnyPage) -> Taken:
        """Records one page, as `Client.record_page`."""
        attempts = Attempts(self._retries)
        content = checked(await self._post_pages(line(page), "application/json", attempts))
        return msgspec.json.decode(content, type=Taken)

    async def record_pages(
        self,
        pages: Iterable[AnyPage] | AsyncIterable[AnyPage],
        *,
        lines_max: int = LINES_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> AsyncIterator[LineAnswer]:
        """Records pages as they come, as `Client.record_pages`: `async for answer in client.record_pages(pages): ...`. The pages may
        come from an iterable or an asynchronous one.
        """
        collected = Batches(lines_max, bytes_max)
        async for page in _each(pages):
            if full := collected.add(page):
                async for answer in self._record(full):
                    yield answer
        if rest := collected.rest():
            async for answer in self._record(rest):
                yield answer

    async def _record(self, batch: Batch) -> AsyncIterator[LineAnswer]:
        attempts = Attempts(self._retries)
        while True:
            response = await self._post_pages(batch.body(), "application/x-ndjson", attempts)
            settled, again = batch.take(checked(response))
            if settled:
                attempts.progressed()
            wait = attempts.wait(seconds_to_wait(response)) if again else None
            if wait is None:
                break
            await asyncio.sleep(wait)
        for answer in batch.answers():
            yield answer

    async def _post_pages(self, content: bytes, kind: str, attempts: Attempts) -> httpx.Response:
        headers = {"content-type": kind}
        times = self._connection.times()
        request = self._http.build_request("POST", "/v1/pages", content=content, headers=headers, timeout=times)
        return await self._send(request, attempts)

    def changes(
        self, cursor: str | None = None, *, follow: bool = False, wait: int = 30, limit: int = 1_000
    ) -> AsyncFeed:
        """The change feed from a cursor on, or from its start, as `Client.changes`: `async for change in client.changes(): ...`."""

        async def get(cursor: str | None, wait: int | None, limit: int) -> ChangesAnswer:
            return await self.get_changes(cursor=cursor, wait=wait, limit=limit)

        return AsyncFeed(get, cursor, follow=follow, wait=wait, limit=limit)

    def export_pages(self, *, market: str | None = None) -> AsyncLines[ExportLine]:
        """Every live page, sorted by URL, as `Client.export_pages`: `async for page in client.export_pages(): ...`. To know its cursor
        before the first line, use `async with`.
        """
        return AsyncLines(lambda: self._stream("/v1/export", {"market": market}), ExportLine)

    def get_backup(self) -> AsyncChunks:
        """A backup for `doppel restore`, as `Client.get_backup`: `async for chunk in client.get_backup(): ...`."""
        return AsyncChunks(lambda: self._stream("/v1/backup", {}))

    def get_sample(self, *, contents: int | None = None) -> AsyncChunks:
        """Signatures of some of the contents that are stored, as `Client.get_sample`."""
        return AsyncChunks(lambda: self._stream("/v1/sample", {"contents": contents}))

    async def _stream(self, path: str, query: dict[str, object]) -> httpx.Response:
        parameters = {name: str(value) for name, value in query.items() if value is not None}
        request = self._http.build_request("GET", path, params=parameters, timeout=self._connection.times())
        return await self._send(request, Attempts(self._retries), stream=True)


async def _each(pages: Iterable[AnyPage] | AsyncIterable[AnyPage]) -> AsyncIterator[AnyPage]:
    """Both kinds of iterables as one."""
    if isinstance(pages, AsyncIterable):
        async for page in pages:
            yield page
    else:
        for page in pages:
            yield page
