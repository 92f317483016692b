"""Types of the contract: groups.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .shared import Group


class AppliedRepair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An applied repair, or a quarantine that began or ended."""

    at: datetime
    """Time of the event (RFC 3339)."""

    by: str | None = None
    """Person who requested the repair, as the caller stated; absent for a quarantine."""

    component_count: int
    """Number of resulting components; 1 if the group was correct. If `truncated`, the number of components that
    were stored. 0 for a quarantine.
    """

    event: str
    """Kind of the event. One of `repair`, `quarantined`, `released`; others may come with a later release."""

    group: str
    """The group, under the id that it had at that time."""

    id: str
    """Id of the entry in the audit trail."""

    into: str | None = None
    """The group into which this group was merged, if the merge ended a quarantine; otherwise absent."""

    members: int
    """Number of members before the repair, or when the quarantine began or ended."""

    truncated: bool
    """Whether the entry lacks some URLs, because there were more than 10,000."""


class AppliedRepairUrls(AppliedRepair, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the audit trail with its URLs. A quarantine has no URLs."""

    before: list[str]
    """Members before the repair, at most 10,000."""

    components: list[list[str]]
    """The resulting components, the winner's first, with at most 10,000 URLs. The winner's component is
    shortened first. A component is empty if none of its pages are on record any more.
    """

    forgotten: int
    """Number of pages that are no longer on record, because they were purged or have been dead for long. Their
    URLs are not listed.
    """


class GroupList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the list of groups."""

    groups: list[Group]
    """The groups, in the order of shard and id."""

    next: str | None = None
    """The value to pass as `after` in the next request; null at the end of the list."""


class GroupPage(Group, frozen=True, kw_only=True, omit_defaults=True):
    """A group with one page of the list of its members."""

    age_ms: int | None = None
    """Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered in
    place of an owner that does not respond. Normally absent: owners answer with the current state.
    """

    next: str | None = None
    """The value to pass as `after` in the next request; null at the end of the list."""

    pages: list[Member]
    """Some of the members. Each member is followed by the redirects that end at it."""


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a group, or a redirect that ends at a member."""

    content: str | None = None
    """Hash of the page's content; null for a redirect."""

    duplicate_of: str | None = None
    """The kept page that this page duplicates; null if the page is not a duplicate."""

    similarity: float | None = None
    """Similarity between the page and `duplicate_of`, by the measure of the policy."""

    status: str
    """Status of the page. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`,
    `unresolved`, `dead`; others may come with a later release.
    """

    url: str
    """URL of the page."""


class Repair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a repair or of a dry run."""

    applied: bool
    """Whether the repair was applied."""

    before: list[str]
    """Members before the repair."""

    components: list[list[str]]
    """Components of the group by exact comparison. The winner's component is first."""

    group: str
    """The group that was repaired, after following merges."""

    total_components: int | None = None
    """Number of components; absent if `components` lists all of them."""

    total_members: int | None = None
    """Number of members before the repair; absent if `before` lists all of them."""

    truncated: bool | None = None
    """Whether URLs were left out, because `components` and `before` contain at most 10,000 each. Absent if no
    URL was left out. The winner's component is shortened first, and the last component may be incomplete.
    """


class RepairRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `RepairRequest`."""

    by: str | None = None
    """Name of the person who asks for the repair, for the repair trail: at most 100 bytes without control
    characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the token, and this
    parameter is an error.
    """

    dry_run: bool | None = None
    """Whether to only report what the repair would do."""

    groups: list[str]
    """Ids of the groups, at most 100."""


class Repairs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of the repairs of several groups."""

    repairs: list[Repair]
    """One result for each group that exists, in order. The limit of 10,000 URLs applies to all results together."""

    unknown: list[str]
    """Groups that do not exist."""


class Trail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the audit trail."""

    next: str | None = None
    """The value to pass as `before` in the next request; null at the end of the trail. A search for the entries
    of one group may return few entries, or no entry, before the end.
    """

    repairs: list[AppliedRepair]
    """The entries, newest first."""
