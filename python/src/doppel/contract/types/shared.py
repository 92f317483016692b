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
    as duplicates until an operator repairs the group.
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
    """Stable name of the kind of error, `urn:doppel:problem:<name>`. There are these, and others may be added: -
    `urn:doppel:problem:bad-request` (400): the request, or the parameter or field that `field` names, is
    wrong - `urn:doppel:problem:unauthorized` (401): no token came that is known here and has not expired; the
    server was started with tokens (docs/reference/security.md) - `urn:doppel:problem:forbidden` (403): the
    token has a lesser role than is needed, or operators ask for this at another listener -
    `urn:doppel:problem:cross-site` (403): a browser sent this for another site's page -
    `urn:doppel:problem:not-found` (404): what is named is not there - `urn:doppel:problem:method-not-allowed`
    (405): the path is not for this method; `Allow` names those that it is for - `urn:doppel:problem:slow-
    body` (408): the body came too slowly - `urn:doppel:problem:rebalancing` (409): a change of the mapping is
    under way - `urn:doppel:problem:nothing-to-cancel` (409): there is no request to cancel -
    `urn:doppel:problem:cursor-gone` (410): the feed cannot go on at this cursor: export again, and go on with
    the cursor of the export - `urn:doppel:problem:too-large` (413): the body is over a limit: send it in
    parts - `urn:doppel:problem:media-type` (415): a content type or encoding that this operation does not
    take - `urn:doppel:problem:misdirected` (421): `Host` is a name that the server was not given
    (docs/reference/security.md) - `urn:doppel:problem:not-by-this-policy` (422): the collection's policy has
    no such thing - `urn:doppel:problem:backlog-full` (429): too many pages are pending -
    `urn:doppel:problem:client-limit` (429): the client holds as much as one may hold at once, or has just had
    its turn - `urn:doppel:problem:internal` (500): an error inside the service; its log says more -
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
