"""Types of the contract: advice.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .shared import Examples


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Doppel says about a page."""

    age_ms: int | None = None
    """Where a range has no owner that answers, a replica does: the answer is true of a moment no longer ago than
    so many milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    """

    duplicate_of: str | None = None
    """The kept page that it is a duplicate of: the winner, or a secondary page of the group."""

    fetched_at: datetime | None = None
    """The time of the newest fetch, RFC 3339."""

    group: str | None = None
    """The group it is in, if any, such as `g12-0`."""

    note: str | None = None
    """What limits the answer."""

    reason: str | None = None
    """Why a redirect is unresolved. `unknown_target`: a page of the chain is not on record. `dead_target`: a
    page of the chain is dead; once its record is dropped (`--keep-dead`), the reason is `unknown_target`.
    `loop`, `too_many_hops`: the chain comes to no end. One of `unknown_target`, `dead_target`, `loop`,
    `too_many_hops`; others may come with a later release.
    """

    redirect_to: str | None = None
    """Where a redirect leads; absent for other pages."""

    rule: str | None = None
    """The rule of the winner order by which the page that it is a duplicate of, or else the winner, stands
    before this page. One of `market`, `popularity`, `day_first_seen`, `static_url`, `shorter_url`,
    `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float | None = None
    """How similar it is to that page, by the policy's measure; none for redirects."""

    status: str
    """Its status. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`, `unresolved`,
    `dead`; others may come with a later release.
    """

    url: str
    """The page, as asked for; empty for a probe without one."""

    winner: str | None = None
    """That group's winner."""


class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A content."""

    comparable: bool
    """Whether it has the 20 tokens that a duplicate by similarity needs."""

    hash: str
    """Hash of the token sequence."""

    home: int
    """The partition that stores it."""

    language: str | None = None
    """Language of the page: given with it, or detected by a server that was started with `--detect-language`."""

    lengths: list[int]
    """Distinct shingles, and those whose first word is in each half of the dictionary; under a policy without
    shingles its tokens, of which half are taken to be in each.
    """

    probed_partitions: list[int]
    """The partitions it is compared in."""

    shingles: int | None = None
    """Where signatures are of shingles (`jaccard`, `content`, `copies`): distinct shingles."""

    tokens: int
    """Tokens that are compared: under the policies `content` and `copies` those of the main content. What is
    left out is not stored; `POST /v1/probe` and `doppel explain FILE FILE` read it in the page.
    """


class Criterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that F asks of a pair."""

    met: bool
    """Whether the pair has it."""

    needed: str
    """What F asks for, such as `above 0.8`."""

    of: int
    """Of so much."""

    shared: int
    """What the two have in common."""

    what: str
    """What is counted, such as `shingles`."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why two pages are, or are not, duplicates."""

    a: Side
    """One page."""

    age_ms: int | None = None
    """Where a range has no owner that answers, a replica does: what is told here is true of a moment no longer
    ago than so many milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    """

    b: Side
    """The other."""

    duplicate: bool
    """Whether the two contents are near-duplicates, F."""

    measures: Measures | None = None
    """Every measure of F; none where a page has no content."""

    policy: str
    """The policy with its parameters, such as `jaccard:tau=0.8`."""

    reason: str
    """Why, in words."""


