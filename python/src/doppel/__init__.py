"""Near-duplicate groups of pages and records."""

# pyright: reportUnknownVariableType=false
# Arrow for Python has no types.
from __future__ import annotations

from . import _needs as _needs  # before what needs them
from .async_client import AsyncClient
from .client import Client
from .connection import own_version
from .contract.types import Page
from .dedup import BadRows, Quarantined, RepeatedIds, decontaminate, dedup
from .errors import (
    BadRequest,
    Conflict,
    CursorGone,
    DoppelError,
    Failed,
    Forbidden,
    Incomplete,
    NotFound,
    Overloaded,
    ProgramError,
    Refused,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unexpected,
    Unreachable,
)
from .feed import AsyncFeed, Feed
from .program import program
from .retries import Retries
from .server import Server

__version__ = own_version()

__all__ = [
    "AsyncClient",
    "AsyncFeed",
    "BadRequest",
    "BadRows",
    "Client",
    "Conflict",
    "CursorGone",
    "DoppelError",
    "Failed",
    "Feed",
    "Forbidden",
    "Incomplete",
    "NotFound",
    "Overloaded",
    "Page",
    "ProgramError",
    "Quarantined",
    "Refused",
    "RepeatedIds",
    "Retries",
    "Server",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "Unexpected",
    "Unreachable",
    "__version__",
    "decontaminate",
    "dedup",
    "program",
]
