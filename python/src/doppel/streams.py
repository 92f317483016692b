"""Answers that are read while they come: exports, backups and samples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Generic, Self, TypeVar

import httpx
import msgspec

from .closing import AsyncClosing, Closing
from .errors import DoppelError, Incomplete

Item = TypeVar("Item", bound=msgspec.Struct)


class _LineCutter:
    """Cuts chunks into lines. Holds what has come of the next line."""

    def __init__(self) -> None:
        self._rest = b""

    def cut(self, chunk: bytes) -> list[bytes]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        return [line for line in lines if line]

    def end(self) -> None:
        """Every line ends with a line feed, so what is left is half a line."""
        if self._rest:
            raise Incomplete("the answer ends within a line")


def _broken(error: httpx.HTTPError) -> Incomplete:
    return Incomplete(f"the answer broke off: {str(error) or type(error).__name__}")


class Chunks(Closing, Iterator[bytes]):
    """The bytes of an answer as they come. It is closed when it has been read to its end, or by `close` or a `with`."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = self._read()

    def _read(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_bytes()
        except httpx.HTTPError as error:
            raise _broken(error) from error
        finally:
            self.close()

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Reads no further."""
        self._response.close()


class Lines(Closing, Iterator[Item], Generic[Item]):
    """The lines of an answer as they come, each as its type. It is closed as `Chunks` are."""

    def __init__(self, response: httpx.Response, kind: type[Item]) -> None:
        self.cursor: str | None = response.headers.get("doppel-cursor")
        """Where the change feed goes on after this answer."""
        self._chunks = Chunks(response)
        self._decoder = msgspec.json.Decoder(kind)
        self._items = self._read()

    def _read(self) -> Iterator[Item]:
        cutter = _LineCutter()
        for chunk in self._chunks:
            for line in cutter.cut(chunk):
                yield self._decoder.decode(line)
        cutter.end()

    def __next__(self) -> Item:
        return next(self._items)

    def close(self) -> None:
        """Reads no further."""
        self._chunks.close()


class AsyncChunks(AsyncClosing, AsyncIterator[bytes]):
    """The bytes of an answer as they come: `async for`. The request is sent when the first is asked for, or by `async with`."""

    def __init__(self, send: Callable[[], Awaitable[httpx.Response]]) -> None:
        self._send = send
        self._opening = asyncio.Lock()
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def open(self) -> httpx.Response:
        """Sends the request, once, and gives the answer, whose body has not been read."""
        async with self._opening:
            if self._response is None:
                self._response = await self._send()
        return self._response

    async def _read(self) -> AsyncIterator[bytes]:
        response = await self.open()
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as error:
            raise _broken(error) from error
        finally:
            await self.aclose()

    async def __anext__(self) -> bytes:
        if self._chunks is None:
            self._chunks = self._read()
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Reads no further."""
        if self._response is not None:
            await self._response.aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self


class AsyncLines(AsyncClosing, AsyncIterator[Item], Generic[Item]):
    """The lines of an answer as they come, each as its type: `async for`, or within an `async with`."""

    def __init__(self, send: Callable[[], Awaitable[httpx.Response]], kind: type[Item]) -> None:
        self._chunks = AsyncChunks(send)
        self._decoder = msgspec.json.Decoder(kind)
        self._items: AsyncIterator[Item] | None = None
        self._cursor: str | None = None
        self._is_open = False

    @property
    def cursor(self) -> str | None:
        """Where the change feed goes on after this answer. Raises `DoppelError` before the answer has begun."""
        if not self._is_open:
            raise DoppelError("the answer has not begun: read its first line, or use `async with`")
        return self._cursor

    async def _begin(self) -> None:
        response = await self._chunks.open()
        self._cursor = response.headers.get("doppel-cursor")
        self._is_open = True

    async def _read(self) -> AsyncIterator[Item]:
        await self._begin()
        cutter = _LineCutter()
        async for chunk in self._chunks:
            for line in cutter.cut(chunk):
                yield self._decoder.decode(line)
        cutter.end()

    async def __anext__(self) -> Item:
        if self._items is None:
            self._items = self._read()
        return await anext(self._items)

    async def aclose(self) -> None:
        """Reads no further."""
        await self._chunks.aclose()

    async def __aenter__(self) -> Self:
        await self._begin()
        return self
