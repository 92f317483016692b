"""Types of the contract: feed.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the change feed: the newest state of a page."""

    duplicate_of: str | None = None
    """The kept page that this page duplicates; null if the page is not a duplicate."""

    fetched_at: datetime
    """Time of the newest fetch of the page (RFC 3339)."""

    group: str | None = None
    """Group of the page, such as `g12-0`; null if the page is in no group."""

    reason: str | None = None
    """Why the redirect is unresolved. `unknown_target`: a page of the redirect chain is not on record.
    `dead_target`: a page of the chain is dead; after retention drops its record (`--keep-dead`), the reason
    becomes `unknown_target`. `loop` and `too_many_hops`: the chain has no end, or is too long to follow. One
    of `unknown_target`, `dead_target`, `loop`, `too_many_hops`; others may come with a later release.
    """

    similarity: float | None = None
    """Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects."""

    status: str
    """Status of the page. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`,
    `unresolved`, `dead`; others may come with a later release.
    """

    url: str
    """URL of the page."""

    winner: str | None = None
    """Winner of the group; null if the page is in no group."""


class ChangesAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch of events from the change feed."""

    at_end: bool
    """Whether the batch reached the end of the feed at the time of the request."""

    changes: list[ChangeLine]
    """Events from the feed. Events of the same URL are in order."""

    cursor: str
    """Opaque cursor to continue from."""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the export. It has exactly these six fields."""

    duplicate_of: str | None = None
    """The kept page that this page duplicates; null if the page is not a duplicate."""

    group: str | None = None
    """Group of the page, such as `g12-0`; null if the page is in no group."""

    similarity: float | None = None
    """Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects."""

    status: str
    """Status of the page. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`,
    `unresolved`, `dead`; others may come with a later release.
    """

    url: str
    """URL of the page."""

    winner: str | None = None
    """Winner of the group; null if the page is in no group."""
