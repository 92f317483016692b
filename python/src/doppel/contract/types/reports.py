"""Types of the contract: reports.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec

from .shared import Backlog, Group


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals of the collection. `live` to `secondaries` count the present state. The other fields count events
    since the collection was created.
    """

    compared_updates: int
    """Number of content updates that had to wait for tier 2."""

    confirmed: int
    """Number of content updates that the comparison with the representative confirmed."""

    crowded: int
    """Number of pages that are the end of more than 10,000 redirects. A change of such a page takes long,
    because it is sent to all of its redirects.
    """

    dead: int
    """Number of dead pages on record."""

    duplicates: int
    """Number of pages with status `duplicate`."""

    evictions: int
    """Number of members that a recomputation removed from their group."""

    groups: int
    """Number of groups in use."""

    live: int
    """Number of live pages, including redirects."""

    merges: int
    """Number of groups that were merged into another group."""

    rechecks: int
    """Number of groups that were recomputed because many members differed from the winner."""

    redirects: int
    """Number of live pages that redirect."""

    rejected: int
    """Number of these comparisons that found no near-duplicate."""

    searches: int
    """Number of searches that tier 2 answered."""

    secondaries: int
    """Number of pages with status `secondary`."""

    stale: int
    """Number of submissions with outcome `stale`."""

    stale_results: int
    """Number of answers about contents that were no longer current."""

    submissions: int
    """Number of submissions that were accepted."""

    unchanged: int
    """Number of submissions with outcome `unchanged`."""

    unresolved: int
    """Number of redirects that do not end at a page with content."""

    verified: int
    """Number of comparisons between a member and the winner. Members that equal the winner, or whose search
    found the winner, are not compared.
    """

    winners: int
    """Number of pages with status `winner`."""


class DecisionClass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pages in a class of waiting times."""

    pages: int
    """Number of pages in the class."""

    up_to_ms: int | None = None
    """Longest waiting time in the class, in milliseconds. The class begins above the bound of the class before
    it. Null for the last class.
    """


class Decisions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long pages wait for their decision, from being recorded to the end of their comparison."""

    oldest_pending_ms: int | None = None
    """Waiting time of the page that has waited longest, in milliseconds. Null if no page is pending. Time before
    the service started does not count.
    """

    waited: list[DecisionClass]
    """Number of pages decided since the service started, by class of waiting times, shortest first. Empty
    classes are left out.
    """


class GroupSizes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Distribution of the sizes of the groups."""

    age_ms: int | None = None
    """Age of the report in milliseconds; absent if the report was computed for this answer."""

    groups: int
    """Number of groups that were examined."""

    histogram: list[SizeClass]
    """Number of groups in each class of sizes. The classes are powers of two."""

    largest: list[Group]
    """The largest groups, in descending order of size."""

    most_secondaries: list[Group]
    """The groups with the most secondary members, in descending order. Such groups are often chains of pages
    whose ends differ.
    """

    quarantined: int
    """Number of groups that are quarantined because they have too many distinct contents."""

    truncated: bool
    """Whether some groups were not examined, because there are too many."""


class Mirror(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pages of one host that can be removed because another host has kept pages for them."""

    bytes: int | None = None
    """Size of the removable pages in bytes."""

    copies: int
    """Number of removable pages that have the same content as their kept page."""

    host: str
    """The host of the pages that can be removed."""

    near: int
    """Number of removable pages that are near-duplicates of their kept page."""

    of: str
    """The host of the kept pages."""

    pages: int
    """Number of removable pages."""

    redirects: int
    """Number of removable pages that are redirects."""


class Quality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals of the collection, shares, and the remaining work."""

    backlog: Backlog
    """Accepted work that is not done yet."""

    confirm_share: float | None = None
    """Share of the content updates that the comparison with the representative alone confirmed, from 0 to 1."""

    counters: Counters
    """Totals of the collection."""

    decisions: Decisions | None = None
    """How long pages wait for their decision."""

    full_disks: int | None = None
    """Number of ranges that accept no pages because their disk is full."""

    not_ready: str | None = None
    """Why the service accepts no pages at present, or in a cluster, why some ranges accept none. Null if all
    accept pages.
    """

    pending_limit: int
    """Maximum number of pending pages."""

    quiescent: bool
    """Whether no work remains."""

    reject_share: float | None = None
    """Share of the comparisons between a member and the winner that found no near-duplicate, from 0 to 1, since
    the collection was created. A page is not compared again if it equals the winner or its search found the
    winner. Hence this is not a share of all members.
    """

    unique: int
    """Number of pages with status `unique`. Every live page is unique, a winner, a duplicate, secondary,
    unresolved or pending. The number may include redirects that are not decided yet, and pages that wait for
    messages about them.
    """


class Saving(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much can be removed."""

    bytes: int | None = None
    """Size of the removable pages in bytes."""

    bytes_share: float | None = None
    """Share of the removable bytes in all bytes, from 0 to 1."""

    pages: int
    """Number of removable pages."""

    share: float
    """Share of the removable pages in all live pages, from 0 to 1."""


class Savings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a collection can be removed, by kind of duplicate, and which hosts mirror each other. Shares
    relate to all live pages, or to their bytes. Bytes count the text or HTML as it was fetched. They are null
    in the report of a server, because a server does not store them.
    """

    across_hosts: int
    """Number of removable pages whose kept page is on another host."""

    age_ms: int | None = None
    """Age of the report in milliseconds; absent if the report was computed for this answer."""

    all: Saving
    """Saving from redirects, copies and near-duplicates together."""

    bytes: int | None = None
    """Size of the examined pages in bytes."""

    copies: Saving
    """Saving from removing only exact copies: for each content, every page but one. If the policy compares the
    site of a page, equal contents on two sites count as near-duplicates.
    """

    held_back: int
    """Number of exact copies that are kept for now, because their group is quarantined or they are not decided
    yet. A group is quarantined if it has too many distinct contents.
    """

    mirrors: list[Mirror]
    """Which hosts mirror which, in descending order of pages."""

    mirrors_cut: bool
    """Whether rarer pairs of hosts were dropped, because there were too many pairs. The numbers of the listed
    pairs are then lower bounds.
    """

    mirrors_left_out: int
    """Number of removable pages on pairs of hosts that are not listed."""

    near: Saving
    """Additional saving from removing near-duplicates."""

    on_one_host: int
    """Number of removable pages whose kept page is on the same host. Pages of files and records have no host."""

    pages: int
    """Number of live pages that were examined."""

    policy: str
    """Policy of the collection with its parameters."""

    redirects: Saving
    """Redirects to a kept page or to a duplicate of a kept page."""

    truncated: bool
    """Whether some pages were not examined, because there are too many."""

    undecided: int
    """Number of pages that are not decided yet."""


class SizeClass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """The groups in a class of sizes."""

    from_: int
    """Smallest number of members in the class."""

    groups: int
    """Number of groups in the class."""

    to: int
    """Largest number of members in the class."""
