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
    """A page to record, with exactly one of `html`, `text`, `redirect_to` and `dead: true`."""

    dead: bool | None = None
    """True if the page no longer exists."""

    fetched_at: datetime | None = None
    """Time at which the page was fetched, in RFC 3339, at most 24 hours ahead. Default: now."""

    html: str | None = None
    """HTML document of at most 16 MiB."""

    language: str | None = None
    """Language tag. Without a tag, the service detects the language of the text if the server was started with
    `--detect-language`.
    """

    popularity: float | None = None
    """Any measure of popularity, not negative. The winner order compares it in powers of two."""

    redirect_to: str | None = None
    """Target of the redirect. A page cannot redirect to itself."""

    text: str | None = None
    """Plain text or Markdown of at most 16 MiB."""

    url: str
    """Absolute http, https or file URL, or the name of a record without a URL, such as
    `record:part-1.jsonl#row=7`. The service removes the fragment of a URL and changes nothing else. A URL
    with the host in another case, or with an explicit default port, therefore names another page. Under a
    policy that reads the site (`by-site`, `copies`), the URL of html or text must have a host.
    """


class PurgeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `PurgeRequest`."""

    host: str | None = None
    """Host whose pages to purge, in lower case and without a port. Pages of its subdomains are not purged."""

    url: str | None = None
    """URL of the page to purge. A purge has either this field or `host`."""


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
