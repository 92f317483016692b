"""Types of the contract: reports.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec

from .shared import Backlog, Group


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals. `live` to `secondaries` count the present state, the others everything since the collection was
    created.
    """

    compared_updates: int
    """Content updates that had to wait for tier 2."""

    confirmed: int
    """Content updates confirmed by the representative."""

    crowded: int
    """Pages at which more than 10,000 redirects end. Their changes are told to all of these, which takes long."""

    dead: int
    """Dead pages on record."""

    duplicates: int
    """Pages with status duplicate."""

    evictions: int
    """Members that a recomputation removed from their group."""

    groups: int
    """Groups in use."""

    live: int
    """Live pages, including redirects."""

    merges: int
    """Groups merged into another."""

    rechecks: int
    """Groups recomputed because many members differed from the winner."""

    redirects: int
    """Live pages that redirect."""

    rejected: int
    """Those of these comparisons that found no near-duplicate."""

    searches: int
    """Searches of tier 2 that were answered."""

    secondaries: int
    """Pages with status secondary."""

    stale: int
    """Submissions that were stale."""

    stale_results: int
    """Answers about contents that were no longer current."""

    submissions: int
    """Submissions that were accepted."""

    unchanged: int
    """Submissions that were unchanged."""

    unresolved: int
    """Redirects that do not end at a page with content."""

    verified: int
    """Comparisons of members with a winner that neither they equal nor their search has found."""

    winners: int
    """Pages with status winner."""


class DecisionClass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pages that had waited about as long."""

    pages: int
    """The pages."""

    up_to_ms: int | None = None
    """No longer than this, in milliseconds, and longer than the bound of the class before; null for the last
    class.
    """


class Decisions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long pages wait for their decision, from their record to the end of their comparison."""

    oldest_pending_ms: int | None = None
    """How long the page that has waited longest waits by now, in milliseconds; null when nothing is pending. Of
    a page that was pending before the service started, the time before that does not count.
    """

    waited: list[DecisionClass]
    """Pages decided since the service started, by how long they had waited, the shortest first; classes without
    pages are left out.
    """


class GroupSizes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sizes of the groups."""

    age_ms: int | None = None
    """How long ago it was made, in milliseconds; absent where it was made for this answer."""

    groups: int
    """The number of groups that were examined."""

    histogram: list[SizeClass]
    """Number of groups per power of two of members."""

    largest: list[Group]
    """The largest groups, the largest first."""

    most_secondaries: list[Group]
    """The groups with the most secondaries, the one with most first: chains of pages of which the ends differ."""

    quarantined: int
    """Groups that are quarantined for the number of their contents."""

    truncated: bool
    """Whether there are more groups, which were not examined."""


class Mirror(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pages of one host that can be dropped for pages of another."""

    bytes: int | None = None
    """Bytes of these pages."""

    copies: int
    """Those of them that have the same content as the page that is kept."""

    host: str
    """The host that has the pages which can be dropped."""

    near: int
    """Those that are near-duplicates of it."""

    of: str
    """The host that has the pages which are kept."""

    pages: int
    """Pages that can be dropped."""

    redirects: int
    """Those that redirect."""


class Quality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals, shares of them, and the remaining work."""

    backlog: Backlog
    """Accepted work that is not yet done."""

    confirm_share: float | None = None
    """Share of the content updates that were confirmed by the representative alone, 0 to 1."""

    counters: Counters
    """Totals."""

    decisions: Decisions | None = None
    """How long pages wait for their decision."""

    full_disks: int | None = None
    """Ranges that take no pages because their disk is full."""

    not_ready: str | None = None
    """Why the service takes no pages at present, or in a cluster some ranges take none; null where all do."""

    pending_limit: int
    """The most pages that may be pending."""

    quiescent: bool
    """Whether nothing is left to do."""

    reject_share: float | None = None
    """Share of the comparisons with a winner in which the page was no near-duplicate of it, 0 to 1, since the
    collection was made. A page that equals the winner, or whose search has found the winner, is not compared
    once more, so it is no share of members.
    """

    unique: int
    """Pages with status unique. Live pages are unique, winners, duplicates, members, unresolved or pending; a
    redirect, or a page while messages about it are under way, may be counted here before it is decided.
    """


class Saving(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can be dropped."""

    bytes: int | None = None
    """Bytes of these pages."""

    bytes_share: float | None = None
    """Their share of all bytes, 0 to 1."""

    pages: int
    """Pages."""

    share: float
    """Their share of all live pages, 0 to 1."""


class Savings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can be dropped of a collection, by what it takes to find it, and which hosts mirror which. Shares are
    of all live pages, and of their bytes. Bytes are those of the text or HTML as it was fetched; a server
    does not keep them, so there they are null.
    """

    across_hosts: int
    """Pages that can be dropped whose kept page is on another host."""

    age_ms: int | None = None
    """How long ago it was made, in milliseconds; absent where it was made for this answer."""

    all: Saving
    """All of these."""

    bytes: int | None = None
    """Their bytes."""

    copies: Saving
    """What dropping exact copies alone would save: of each content all pages but one. What a copy is, is what
    the policy says of equal contents: where it reads the site, copies on two sites are near-duplicates.
    """

    held_back: int
    """Exact copies that are kept all the same: they are in groups that are quarantined for the number of their
    contents, or not decided yet.
    """

    mirrors: list[Mirror]
    """Which hosts mirror which, the pair with the most pages first."""

    mirrors_cut: bool
    """Whether there were so many pairs of hosts that the rarer ones were forgotten: the listed ones have at
    least so many pages.
    """

    mirrors_left_out: int
    """Pages on two hosts whose pair is not listed."""

    near: Saving
    """What near-duplicates save beyond that."""

    on_one_host: int
    """Pages that can be dropped whose kept page is on the same host. Pages of files and records are on no host."""

    pages: int
    """Live pages that were examined."""

    policy: str
    """The policy, with its parameters."""

    redirects: Saving
    """Redirects to a page that is kept, or to a duplicate of one."""

    truncated: bool
    """Whether there are more pages, which were not examined."""

    undecided: int
    """Pages that are not decided yet."""


class SizeClass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """The groups of a range of sizes."""

    from_: int
    """The fewest members."""

    groups: int
    """Number of groups."""

    to: int
    """The most members."""