class KeptBefore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kept page that precedes another in the winner order of their group."""

    duplicate: bool
    """Whether they are near-duplicates, F."""

    rule: str
    """The rule by which it precedes the page. One of `market`, `popularity`, `day_first_seen`, `static_url`,
    `shorter_url`, `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float
    """How similar the two are, by the policy's own measure."""

    url: str
    """The kept page."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rule leaves out of the main content."""

    rule: str
    """The rule: `navigation`, `header`, `footer`, `side-bar`, `search`, `dialog`, `control`, `promotion`,
    `hidden`, `title`, or `outside-main`.
    """

    text: str
    """The beginning of their text; `…` at its end says that there is more."""

    tokens: int
    """Tokens that it leaves out."""


class MainContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a page is compared as its main content, and what is left out."""

    left_out: list[LeftOut]
    """What is left out, by rule."""

    left_out_tokens: int
    """Those that are left out."""

    page_tokens: int
    """Tokens of the whole page."""

    part: str
    """Which part is taken: `main`, what stands in the main element; `page`, what the rules leave of the page
    without its title; `page-and-title`; or `whole`, the whole page, where each of these has too few tokens.
    """

    taken_tokens: int
    """Those that are taken, which are compared."""


class Measures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every measure of F."""

    criteria: list[Criterion]
    """What F asks for, all of which a pair of different contents has to have."""

    same_content: bool
    """Whether the token sequences are the same."""

    shingles: Shingles | None = None
    """Where signatures are of shingles (`jaccard`, `content`, `copies`): what shingles and sketches say."""

    similarity: float
    """The policy's own measure, from 0 to 1."""


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `ProbeRequest`."""

    html: str | None = None
    """An HTML document of at most 16 MiB, or"""

    market: str | None = None
    """A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of such
    hosts.
    """

    text: str | None = None
    """plain text or Markdown of at most 16 MiB."""

    url: str | None = None
    """Where it was found: relative links of a redirect are resolved against it, and what is stored under it is
    not taken for a partner. A policy that reads the site (`by-site`, `copies`) needs it, with a host.
    """


class Probed(Advice, frozen=True, kw_only=True, omit_defaults=True):
    """Advice about a page that is not stored."""

    main_content: MainContent | None = None
    """Under a policy that compares the main content, of HTML: what of it is compared, and what is left out."""


class Shingles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the sets of shingles of two contents say, and their sketches."""

    bands: int
    """Bands of the sketch."""

    equal_bands: int
    """Bands of the sketch that are equal: at least one makes the pair a candidate."""

    examples: Examples
    """Examples of shingles."""

    only_a: int
    """Shingles that only `a` has."""

    only_b: int
    """Shingles that only `b` has."""

    sketch_estimate: float
    """The Jaccard coefficient as estimated by the sketches. It decides nothing."""


class Side(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one page."""

    advice: Advice
    """Advice about it at this moment."""

    compared_url: str | None = None
    """The page whose content is compared: the page itself, or the one at the end of its redirects."""

    content: Content | None = None
    """The content that is compared."""

    kept_before: list[KeptBefore]
    """The kept pages of its group that precede it in the winner order, the first 20 of them: a page is a
    duplicate of the first that it is near, and kept if it is near none. Empty for a winner, for a page in no
    group, and in a group in quarantine, where all are kept.
    """


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one URL of many."""

    age_ms: int | None = None
    """Where a range has no owner that answers, a replica does: the answer is true of a moment no longer ago than
    so many milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    """

    duplicate_of: str | None = None
    """The kept page that it is a duplicate of: the winner, or a secondary page of the group."""

    fetched_at: datetime | None = None
    """The time of the newest fetch, RFC 3339."""

    group: str | None = None
    """The group it is in, if any, such as `g12-0`."""

    note: str | None = None
    """What limits the answer."""

    reason: str | None = None
    """Why a redirect is unresolved. `unknown_target`: a page of the chain is not on record. `dead_target`: a
    page of the chain is dead; once its record is dropped (`--keep-dead`), the reason is `unknown_target`.
    `loop`, `too_many_hops`: the chain comes to no end. One of `unknown_target`, `dead_target`, `loop`,
    `too_many_hops`; others may come with a later release.
    """

    redirect_to: str | None = None
    """Where a redirect leads; absent for other pages."""

    rule: str | None = None
    """The rule of the winner order by which the page that it is a duplicate of, or else the winner, stands
    before this page. One of `market`, `popularity`, `day_first_seen`, `static_url`, `shorter_url`,
    `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float | None = None
    """How similar it is to that page, by the policy's measure; none for redirects."""

    status: str | None = None
    """Its status. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`, `unresolved`,
    `dead`; others may come with a later release.
    """

    url: str
    """The page, as asked for; empty for a probe without one."""

    winner: str | None = None
    """That group's winner."""

    error: str | None = None
    """Why it is none."""


class StatusAnswers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Advice about many pages."""

    pages: list[StatusAnswer]
    """One answer per URL, in order."""


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `StatusRequest`."""

    market: str | None = None
    """A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of such
    hosts.
    """

    urls: list[str]
    """The pages, at most 1,000. What is no page URL is answered as such."""


class Winners(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules and markets in force."""

    markets: dict[str, list[str]]
    """The host suffixes of each market that has a name."""

    rules: list[str]
    """The rules in their order: the first rule that distinguishes two pages decides. The last one is `url`. If a
    query names a market, `market` takes precedence over all of them.
    """
