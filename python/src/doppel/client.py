"""The client that waits for each answer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

import httpx
import msgspec

from .call import Answer, Call
from .closing import Closing
from .connection import Connection, checked, refused, seconds_to_wait, unreachable
from .contract.operations import Operations
from .contract.types import ExportLine, LineAnswer, Taken
from .errors import DoppelError, Unexpected
from .feed import Feed
from .recording import BYTES_MAX, LINES_MAX, AnyPage, Batch, batches, line
from .retries import Attempts, Retries
from .streams import Chunks, Lines


class Client(Closing, Operations):
    """A client of a Doppel server, with a method for every operation of its contract.

    `url` is where the server is: `DOPPEL_SERVER`, or else http://127.0.0.1:7700, where none is given. `token` is sent with every
    request: `DOPPEL_TOKEN` where none is given. `ca` is a file of PEM with the authority of a server that the system does not know,
    `client_cert` one with a certificate and its key. `timeout` is in seconds, and holds for each pause of the server; where a call
    has the server wait, that comes on top. `transport` is for tests.

    A client keeps connections open and is safe to use from several threads. Close it, or use it in a `with`.

    >>> import doppel
    >>> with doppel.Server() as server, doppel.Client(server.url) as client:
    ...     text = " ".join(f"word{n}" for n in range(50))
    ...     pages = [{"url": f"https://example.org/{name}", "text": text} for name in ("a", "b")]
    ...     [answer.outcome for answer in client.record_pages(pages)]
    ...     client.flush(wait=True).done
    ...     client.get_status("https://example.org/b").duplicate_of
    ['pending', 'pending']
    True
    'https://example.org/a'
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection.of(url, token, ca, client_cert, timeout)
        self._retries = retries or Retries()
        self._answered = False
        self._http = httpx.Client(
            base_url=self._connection.url,
            headers=self._connection.headers,
            verify=self._connection.verify,
            transport=transport,
        )

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._connection.url

    def close(self) -> None:
        """Closes all connections."""
        self._http.close()

    def ask(self, call: Call[Answer]) -> Answer:
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
        content = checked(self._send(request, attempts))
        try:
            return call.decode(content)
        except msgspec.MsgspecError as error:
            raise Unexpected(f"{call.method} {call.path}: {error}") from error

    def _send(self, request: httpx.Request, attempts: Attempts, *, stream: bool = False) -> httpx.Response:
        """Sends a request until it is answered with a success, or an attempt is final."""
        while True:
            try:
                response = self._http.send(request, stream=stream)
                self._answered = True
                if response.is_success:
                    return response
                response.read()
                response.close()
                error: DoppelError = refused(response)
            except httpx.HTTPError as failed:
                error = unreachable(self.url, failed, answered=self._answered)
                error.__cause__ = failed
            wait = attempts.after(error, answered=self._answered)
            if wait is None:
                raise error
            time.sleep(wait)

    def record_page(self, page: AnyPage) -> Taken:
        """Records one page: a `Page`, or a dictionary with its fields. Raises `BadRequest` if it is none.

        A server with tokens asks for one with the role `write`.
        """
        attempts = Attempts(self._retries)
        content = checked(self._post_pages(line(page), "application/json", attempts))
        return msgspec.json.decode(content, type=Taken)

    def record_pages(
        self, pages: Iterable[AnyPage], *, lines_max: int = LINES_MAX, bytes_max: int = BYTES_MAX
    ) -> Iterator[LineAnswer]:
        """Records pages as they come, in batches of at most so many pages and bytes, and gives an answer for each, in their order.

        The answers have to be read, or nothing is sent: `for answer in client.record_pages(pages): ...`. `answer.outcome` says what
        became of a page, `answer.error` why it was not taken, `answer.line` which it was, counted from 1. A page that is wrong harms
        no other. What the server takes later is sent again after the time that it names, as `Retries` says; if that does not help,
        the answer has the error code `retry` where others of the batch were taken, and `Overloaded` or `Unavailable` is raised where
        none was. Pages of one URL keep their order. One batch is in memory at a time.

        A server with tokens asks for one with the role `write`.
        """
        for batch in batches(pages, lines_max, bytes_max):
            self._record(batch)
            yield from batch.answers()

    def _record(self, batch: Batch) -> None:
        attempts = Attempts(self._retries)
        while True:
            response = self._post_pages(batch.body(), "application/x-ndjson", attempts)
            settled, again = batch.take(checked(response))
            if settled:
                attempts.progressed()
            wait = attempts.wait(seconds_to_wait(response)) if again else None
            if wait is None:
                return
            time.sleep(wait)

    def _post_pages(self, content: bytes, kind: str, attempts: Attempts) -> httpx.Response:
        headers = {"content-type": kind}
        times = self._connection.times()
        request = self._http.build_request("POST", "/v1/pages", content=content, headers=headers, timeout=times)
        return self._send(request, attempts)

    def changes(self, cursor: str | None = None, *, follow: bool = False, wait: int = 30, limit: int = 1_000) -> Feed:
        """The change feed from a cursor on, or from its start, as an iterable: see `Feed`.

        It ends where nothing more has changed; with `follow` it waits for what comes, `wait` seconds (at most 60) with each request.
        `limit` is how many events, at most 10,000, are fetched at once. Raises `CursorGone` where the feed cannot go on at the
        cursor: then read `export_pages`, and go on with its cursor.

        A server with tokens asks for one with the role `read`.
        """
        return Feed(self.get_changes, cursor, follow=follow, wait=wait, limit=limit)

    def export_pages(self, *, market: str | None = None) -> Lines[ExportLine]:
        """Every live page, sorted by URL, as an iterator that holds one line. `cursor` of it is where the change feed goes on.

        `market`: prefer winners of a market, by its name or as a host suffix such as `de`.

        It is sent once, and raises `Incomplete` where the answer breaks off. Close it, or use it in a `with`, unless it is read to
        its end. A server with tokens asks for one with the role `read`.
        """
        return Lines(self._stream("/v1/export", {"market": market}), ExportLine)

    def get_backup(self) -> Chunks:
        """A backup for `doppel restore`, as an iterator of bytes: write all of them to a file.

        Raises `Incomplete` where the answer breaks off. A server with tokens asks for one with the role `operate`.
        """
        return Chunks(self._stream("/v1/backup", {}))

    def get_sample(self, *, contents: int | None = None) -> Chunks:
        """Signatures of some of the contents that are stored, 1 to 100,000 of them, as an iterator of bytes.

        A server with tokens asks for one with the role `read`.
        """
        return Chunks(self._stream("/v1/sample", {"contents": contents}))

    def _stream(self, path: str, query: dict[str, object]) -> httpx.Response:
        parameters = {name: str(value) for name, value in query.items() if value is not None}
        request = self._http.build_request("GET", path, params=parameters, timeout=self._connection.times())
        return self._send(request, Attempts(self._retries), stream=True)
