"""What a client does with refusals: retries within bounds, exceptions, tokens and certificates."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import doppel

SOON = doppel.Retries(pause=0.001, pause_max=0.001)


def problem(kind: str, status: int, retry_after: int | None = None) -> httpx.Response:
    body = {"type": f"urn:doppel:problem:{kind}", "title": "No", "status": status, "detail": f"this is {kind}"}
    headers = {"content-type": "application/problem+json"}
    if retry_after is not None:
        headers["retry-after"] = str(retry_after)
        body["retry_after"] = retry_after
    return httpx.Response(status, json=body, headers=headers)


class Script(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers requests one after another as it was told, and remembers them."""

    def __init__(self, *answers: httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._next(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self._next(request)

    def _next(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, httpx.Response):
            return answer(request)
        if not hasattr(answer, "_content"):
            return answer
        # An answer is read once, and a script may be played twice.
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return httpx.Response(answer.status_code, headers=headers, content=answer.content)


def lines(*answers: dict[str, object], retry_after: int | None = None) -> httpx.Response:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return httpx.Response(200, content="".join(json.dumps(answer) + "\n" for answer in answers), headers=headers)


def taken(url: str) -> dict[str, object]:
    return {"url": url, "outcome": "pending"}


def later(line: int) -> dict[str, object]:
    return {"line": line, "error": {"code": "retry", "reason": "the backlog is full"}}


PURGED = httpx.Response(200, json={"purged": 1})


@pytest.mark.parametrize(
    "refusal",
    [problem("backlog-full", 429, 1), problem("busy", 503, 1), httpx.ConnectError("no"), httpx.ReadError("broken off")],
)
def test_what_may_succeed_later_is_asked_again(refusal: httpx.Response | Exception) -> None:
    script = Script(refusal, PURGED)
    with doppel.Client("http://x", transport=script, retries=SOON) as client:
        assert client.purge(url="https://a.example/").purged == 1
    assert len(script.requests) == 2
    assert script.requests[0].content == script.requests[1].content == b'{"url":"https://a.example/"}'

    script = Script(refusal, PURGED)

    async def main() -> int:
        async with doppel.AsyncClient("http://x", transport=script, retries=SOON) as client:
            return (await client.purge(url="https://a.example/")).purged

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (problem("read-only", 503), doppel.Unavailable),
        (problem("rebalancing", 409, 1), doppel.Conflict),
        (problem("disk-full", 507, 1), doppel.Unavailable),
        (problem("internal", 500), doppel.Failed),
        (problem("cursor-gone", 410), doppel.CursorGone),
        (problem("too-large", 413), doppel.TooLarge),
        (problem("unauthorized", 401), doppel.Unauthorized),
        (problem("forbidden", 403), doppel.Forbidden),
        (problem("not-found", 404), doppel.NotFound),
        (problem("a-kind-of-a-later-release", 422), doppel.BadRequest),
        (httpx.Response(502, text="<h1>Bad gateway</h1>"), doppel.Failed),
        (httpx.Response(200, text="<h1>Not Doppel</h1>"), doppel.Unexpected),
        (httpx.Response(301, headers={"location": "https://y/"}), doppel.Unexpected),
    ],
)
def test_a_refusal_is_an_exception_of_its_class(refusal: httpx.Response, expected: type[doppel.DoppelError]) -> None:
    if refusal.status_code == 507:
        refusal.headers.pop("retry-after")
        refusal = problem("disk-full", 507)
    script = Script(refusal)
    with doppel.Client("http://x", transport=script, retries=SOON) as client, pytest.raises(expected) as raised:
        client.get_quality()
    assert type(raised.value) is expected
    assert len(script.requests) == 1
    if isinstance(raised.value, doppel.Refused):
        assert raised.value.status == refusal.status_code


def test_retries_end() -> None:
    def busy(_: httpx.Request) -> httpx.Response:
        return problem("busy", 503, 7)

    script = Script(*[busy] * 10)
    few = doppel.Retries(attempts=3, pause_max=0.001)
    with doppel.Client("http://x", transport=script, retries=few) as client:
        with pytest.raises(doppel.Unavailable) as raised:
            client.get_quality()
        assert (raised.value.kind, raised.value.retry_after) == ("busy", 7)
        assert len(script.requests) == 3
    script = Script(*[busy] * 10)
    # The first wait would already be too long.
    short = doppel.Retries(seconds=1, pause_max=60)
    with doppel.Client("http://x", transport=script, retries=short) as client, pytest.raises(doppel.Unavailable):
        client.get_quality()
    assert len(script.requests) == 1
    script = Script(httpx.ConnectError("refused"))
    once = doppel.Retries(attempts=1)
    with (
        doppel.Client("http://x", transport=script, retries=once) as client,
        pytest.raises(doppel.Unreachable, match="http://x: refused"),
    ):
        client.get_quality()


