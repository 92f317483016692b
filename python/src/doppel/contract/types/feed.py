"""Types of the contract: feed.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the feed: the newest state of a page."""

    duplicate_of: str | None = None
    """The kept page that it is a duplicate of."""

    fetched_at: datetime
    """The time of the newest fetch, RFC 3339."""

    group: str | None = None
    """The group it is in, if any, such as `g12-0`."""

    reason: str | None = None
    """Why a redirect is unresolved. `unknown_target`: a page of the chain is not on record. `dead_target`: a
    page of the chain is dead; once its record is dropped (`--keep-dead`), the reason is `unknown_target`.
    `loop`, `too_many_hops`: the chain comes to no end. One of `unknown_target`, `dead_target`, `loop`,
    `too_many_hops`; others may come with a later release.
    """

    similarity: float | None = None
    """How similar it is to that page, by the policy's measure; none for redirects."""

    status: str
    """Its status. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`, `unresolved`,
    `dead`; others may come with a later release.
    """

    url: str
    """The page."""

    winner: str | None = None
    """That group's winner."""


class ChangesAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section of the feed."""

    at_end: bool
    """Whether the feed had nothing more at that moment."""

    changes: list[ChangeLine]
    """Events, ordered per URL."""

    cursor: str
    """Where to continue; an opaque text."""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the export: these six fields and no others."""

    duplicate_of: str | None = None
    """The kept page that it is a duplicate of."""

    group: str | None = None
    """The group it is in, if any, such as `g12-0`."""

    similarity: float | None = None
    """How similar it is to that page, by the policy's measure; none for redirects."""

    status: str
    """Its status. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`, `unresolved`,
    `dead`; others may come with a later release.
    """

    url: str
    """The page."""

    winner: str | None = None
    """That group's winner."""
