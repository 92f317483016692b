"""Types of the contract: load.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .shared import RebalanceProgress


class LengthBox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A box in the space of length vectors: `lo[m] <= feature m <= hi[m]`. Feature 0 is the total. The m-th
    division splits the dictionary into two halves. Feature m is the number of a page's shingles in the one
    half minus the number in the other.
    """

    hi: list[int | None]
    """Largest value of each feature; null if there is no limit."""

    lo: list[int | None]
    """Smallest value of each feature; null if there is no limit."""


class LoadReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load of tier 2."""

    dimensions: int
    """Number of sub-dictionaries of the map (N)."""

    fan_out: int
    """Number of partitions that these searches were sent to, summed over the searches."""

    fan_out_saved: float | None = None
    """Share of fan-out saved relative to comparing every page in every partition, from 0 to 1. Null if there was
    no search.
    """

    file_bytes: int
    """Size of the signature file on disk, in bytes."""

    imbalance: float
    """Largest number of contents in a partition, divided by the mean; 1 means even."""

    imbalance_floor: float
    """Noise floor of `imbalance`: its value if the same contents were distributed to the same number of
    partitions at random.
    """

    node_fan_out: int
    """Number of nodes that these searches were sent to, summed over the searches. A search for several
    partitions of a node counts once.
    """

    node_fan_out_saved: float | None = None
    """Share of fan-out saved relative to comparing every page on every serving node, from 0 to 1. Null if there
    was no search.
    """

    node_imbalance: float
    """Largest number of contents on a serving node, divided by the mean; 1 means even."""

    node_imbalance_floor: float
    """Noise floor of `node_imbalance`: its value if the same contents were distributed to the same number of
    nodes at random.
    """

    partitions: list[PartitionLoad]
    """Load of every partition."""

    plan_version: int
    """Version of the plan. It grows by one whenever the cuts, the nodes of the partitions, or the set of serving
    nodes change.
    """

    searches: int
    """Number of searches since the start or the last change of the plan."""

    serving_nodes: int
    """Number of serving nodes, which may have partitions."""


class LoadBalance(LoadReport, frozen=True, kw_only=True, omit_defaults=True):
    """Load of each partition and node, and the owner of each shard."""

    drained: list[int]
    """Drained nodes, which receive no partitions."""

    history: list[LoadPoint]
    """Load once per minute since the service started, oldest first. The history covers at most 24 hours."""

    nodes: list[NodeLoad]
    """Load of each tier-2 node, summed over its partitions."""

    progress: RebalanceProgress | None = None
    """Progress of the present change of the mapping; null if there is none."""

    shard_map_version: int
    """Version of the table of shards."""

    shards: list[ShardAssignment]
    """The tier-1 node of every shard."""

    variation: float | None = None
    """Standard deviation of `node_imbalance` over the history, divided by its mean. Null without a history."""


class LoadHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load over the last hours, as one coordinator recorded it since its start."""

    now_ms: int
    """Time of the answer in milliseconds since 1970. Pass it as `since` in the next request to get only later
    points.
    """

    points: list[LoadSample]
    """The points, oldest first: every 5 seconds in the first minute after the start, then every 30 seconds.
    There is no point for a time at which a tier did not answer.
    """


class LoadPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load at a point in time."""

    at: datetime
    """Time of the measurement (RFC 3339)."""

    contents: int
    """Number of contents in all partitions."""

    node_fan_out_saved: float | None = None
    """Share of node requests that the plan saves compared with a broadcast to all nodes. Null if no search was
    made under the plan.
    """

    node_imbalance: float
    """Largest number of contents on a serving node, divided by the mean."""

    node_imbalance_floor: float
    """Value that `node_imbalance` would have if the contents were distributed at random."""

    plan_version: int
    """Version of the plan in force."""


class LoadSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load at a point in time, and activity since the previous point. A figure about the time since the previous
    point is null in the first point.
    """

    at: datetime
    """Time of the measurement (RFC 3339)."""

    at_ms: int
    """Time of the measurement in milliseconds since 1970."""

    decision_p50_ms: int | None = None
    """Median time that pages waited for their decision; null if none was decided. Waiting times are counted in
    classes, so the value is the upper bound of a class: 10, 30, 100, ... milliseconds.
    """

    decision_p95_ms: int | None = None
    """95th percentile of the time that pages waited for their decision; null if none was decided. The value is
    the upper bound of a class.
    """

    decisions_per_s: float | None = None
    """Pages decided by a comparison, per second."""

    fan_out: float | None = None
    """Mean number of partitions that a search was sent to. Null if there was no search."""

    oldest_pending_ms: int | None = None
    """Waiting time of the page that has waited longest, in milliseconds. Null if no page waits."""

    partitions: list[PartitionSample]
    """Load of every partition; empty if there are more than 64 partitions."""

    pending: int
    """Number of pages that wait for a decision."""

    plan_version: int
    """Version of the plan in force."""

    searches_per_s: float | None = None
    """Searches of the index, per second."""

    submissions_per_s: float | None = None
    """Accepted submissions per second."""


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load of a tier-2 node."""

    bytes: int
    """Memory of the partitions in bytes."""

    comparisons: int
    """Number of exact comparisons on the node."""

    contents: int
    """Number of contents stored on the node."""

    node: int
    """Number of the node, counted from 0."""

    pages: int
    """Number of pages stored on the node."""

    partitions: int
    """Number of partitions on the node."""

    received: int
    """Number of pages received for comparison, summed over the partitions of the node."""


class PartitionLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load of a partition."""

    box: LengthBox
    """Box of the partition."""

    bytes: int
    """Memory of the partition's columns and tables, in bytes."""

    comparisons: int
    """Number of exact comparisons in the partition."""

    contents: int
    """Number of contents stored in the partition."""

    node: int
    """Number of the node that stores the partition, counted from 0."""

    pages: int
    """Number of pages stored in the partition. Several pages can have the same content."""

    partition: int
    """Number of the partition."""

    received: int
    """Number of pages received for comparison since the start or the last change of the plan."""


class PartitionSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load of a partition."""

    comparisons_per_s: float | None = None
    """Exact comparisons per second."""

    contents: int
    """Number of contents stored in the partition."""

    node: int
    """Number of the node that stores the partition."""

    partition: int
    """Number of the partition."""

    received_per_s: float | None = None
    """Pages received for comparison, per second."""


class ShardAssignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the table of shards."""

    node: str
    """Name of the tier-1 node that owns the shard."""

    shard: int
    """Number of the shard."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The estimated load for one number of sub-dictionaries and nodes."""

    dimensions: int
    """The number N of sub-dictionaries."""

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
    """Mappings of the present contents with other numbers of sub-dictionaries and nodes."""

    age_ms: int | None = None
    """Age of the report in milliseconds; absent if the report was computed for this answer."""

    present: WhatIf
    """Figures of the present plan for the same contents."""

    rows: list[WhatIf]
    """Figures for 1 to 4 sub-dictionaries and 2 to 128 nodes."""

    sample: int
    """Number of contents from which the figures are computed: all contents, or the 100,000 with the smallest
    hashes.
    """
