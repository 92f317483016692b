"""Types of the contract: shared.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec


class Backlog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Accepted work that is not yet done."""

    deferred_searches: int
    """Confirmed pages that still have to be compared."""

    dirty_groups: int
    """Groups that have to be recomputed."""

    messages: int
    """Messages between shards."""

    pending: int
    """Pages waiting for tier 2 or for partners' answers."""

    uncovered_groups: int
    """Groups of which it has to be found out again which members are duplicates of others than the winner. Until
    then those are told to be secondary.
    """

    unverified: int
    """Members that still have to be verified against their winner."""


class Examples(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some shingles. Only their 40-bit hashes are kept, not their words: here in hexadecimal."""

    common: list[str]
    """Hashes of shingles that both have."""

    only_a: list[str]
    """Hashes of shingles that only `a` has."""

    only_b: list[str]
    """Hashes of shingles that only `b` has."""


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group without its members."""

    dirty: bool
    """Whether it has to be recomputed."""

    dissimilar: int
    """Members found dissimilar to the winner."""

    group: str
    """Its id."""

    members: int
    """Pages with content."""

    merged_into: str | None = None
    """The group that has its members now, if it was merged."""

    quarantined: bool
    """Whether it is above the size limit. Its members are not reported as duplicates until it is repaired."""

    secondaries: int
    """Members that are kept beside the winner: those of the dissimilar ones that are no duplicates of one
    another, and all while the group is quarantined.
    """

    uncovered: bool
    """Whether it has to be found out again which members are duplicates of others than the winner."""

    winner: str | None = None
    """Its winner."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as an answer. If a proxy made it, it may have nothing but a detail."""

    detail: str
    """What is wrong with this request, or with the service."""

    field: str | None = None
    """The parameter or field that is wrong."""

    request_id: str | None = None
    """The id of the request, as in the header `x-request-id` and in the service's log."""

    retry_after: int | None = None
    """Seconds after which to try again, also sent as `Retry-After`."""

    status: int
    """The HTTP status."""

    title: str
    """The HTTP status in words."""

    type: str
    """A stable name of the kind of error, `urn:doppel:problem:<name>`. There are these, and others may be added:
    - `urn:doppel:problem:bad-request` (400): the request, or the parameter or field that `field` names, is
    wrong - `urn:doppel:problem:unauthorized` (401): no token came that is known here and has not expired; the
    server was started with tokens (docs/SECURITY.md) - `urn:doppel:problem:forbidden` (403): the token has a
    lesser role than is needed, or operators ask for this at another listener - `urn:doppel:problem:cross-
    site` (403): a browser sent this for another site's page - `urn:doppel:problem:not-found` (404): what is
    named is not there - `urn:doppel:problem:method-not-allowed` (405): the path is not for this method;
    `Allow` names those that it is for - `urn:doppel:problem:slow-body` (408): the body came too slowly -
    `urn:doppel:problem:rebalancing` (409): a change of the mapping is under way -
    `urn:doppel:problem:nothing-to-cancel` (409): there is no request to cancel - `urn:doppel:problem:cursor-
    gone` (410): the feed cannot go on at this cursor: export again, and go on with the cursor of the export -
    `urn:doppel:problem:too-large` (413): the body is over a limit: send it in parts -
    `urn:doppel:problem:media-type` (415): a content type or encoding that this operation does not take -
    `urn:doppel:problem:misdirected` (421): `Host` is a name that the server was not given (docs/SECURITY.md)
    - `urn:doppel:problem:not-by-this-policy` (422): the collection's policy has no such thing -
    `urn:doppel:problem:backlog-full` (429): too many pages are pending - `urn:doppel:problem:client-limit`
    (429): the client holds as much as one may hold at once, or has just had its turn -
    `urn:doppel:problem:internal` (500): an error inside the service; its log says more -
    `urn:doppel:problem:damaged` (500): a record that is needed is damaged; the service's log says which -
    `urn:doppel:problem:storage` (500): the request could not be stored - `urn:doppel:problem:busy` (503): as
    many such requests are in work as are taken at once - `urn:doppel:problem:not-ready` (503): less of the
    service is there than is needed, or was asked for - `urn:doppel:problem:timeout` (503): no answer in time;
    what was asked for may still be done, and it is safe to ask again - `urn:doppel:problem:read-only` (503):
    the store failed and takes no writes until a restart - `urn:doppel:problem:range-unavailable` (503): a
    part of the system of record does not answer now - `urn:doppel:problem:index-unavailable` (503): the index
    does not answer now - `urn:doppel:problem:stopping` (503): the service is shutting down -
    `urn:doppel:problem:disk-full` (507): the disk is full
    """


class RebalanceProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a change of the mapping."""

    changed: int
    """The number of contents that changed after they were copied and are copied again."""

    contents: int
    """The number of contents to copy."""

    copied: int
    """The number of contents copied so far."""

    next_version: int
    """The version of the plan that follows."""

    plan_version: int
    """The version of the plan that is in force until the change is complete."""

    seconds: float
    """Seconds since the change began."""
