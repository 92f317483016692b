"""Types of the contract: load.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .shared import RebalanceProgress


class LengthBox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A box of length-vector space: `lo[m] <= feature m <= hi[m]`. Feature 0 is the total. For the m-th division
    of the dictionary into two halves, feature m is the number of a page's shingles in the one half minus that
    in the other.
    """

    hi: list[int | None]
    """The largest value of each feature; null means no limit."""

    lo: list[int | None]
    """The smallest value of each feature; null means no limit."""


class LoadReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load of tier 2."""

    dimensions: int
    """The number of sub-dictionaries of the map (N)."""

    fan_out: int
    """The number of partitions that these searches were sent to, summed over the searches."""

    fan_out_saved: float | None = None
    """Share of fan-out saved in relation to comparing every page in every partition, 0 to 1; null without
    searches.
    """

    file_bytes: int
    """The size of the signature file on disk, in bytes."""

    imbalance: float
    """The largest number of contents in a partition, divided by the mean; 1 is even."""

    imbalance_floor: float
    """The noise floor of `imbalance`: its value if the same contents were distributed to as many partitions at
    random.
    """

    node_fan_out: int
    """The number of nodes that these searches were sent to, summed over the searches. A node with several of the
    partitions gets a search once.
    """

    node_fan_out_saved: float | None = None
    """Share of fan-out saved in relation to comparing every page on every serving node, 0 to 1; null without
    searches.
    """

    node_imbalance: float
    """The largest number of contents on a serving node, divided by the mean; 1 is even."""

    node_imbalance_floor: float
    """The noise floor of `node_imbalance`: its value if the same contents were distributed to as many nodes at
    random.
    """

    partitions: list[PartitionLoad]
    """All partitions."""

    plan_version: int
    """The version of the plan. It grows by one whenever the cuts, the nodes of the partitions, or the nodes that
    may have partitions change.
    """

    searches: int
    """The number of searches since the start or the last change of the plan."""

    serving_nodes: int
    """The number of nodes that may have partitions."""


class LoadBalance(LoadReport, frozen=True, kw_only=True, omit_defaults=True):
    """The load per partition and node, and the owner of each shard."""

    drained: list[int]
    """The drained nodes, which get no partitions."""

    history: list[LoadPoint]
    """One point per minute since the service started, at most of the last 24 hours, oldest first."""

    nodes: list[NodeLoad]
    """The partitions' figures added up per tier-2 node."""

    progress: RebalanceProgress | None = None
    """The change of the mapping that is under way."""

    shard_map_version: int
    """The version of the table of shards."""

    shards: list[ShardAssignment]
    """The tier-1 node of every shard."""

    variation: float | None = None
    """Standard deviation of `node_imbalance` in the history, divided by its mean; null without a history."""


class LoadHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Points of the last hours, as one front door has noted them since it started."""

    now_ms: int
    """When the answer was made, in milliseconds since 1970: to be passed as `since` to get what came later."""

    points: list[LoadSample]
    """The points, oldest first: every 5 seconds in the first minute after the start, then every 30. A moment at
    which a tier did not answer has none.
    """


class LoadPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load at some moment."""

    at: datetime
    """The time, RFC 3339."""

    contents: int
    """All contents."""

    node_fan_out_saved: float | None = None
    """Share of fan-out to nodes saved in relation to a broadcast; null if there were no searches under the plan."""

    node_imbalance: float
    """The largest number of contents on a serving node, divided by the mean."""

    node_imbalance_floor: float
    """The same for the contents distributed at random."""

    plan_version: int
    """The version of the plan."""


class LoadSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load at some moment, and what happened between it and the point before. A figure of the time between
    two points is null at the first one.
    """

    at: datetime
    """The time, RFC 3339."""

    at_ms: int
    """The same in milliseconds since 1970."""

    decision_p50_ms: int | None = None
    """Half of the pages decided in the time waited no longer than this; null where none was decided. Times are
    known by classes, so this is the upper bound of one: 10, 30, 100, ... milliseconds.
    """

    decision_p95_ms: int | None = None
    """The same for 95 of 100 pages."""

    decisions_per_s: float | None = None
    """Pages decided by a comparison, a second."""

    fan_out: float | None = None
    """Partitions that a search of the time was sent to, on average; null where there was none."""

    oldest_pending_ms: int | None = None
    """How long the one that has waited longest waits, in milliseconds; null when none does."""

    partitions: list[PartitionSample]
    """The load of every partition; empty where there are more than 64."""

    pending: int
    """Pages that wait for a decision."""

    plan_version: int
    """The version of the plan."""

    searches_per_s: float | None = None
    """Searches of the index, a second."""

    submissions_per_s: float | None = None
    """Submissions taken, a second."""


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tier-2 node's load."""

    bytes: int
    """Memory, in bytes."""

    comparisons: int
    """Exact comparisons."""

    contents: int
    """Contents stored."""

    node: int
    """The node, from 0."""

    pages: int
    """Pages stored."""

    partitions: int
    """Its partitions."""

    received: int
    """Pages received for comparison, by all its partitions together."""


class PartitionLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load of one partition."""

    box: LengthBox
    """Its box."""

    bytes: int
    """Memory of its columns and tables, in bytes."""

    comparisons: int
    """The number of exact comparisons made in it."""

    contents: int
    """The number of contents stored."""

    node: int
    """The node that has it, from 0."""

    pages: int
    """The number of pages stored. A content may have several."""

    partition: int
    """Its id."""

    received: int
    """The number of pages received for comparison since the start or the last change of the plan."""


class PartitionSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load of a partition."""

    comparisons_per_s: float | None = None
    """Exact comparisons, a second."""

    contents: int
    """Contents stored."""

    node: int
    """The node that has it."""

    partition: int
    """The partition."""

    received_per_s: float | None = None
    """Pages received for comparison, a second."""


class ShardAssignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the table of shards."""

    node: str
    """The tier-1 node that owns it."""

    shard: int
    """The shard."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The estimated load for one number of sub-dictionaries and nodes."""

    dimensions: int
    """The number of sub-dictionaries, N."""

    fan_out_saved: float
    """The share of fan-out saved, compared to searching every content on every node, 0 to 1."""

    imbalance: float
    """The largest number of contents per node divided by the mean; 1 is even."""

    imbalance_floor: float
    """The imbalance of the same number of contents distributed at random to as many nodes."""

    nodes: int
    """The number of nodes."""

    speed_up: float
    """The number of all pairs divided by the work of the busiest node (stored times received)."""


class WhatIfs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The mapping of the present contents with other numbers of sub-dictionaries and nodes."""

    age_ms: int | None = None
    """How long ago it was made, in milliseconds; absent where it was made for this answer."""

    present: WhatIf
    """The present plan on the same contents."""

    rows: list[WhatIf]
    """For 1 to 4 sub-dictionaries and 2 to 128 nodes."""

    sample: int
    """The number of contents that the figures are computed from: all, or the 100,000 with the smallest hashes."""
