"""A request as data, and what can send it. The operations of the contract are written once in terms of these."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

Answer = TypeVar("Answer")


def segment(value: object) -> str:
    """A value as one segment of a path."""
    return quote(str(value), safe="")


def _text(value: object) -> str:
    """A value as a query has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request: what is asked, and the type of the answer."""

    method: str
    path: str
    answer: type[Answer]
    query: Mapping[str, object] = field(default_factory=dict[str, object])
    """Parameters; those that are None are left out."""
    body: Mapping[str, object] | None = None
    """Fields of a JSON body; those that are None are left out."""
    waits: float = 0
    """Seconds for which the server may wait before it answers."""
    retried: bool = True
    """Whether it is asked again where the server says when."""

    def parameters(self) -> dict[str, str]:
        """The query."""
        return {name: _text(value) for name, value in self.query.items() if value is not None}

    def content(self) -> bytes | None:
        """The body."""
        if self.body is None:
            return None
        return msgspec.json.encode({name: value for name, value in self.body.items() if value is not None})

    def decode(self, content: bytes) -> Answer:
        """The answer, from its body."""
        kind: Any = self.answer
        if kind is type(None):
            return None  # type: ignore[return-value]
        if kind is str:
            return content.decode()  # type: ignore[return-value]
        return msgspec.json.decode(content, type=kind)


class Caller(abc.ABC):
    """Sends requests and waits for their answers."""

    @abc.abstractmethod
    def ask(self, call: Call[Answer]) -> Answer:
        """Sends a request. Raises a `DoppelError` where there is no answer or a refusal."""


class AsyncCaller(abc.ABC):
    """Sends requests; their answers are to be awaited."""

    @abc.abstractmethod
    async def ask(self, call: Call[Answer]) -> Answer:
        """Sends a request. Raises a `DoppelError` where there is no answer or a refusal."""
