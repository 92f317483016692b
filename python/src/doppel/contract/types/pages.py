"""Types of the contract: pages.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class LineAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a submitted line."""

    outcome: str | None = None
    """The durable outcome of the submission. `unchanged`: at most dates changed. `confirmed`: decided at once,
    because the page is dead, has no words, or is still a near-duplicate of its group's winner. A page without
    a group is compared with its own last content. `pending`: accepted, and waiting for comparison. `stale`:
    not accepted, because a newer version is on record. Among versions of the same date, a content is newer
    than a redirect, and a death is newer than both. One of `unchanged`, `confirmed`, `pending`, `stale`;
    others may come with a later release.
    """

    url: str | None = None
    """URL of the page, as submitted but without the fragment."""

    error: LineError | None = None
    """The error on this line."""

    line: int | None = None
    """Number of the line, counted from 1."""


class LineError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a line was not accepted."""

    code: str
    """The kind of error. One of `invalid`, `retry`, `internal`; others may come with a later release."""

    field: str | None = None
    """The field with the error; absent if no single field is at fault."""

    reason: str
    """The reason for the error, in words."""


class NotTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that was not accepted."""

    error: LineError
    """The error on this line."""

    line: int
    """Number of the line, counted from 1."""

    url: str | None = None
    """URL of the page on the line; absent if it is unknown."""


class Page(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page to record: exactly one of `html`, `text`, `redirect_to` and `dead: true`."""

    dead: bool | None = None
    """The page is gone."""

    fetched_at: datetime | None = None
    """RFC 3339; now where none is given, at most 24 hours ahead."""

    html: str | None = None
    """An HTML document of at most 16 MiB."""

    language: str | None = None
    """Language tag. Where none is given it is detected in the text if the server was started with `--detect-
    language`.
    """

    popularity: float | None = None
    """Any measure of it, not negative; its order of magnitude counts in the winner order."""

    redirect_to: str | None = None
    """Where the page redirects to, never to itself."""

    text: str | None = None
    """Plain text or Markdown of at most 16 MiB."""

    url: str
    """Absolute http, https or file URL, or the name of a record without one, such as
    `record:part-1.jsonl#row=7`. The fragment of a URL is removed, and nothing else is changed: another case
    of the host, or a default port that is named, make another page. Under a policy that reads the site (`by-
    site`, `copies`) the URL of html or text has a host.
    """


class PurgeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `PurgeRequest`."""

    host: str | None = None
    """The host whose pages to forget, lower case, without a port; not its subdomains."""

    url: str | None = None
    """The page to forget; this or a host."""


class Purged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a purge."""

    purged: int
    """Number of pages whose records were deleted."""


class Taken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page that was accepted."""

    outcome: str
    """The durable outcome of the submission. `unchanged`: at most dates changed. `confirmed`: decided at once,
    because the page is dead, has no words, or is still a near-duplicate of its group's winner. A page without
    a group is compared with its own last content. `pending`: accepted, and waiting for comparison. `stale`:
    not accepted, because a newer version is on record. Among versions of the same date, a content is newer
    than a redirect, and a death is newer than both. One of `unchanged`, `confirmed`, `pending`, `stale`;
    others may come with a later release.
    """

    url: str
    """URL of the page, as submitted but without the fragment."""
