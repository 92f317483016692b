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
    """The time at which it happened, RFC 3339."""

    by: str | None = None
    """Who requested the repair, as given by the caller; absent for a quarantine."""

    component_count: int
    """The number of resulting components; 1 if nothing was wrong. If `truncated`, the number that were stored. 0
    for a quarantine.
    """

    event: str
    """What happened. One of `repair`, `quarantined`, `released`; others may come with a later release."""

    group: str
    """The group, under the id that it had then."""

    id: str
    """The id of the entry."""

    into: str | None = None
    """The group that it was merged into, where that ended a quarantine; absent otherwise."""

    members: int
    """Members before the repair, or when the quarantine began or ended."""

    truncated: bool
    """Whether there were more than 10,000 URLs, so that not all were stored."""


class AppliedRepairUrls(AppliedRepair, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the audit trail with its URLs; a quarantine has none."""

    before: list[str]
    """Members before, at most 10,000."""

    components: list[list[str]]
    """The resulting components, the winner's first, with at most 10,000 URLs. The winner's component is
    shortened in favour of the others. One is empty if none of its pages are on record any more.
    """

    forgotten: int
    """The number of pages that are no longer on record, because they were purged or have long been dead. Their
    URLs are not listed.
    """


class GroupList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section of the list of groups."""

    groups: list[Group]
    """In order of shard and id."""

    next: str | None = None
    """What to pass as `after` to go on; none at the end."""


class GroupPage(Group, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a group's members."""

    age_ms: int | None = None
    """Where a range has no owner that answers, a replica does: what is told here is true of a moment no longer
    ago than so many milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    """

    next: str | None = None
    """What to pass as `after` to go on; none at the end."""

    pages: list[Member]
    """Some members, each followed by the redirects that end at it."""


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a group."""

    content: str | None = None
    """Hash of its content; none for a redirect."""

    duplicate_of: str | None = None
    """The kept page that it is a duplicate of."""

    similarity: float | None = None
    """How similar it is to that page, by the policy's measure."""

    status: str
    """Its status. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`, `unresolved`,
    `dead`; others may come with a later release.
    """

    url: str
    """The page."""


class Repair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a repair or of a dry run."""

    applied: bool
    """Whether it was applied."""

    before: list[str]
    """Members before."""

    components: list[list[str]]
    """The components the members fall into by exact comparison, the winner's first."""

    group: str
    """The group that was repaired, after following merges."""

    total_components: int | None = None
    """The number of components; absent if `components` lists them all."""

    total_members: int | None = None
    """The number of members before; absent if `before` lists them all."""

    truncated: bool | None = None
    """Whether URLs were left out, because `components` and `before` have at most 10,000 each; absent if none
    were left out. The winner's component is shortened in favour of the others, and the last one may be
    incomplete.
    """


class RepairRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `RepairRequest`."""

    by: str | None = None
    """Who asks for it; goes to the trail of repairs. At most 100 bytes without control characters; `anonymous`
    where none is given. Where the server has tokens it is the name of the token, and to give one is an error.
    """

    dry_run: bool | None = None
    """Only say what would be done."""

    groups: list[str]
    """The groups, at most 100."""


class Repairs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of the repairs of several groups."""

    repairs: list[Repair]
    """One report per existing group, in order. The limit of 10,000 URLs applies to all of them together."""

    unknown: list[str]
    """Groups that do not exist."""


class Trail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section of the audit trail."""

    next: str | None = None
    """What to pass as `before` to go on; none at the end. A search for the entries of one group may stop in
    between with few of them or none.
    """

    repairs: list[AppliedRepair]
    """The entries, newest first."""
