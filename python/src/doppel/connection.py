"""Where a server is and how it is spoken to: address, token, certificates, times."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx

from .errors import DoppelError, Refused, Unexpected, Unreachable, refusal

DEFAULT_URL = "http://127.0.0.1:7700"


def own_version() -> str:
    """The version of this package; `0` where it is used without being installed."""
    try:
        return version("doppel-dedup")
    except PackageNotFoundError:
        return "0"


@dataclass(frozen=True, slots=True)
class Connection:
    """What both clients are made from."""

    url: str
    headers: Mapping[str, str]
    verify: ssl.SSLContext | bool
    timeout: float

    @classmethod
    def of(
        cls,
        url: str | None,
        token: str | None,
        ca: str | os.PathLike[str] | None,
        client_cert: str | os.PathLike[str] | None,
        timeout: float,
    ) -> Connection:
        """Takes what is not given from `DOPPEL_SERVER` and `DOPPEL_TOKEN`."""
        url = url or os.environ.get("DOPPEL_SERVER") or DEFAULT_URL
        token = token or os.environ.get("DOPPEL_TOKEN")
        headers = {"user-agent": f"doppel-python/{own_version()}"}
        if token:
            headers["authorization"] = f"Bearer {token.strip()}"
        verify: ssl.SSLContext | bool = True
        if ca is not None or client_cert is not None:
            verify = ssl.create_default_context(cafile=None if ca is None else str(Path(ca)))
            if client_cert is not None:
                verify.load_cert_chain(str(Path(client_cert)))
        return cls(url.rstrip("/"), headers, verify, timeout)

    def times(self, waits: float = 0) -> httpx.Timeout:
        """How long a request may take: the server may wait for `waits` seconds of it."""
        return httpx.Timeout(self.timeout, read=self.timeout + waits, connect=min(self.timeout, 10))


def unreachable(url: str, error: httpx.HTTPError, *, answered: bool) -> Unreachable:
    """The exception where no answer came. `answered`: whether one has ever come from there."""
    reason = str(error) or type(error).__name__
    return Unreachable(f"{url}: {reason}" + ("" if answered else " (nothing has answered there yet)"))


def checked(response: httpx.Response) -> bytes:
    """The body of a success. Anything else is raised."""
    if response.is_success:
        return response.content
    raise refused(response)


def refused(response: httpx.Response) -> DoppelError:
    """The exception for an answer that is none, whose body has been read."""
    if response.is_redirect:
        return Unexpected(f"{response.url} leads to {response.headers.get('location')}: give that address")
    error = refusal(response.status_code, response.content, response.headers.get("retry-after"))
    if isinstance(error, Refused) and error.problem.request_id is None:
        error.add_note(f"request {response.headers.get('x-request-id', 'without an id')} to {response.url.path}")
    return error


def seconds_to_wait(response: httpx.Response) -> float | None:
    """What the header `Retry-After` says."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None