def test_a_server_that_has_never_answered_is_given_up_soon(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # Nothing listens there any more.
    url, few = f"http://127.0.0.1:{port}", doppel.Retries(pause=0.05, unanswered=0.5)
    begun = time.monotonic()
    with (
        doppel.Client(url, retries=few) as client,
        pytest.raises(doppel.Unreachable, match="nothing has answered there yet"),
    ):
        client.get_status("https://a.example/")

    async def main() -> None:
        async with doppel.AsyncClient(url, retries=few) as client:
            await client.get_status("https://a.example/")

    with pytest.raises(doppel.Unreachable, match="nothing has answered there yet"):
        asyncio.run(main())
    assert time.monotonic() - begun < 5
    assert "trying again in 0.05 s" in caplog.text
    assert doppel.Retries().unanswered <= 5


def test_a_server_that_has_answered_is_waited_for() -> None:
    script = Script(PURGED, *[httpx.ConnectError("refused")] * 5, PURGED)
    patient = doppel.Retries(pause=0.001, pause_max=0.001, unanswered=0)
    with doppel.Client("http://x", transport=script, retries=patient) as client:
        client.purge(url="https://a.example/")
        assert client.purge(url="https://a.example/").purged == 1


def test_lines_are_sent_again_alone_and_in_order() -> None:
    pages = [{"url": f"https://a.example/{n}", "text": ""} for n in range(4)]
    script = Script(
        problem("backlog-full", 429, 1),
        lines(taken("0"), later(2), {"line": 3, "error": {"code": "invalid", "reason": "no"}}, later(4), retry_after=1),
        lines(taken("1"), later(2), retry_after=1),
        lines(taken("3")),
    )
    with doppel.Client("http://x", transport=script, retries=SOON) as client:
        answers = list(client.record_pages(pages))
    assert [(answer.line, answer.url) for answer in answers] == [(1, "0"), (2, "1"), (3, None), (4, "3")]
    sent = [[json.loads(line)["url"][-1] for line in request.content.splitlines()] for request in script.requests]
    assert sent == [["0", "1", "2", "3"], ["0", "1", "2", "3"], ["1", "3"], ["3"]]


def test_lines_that_are_never_taken_say_so() -> None:
    pages = [{"url": f"https://a.example/{n}", "text": ""} for n in range(2)]
    twice = doppel.Retries(attempts=2, pause_max=0.001)
    answers = [lines(taken("0"), later(2), retry_after=1), lines(later(1), retry_after=1), lines(later(1))]

    async def main() -> list[str | None]:
        async with doppel.AsyncClient("http://x", transport=Script(*answers), retries=twice) as client:
            return [answer.error and answer.error.code async for answer in client.record_pages(pages)]

    assert asyncio.run(main()) == [None, "retry"]
    with doppel.Client("http://x", transport=Script(*answers), retries=twice) as client:
        assert [answer.error and answer.error.code for answer in client.record_pages(pages)] == [None, "retry"]


def test_too_few_answers_are_noticed() -> None:
    with (
        doppel.Client("http://x", transport=Script(lines(taken("0")))) as client,
        pytest.raises(doppel.Unexpected, match="2 pages were sent and 1 answers came"),
    ):
        list(client.record_pages([{"url": "0", "text": ""}, {"url": "1", "text": ""}]))


class BrokenOff(httpx.SyncByteStream):
    """An export that ends in the middle."""

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"url":"https://a.example/","status":"unique"}\n{"url":'
        raise httpx.RemoteProtocolError("peer closed connection")


def test_an_export_that_breaks_off_is_no_export() -> None:
    answer = httpx.Response(200, stream=BrokenOff(), headers={"doppel-cursor": "1.2"})
    with doppel.Client("http://x", transport=Script(answer)) as client, client.export_pages() as export:
        assert export.cursor == "1.2"
        assert next(export).url == "https://a.example/"
        with pytest.raises(doppel.Incomplete, match="peer closed"):
            next(export)


def test_tokens_and_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, key, cert = tmp_path / "tokens", tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [doppel.program(), "token", "new", "reader", "--role", "read", "--tokens", tokens]
    token = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    openssl = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*openssl.split(), *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    monkeypatch.delenv("DOPPEL_TOKEN", raising=False)
    with doppel.Server(tokens=tokens, tls_cert=cert, tls_key=key) as server:
        assert server.url.startswith("https://")
        once = doppel.Retries(attempts=1)
        with server.client(retries=once) as client, pytest.raises(doppel.Unreachable, match="certificate"):
            client.get_health()
        with server.client(ca=cert) as client, pytest.raises(doppel.Unauthorized):
            client.get_quality()
        with server.client(ca=cert, token=token) as client:
            assert client.get_quality().counters.live == 0
            with pytest.raises(doppel.Forbidden, match="reader"):
                client.flush()
        monkeypatch.setenv("DOPPEL_TOKEN", token)
        monkeypatch.setenv("DOPPEL_SERVER", server.url)
        with doppel.Client(ca=cert) as client:
            assert client.get_quality().counters.live == 0
