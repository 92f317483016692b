"""Types of the contract: advice.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .shared import Examples


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Doppel advises about a page."""

    age_ms: int | None = None
    """Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered in
    place of an owner that does not respond. Normally absent: owners answer with the current state.
    """

    duplicate_of: str | None = None
    """The kept page that this page duplicates: the winner, or a secondary page of the group. Null if the page is
    not a duplicate.
    """

    fetched_at: datetime | None = None
    """Time of the newest fetch of the page (RFC 3339)."""

    group: str | None = None
    """Group of the page, such as `g12-0`; null if the page is in no group."""

    note: str | None = None
    """A limitation of the answer, in words; absent if there is none."""

    reason: str | None = None
    """Why the redirect is unresolved. `unknown_target`: a page of the redirect chain is not on record.
    `dead_target`: a page of the chain is dead; after retention drops its record (`--keep-dead`), the reason
    becomes `unknown_target`. `loop` and `too_many_hops`: the chain has no end, or is too long to follow. One
    of `unknown_target`, `dead_target`, `loop`, `too_many_hops`; others may come with a later release.
    """

    redirect_to: str | None = None
    """Target of the redirect; absent for other pages."""

    rule: str | None = None
    """The rule of the winner order that puts `duplicate_of` before this page. Without `duplicate_of`, the rule
    that puts the winner before this page. One of `market`, `popularity`, `day_first_seen`, `static_url`,
    `shorter_url`, `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float | None = None
    """Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects."""

    status: str
    """Status of the page. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`,
    `unresolved`, `dead`; others may come with a later release.
    """

    url: str
    """URL of the page, as in the request. Empty for a probe without a URL."""

    winner: str | None = None
    """Winner of the group; null if the page is in no group."""


class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a page."""

    comparable: bool
    """Whether the content has at least 20 tokens. A shorter content can be an exact copy but not a near-
    duplicate.
    """

    hash: str
    """Hash of the token sequence."""

    home: int
    """The partition that stores the content."""

    language: str | None = None
    """Language of the page: submitted with the page, or detected by a server that was started with `--detect-
    language`.
    """

    lengths: list[int]
    """Number of distinct shingles, followed by the numbers of shingles whose first word is in each half of the
    dictionary. A policy without shingles counts tokens and assigns half of them to each half of the
    dictionary.
    """

    probed_partitions: list[int]
    """The partitions in which the content is compared."""

    shingles: int | None = None
    """Number of distinct shingles. Present for the policies that compare shingles (`jaccard`, `content`,
    `copies`).
    """

    tokens: int
    """Number of tokens that are compared. The policies `content` and `copies` compare only the main content, and
    the server does not store the rest of the page. `POST /v1/probe` and `doppel explain FILE FILE` count the
    tokens of the whole page.
    """


class Criterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A criterion of the policy for near-duplicates."""

    met: bool
    """Whether the pair meets the criterion."""

    needed: str
    """The value that the policy requires, such as `above 0.8`."""

    of: int
    """Number of units in total, to which `shared` relates."""

    shared: int
    """Number of units that the two contents share."""

    what: str
    """The unit that is counted, such as `shingles`."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Explains why two pages are, or are not, duplicates."""

    a: Side
    """The first page of the comparison."""

    age_ms: int | None = None
    """Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered in
    place of an owner that does not respond. Normally absent: owners answer with the current state.
    """

    b: Side
    """The second page of the comparison."""

    duplicate: bool
    """Whether the two contents are near-duplicates under the policy."""

    measures: Measures | None = None
    """All measures of the comparison; null if a page has no content."""

    policy: str
    """Policy of the collection with its parameters, such as `jaccard:tau=0.8`."""

    reason: str
    """The explanation in words."""


class KeptBefore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kept page that precedes another page in the winner order of their group."""

    duplicate: bool
    """Whether the two pages are near-duplicates under the policy."""

    rule: str
    """The rule that puts the kept page before the other page. One of `market`, `popularity`, `day_first_seen`,
    `static_url`, `shorter_url`, `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float
    """Similarity of the two pages, by the measure of the policy."""

    url: str
    """URL of the kept page."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The text that one rule leaves out of the main content."""

    rule: str
    """Name of the rule: `navigation`, `header`, `footer`, `side-bar`, `search`, `dialog`, `control`,
    `promotion`, `hidden`, `title`, or `outside-main`.
    """

    text: str
    """Beginning of the text that the rule leaves out. A final `…` means that the text continues."""

    tokens: int
    """Number of tokens that the rule leaves out."""


class MainContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a page that is compared as its main content, and the parts that are left out."""

    left_out: list[LeftOut]
    """The text that is left out, by rule."""

    left_out_tokens: int
    """Number of tokens that are left out."""

    page_tokens: int
    """Number of tokens in the whole page."""

    part: str
    """The part that is compared. `main`: the main element. `page`: the text that the rules leave of the page,
    without its title. `page-and-title`: the same text with the title. `whole`: the whole page, because each
    of the other parts has too few tokens.
    """

    taken_tokens: int
    """Number of tokens that are compared."""


class Measures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All measures of a comparison."""

    criteria: list[Criterion]
    """Criteria of the policy. Two different contents are near-duplicates if they meet all of them."""

    same_content: bool
    """Whether the token sequences are equal."""

    shingles: Shingles | None = None
    """Details from shingles and sketches. Present for the policies that compare shingles (`jaccard`, `content`,
    `copies`).
    """

    similarity: float
    """Similarity from 0 to 1, by the measure of the policy."""


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `ProbeRequest`."""

    html: str | None = None
    """HTML document of at most 16 MiB. A probe has either this field or `text`."""

    market: str | None = None
    """Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then prefers
    winners on hosts of this market.
    """

    text: str | None = None
    """Plain text or Markdown of at most 16 MiB. A probe has either this field or `html`."""

    url: str | None = None
    """URL at which the page was found. Relative links of a redirect are resolved against it, and the stored page
    with this URL does not count as a partner. A policy that reads the site (`by-site`, `copies`) needs a URL
    with a host.
    """


class Probed(Advice, frozen=True, kw_only=True, omit_defaults=True):
    """Advice about a page that is not stored."""

    main_content: MainContent | None = None
    """How the main content of an HTML page was found. Present only under a policy that compares the main
    content.
    """


class Shingles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Comparison of the shingle sets and the sketches of two contents."""

    bands: int
    """Number of bands in a sketch."""

    equal_bands: int
    """Number of equal bands in the two sketches. One equal band makes the pair a candidate."""

    examples: Examples
    """Examples of common and of distinct shingles."""

    only_a: int
    """Number of shingles that only `a` contains."""

    only_b: int
    """Number of shingles that only `b` contains."""

    sketch_estimate: float
    """Jaccard coefficient estimated from the sketches. The estimate does not influence the decision."""


class Side(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page in the comparison of two pages."""

    advice: Advice
    """Current advice about the page."""

    compared_url: str | None = None
    """URL of the page whose content is compared: the page itself, or the page at the end of its redirects."""

    content: Content | None = None
    """The content that is compared."""

    kept_before: list[KeptBefore]
    """The first 20 kept pages of the group that precede this page in the winner order. This page is a duplicate
    of the first kept page that is its near-duplicate, and is kept if there is no such page. The list is empty
    for a winner, for a page in no group, and for a group in quarantine, which keeps all its pages.
    """


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one URL of a request for many."""

    age_ms: int | None = None
    """Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered in
    place of an owner that does not respond. Normally absent: owners answer with the current state.
    """

    duplicate_of: str | None = None
    """The kept page that this page duplicates: the winner, or a secondary page of the group. Null if the page is
    not a duplicate.
    """

    fetched_at: datetime | None = None
    """Time of the newest fetch of the page (RFC 3339)."""

    group: str | None = None
    """Group of the page, such as `g12-0`; null if the page is in no group."""

    note: str | None = None
    """A limitation of the answer, in words; absent if there is none."""

    reason: str | None = None
    """Why the redirect is unresolved. `unknown_target`: a page of the redirect chain is not on record.
    `dead_target`: a page of the chain is dead; after retention drops its record (`--keep-dead`), the reason
    becomes `unknown_target`. `loop` and `too_many_hops`: the chain has no end, or is too long to follow. One
    of `unknown_target`, `dead_target`, `loop`, `too_many_hops`; others may come with a later release.
    """

    redirect_to: str | None = None
    """Target of the redirect; absent for other pages."""

    rule: str | None = None
    """The rule of the winner order that puts `duplicate_of` before this page. Without `duplicate_of`, the rule
    that puts the winner before this page. One of `market`, `popularity`, `day_first_seen`, `static_url`,
    `shorter_url`, `first_seen`, `https`, `url`; others may come with a later release.
    """

    similarity: float | None = None
    """Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects."""

    status: str | None = None
    """Status of the page. One of `unknown`, `pending`, `unique`, `winner`, `duplicate`, `secondary`,
    `unresolved`, `dead`; others may come with a later release.
    """

    url: str
    """URL of the page, as in the request. Empty for a probe without a URL."""

    winner: str | None = None
    """Winner of the group; null if the page is in no group."""

    error: str | None = None
    """Why the text is not a valid page URL."""


class StatusAnswers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Advice about many pages."""

    pages: list[StatusAnswer]
    """One answer for each URL, in the order of the request."""


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request: `StatusRequest`."""

    market: str | None = None
    """Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then prefers
    winners on hosts of this market.
    """

    urls: list[str]
    """URLs of the pages, at most 1,000. A text that is not a page URL gets an error of its own in the answer."""


class Winners(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The winner rules and the markets in force."""

    markets: dict[str, list[str]]
    """Host suffixes of each named market."""

    rules: list[str]
    """The rules in order. The first rule that distinguishes two pages decides, and `url` is the last rule. If a
    query names a market, the rule `market` comes before all others.
    """
