"""Types of the contract: shared.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec


class Backlog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Accepted work that is not done yet."""

    deferred_searches: int
    """Number of confirmed pages that still have to be compared."""

    dirty_groups: int
    """Number of groups that have to be recomputed."""

    messages: int
    """Number of messages between shards that are under way."""

    pending: int
    """Number of pages that wait for tier 2 or for the answers of their partners."""

    uncovered_groups: int
    """Number of groups that still have to determine which dissimilar members are duplicates of other members.
    Until then these members have status `secondary`.
    """

    unverified: int
    """Number of members that still have to be verified against their winner."""


class Examples(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Examples of shingles as 40-bit hashes in hexadecimal. The server stores the hash of a shingle, not its
    words.
    """

    common: list[str]
    """Hashes of shingles that both contents contain."""

    only_a: list[str]
    """Hashes of shingles that only `a` contains."""

    only_b: list[str]
    """Hashes of shingles that only `b` contains."""


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group without its members."""

    dirty: bool
    """Whether the group has to be recomputed."""

    dissimilar: int
    """Number of members that are not near-duplicates of the winner."""

    group: str
    """Id of the group."""

    members: int
    """Number of members, which are pages with content."""

    merged_into: str | None = None
    """The group that this group was merged into; null if it was not merged."""

    quarantined: bool
    """Whether the group is quarantined because it has too many distinct contents. Its members are not reported
    as duplicates until an operator repairs the group or a recomputation finds few enough contents.
    """

    secondaries: int
    """Number of secondary members, which are kept beside the winner: members that duplicate neither the winner
    nor another kept page. In a quarantined group, all members except the winner.
    """

    uncovered: bool
    """Whether the group still has to determine which dissimilar members are duplicates of other members."""

    winner: str | None = None
    """Winner of the group."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as the answer to a request. An error from a proxy may contain only `detail`."""

    detail: str
    """What is wrong with the request, or with the service."""

    field: str | None = None
    """The parameter or field with the error."""

    request_id: str | None = None
    """Id of the request. The header `x-request-id` and the service's log contain the same id."""

    retry_after: int | None = None
    """Number of seconds after which to try again. The header `Retry-After` has the same value."""

    status: int
    """HTTP status code of the answer."""

    title: str
    """Name of the HTTP status."""

    type: str
    """Stable name of the kind of error, `urn:doppel:problem:<name>`. These are the types. A later release may
    add others: - `urn:doppel:problem:bad-request` (400): the request, or the parameter or field that `field`
    names, is invalid - `urn:doppel:problem:unauthorized` (401): the server requires a token
    (docs/reference/security.md), and the request has no known token that is still valid -
    `urn:doppel:problem:forbidden` (403): the token lacks the required role, or the operation belongs to the
    listener for operators - `urn:doppel:problem:cross-site` (403): a browser sent the request for a page of
    another site - `urn:doppel:problem:not-found` (404): the named resource does not exist -
    `urn:doppel:problem:method-not-allowed` (405): the path does not support this method; `Allow` lists the
    methods that it supports - `urn:doppel:problem:slow-body` (408): the body arrived too slowly -
    `urn:doppel:problem:rebalancing` (409): a change of the partition map is in progress -
    `urn:doppel:problem:nothing-to-cancel` (409): no change of the partition map is in progress -
    `urn:doppel:problem:cursor-gone` (410): the feed cannot continue at this cursor: export the collection
    again, and continue with the cursor of the export - `urn:doppel:problem:too-large` (413): the body exceeds
    a limit: send it in parts - `urn:doppel:problem:media-type` (415): the operation does not support this
    content type or encoding - `urn:doppel:problem:misdirected` (421): `Host` is not a configured name of the
    server (docs/reference/security.md) - `urn:doppel:problem:not-by-this-policy` (422): the policy of the
    collection does not support the operation - `urn:doppel:problem:backlog-full` (429): too many pages are
    pending - `urn:doppel:problem:client-limit` (429): the client uses as much of a resource as one client may
    use at once, or must pause after its turn - `urn:doppel:problem:internal` (500): an error inside the
    service; the log of the service names the cause - `urn:doppel:problem:damaged` (500): a record that the
    answer needs is damaged; the log of the service names the record - `urn:doppel:problem:storage` (500): the
    request could not be stored - `urn:doppel:problem:busy` (503): too many requests of this kind are in
    progress - `urn:doppel:problem:not-ready` (503): less of the service is available than the operation
    needs, or than the request asked for - `urn:doppel:problem:timeout` (503): the call took too long; its
    work may still be done, and it is safe to repeat the request - `urn:doppel:problem:read-only` (503): the
    store failed and takes no writes until a restart - `urn:doppel:problem:range-unavailable` (503): a part of
    the system of record does not answer - `urn:doppel:problem:index-unavailable` (503): the index does not
    answer - `urn:doppel:problem:stopping` (503): the service is shutting down - `urn:doppel:problem:disk-
    full` (507): the disk is full
    """


class RebalanceProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a change of the mapping."""

    changed: int
    """Number of contents that changed after they were copied and are copied again."""

    contents: int
    """Number of contents to copy."""

    copied: int
    """Number of contents copied so far."""

    next_version: int
    """Version of the plan that follows."""

    plan_version: int
    """Version of the plan that stays in force until the change is complete."""

    seconds: float
    """Seconds since the change began."""
