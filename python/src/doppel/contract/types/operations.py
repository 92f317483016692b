"""Types of the contract: operations.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec

from .shared import Backlog, RebalanceProgress


class Attention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that needs the operator's attention."""

    remedy: str
    """What the operator should do about the problem."""

    what: str
    """Description of the problem."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node of the cluster."""

    address: str
    """Address at which other nodes reach this node."""

    answers: bool
    """Whether the node answered within three seconds."""

    contents: int | None = None
    """Number of contents on a node of tier 2; null if the node does not answer."""

    lag: int | None = None
    """Orders that a node of tier 2 has yet to apply, for the range with the most. Null if the node does not
    answer, or has not been fed all its contents yet.
    """

    name: str
    """Name of the node in the cluster description."""

    partitions: list[int] | None = None
    """Partitions on a node of tier 2; null if the router does not answer."""

    reason: str | None = None
    """Why the node did not answer."""

    role: str
    """Tier of the node. One of `tier1`, `tier2`; others may come with a later release."""

    router: bool
    """Whether the node runs the router of the index."""


class ClusterRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A range of shards."""

    epoch: int | None = None
    """Number of the present ownership. It grows each time the owner starts and each time the owner changes."""

    first_shard: int
    """First shard of the range."""

    last_shard: int
    """Last shard of the range."""

    live: int | None = None
    """Number of live pages in the range."""

    live_replicas: int
    """Number of replicas that are available: the owner's if it answers, and those of the standbys that follow."""

    owner: str | None = None
    """Name of the tier-1 node that owns the range; null if no owner is known."""

    pending: int | None = None
    """Number of pages that are not decided yet."""

    range: int
    """Number of the range."""

    replicas: int
    """Number of replicas that the range should have, including the owner's."""

    served: bool
    """Whether the owner answers for the range and accepts writes."""

    standbys: list[Standby]
    """Other nodes with a replica of the range. Empty if ranges are not replicated."""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of the nodes and ranges of the cluster, and a list of problems."""

    attention: list[Attention]
    """Problems that need the operator's attention. Empty if all is well."""

    cluster: str | None = None
    """Name of the cluster; null for a single process, which has no nodes."""

    engine: EngineStatus | None = None
    """The log that replicates the ranges; null if ranges are not replicated."""

    nodes: list[ClusterNode]
    """Nodes of both tiers. Coordinators are not listed, because they do not know each other."""

    orders_waiting: int | None = None
    """Orders that wait in the index; null if the router of the index does not answer."""

    ranges: list[ClusterRange]
    """Every range, in ascending order."""

    replicated: bool
    """Whether each range is replicated on other nodes."""


class EngineServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server of the log."""

    address: str
    """Address of the server."""

    answers: bool
    """Whether the server answered within three seconds."""

    name: str | None = None
    """Name that the server reports; null if the server does not answer."""

    reason: str | None = None
    """Why the server did not answer."""

    version: str | None = None
    """Version of the server; null if the server does not answer."""


class EngineStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of the log that replicates the ranges."""

    servers: list[EngineServer]
    """Servers of the log, in the order of the cluster file."""

    streams: list[EngineStream]
    """The stream of every range, in ascending order of ranges."""


class EngineStream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stream of a range. A field is null if the leader of the stream did not report it."""

    behind: list[str]
    """Servers whose copies are offline or incomplete."""

    bytes: int | None = None
    """Size of the stream in bytes."""

    copies: int
    """Number of copies that the stream should have."""

    current_copies: int | None = None
    """Number of copies that are online and complete except for the newest entries."""

    first: int | None = None
    """Sequence number of the first entry. For an empty stream, one more than the number of the last entry."""

    last: int | None = None
    """Sequence number of the last entry."""

    leader: str | None = None
    """The server that orders the entries. Also null for a log with a single server."""

    limit: int | None = None
    """Size limit in bytes; a full stream refuses entries. Also null if the stream has no limit."""

    range: int
    """Number of the range."""

    reason: str | None = None
    """Why the leader of the stream did not report."""

    stream: str
    """Name of the stream on the log servers."""


class Flushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a flush."""

    backlog: Backlog
    """Accepted work that is not done yet, including pages that arrived during the call."""

    done: bool
    """Whether every page accepted before the call is decided."""


class PartitionMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """A partition that moves to another node."""

    contents: int
    """Approximate number of contents in the partition."""

    from_: int
    """The node that stores the partition now."""

    partition: int
    """Id of the partition in the new plan."""

    to: int
    """The node to which the partition moves."""


class Present(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The present mapping of partitions to nodes."""

    drained: list[int]
    """Drained nodes, which receive no partitions."""

    nodes: int
    """Number of nodes, including drained nodes."""

    outcome: RebalanceOutcome | None = None
    """Outcome of the last request that ended since the service started; null if there is none."""

    plan_version: int
    """Version of the plan in force."""

    progress: RebalanceProgress | None = None
    """Progress of the present change of the mapping; null if there is none."""

    request: RebalanceRequest | None = None
    """The request that is being carried out or comes next; null if there is none."""


class RebalanceBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to change the partition map, or to show what a change would do."""

    action: str
    """Action to perform. `balance` evens out the load with few moves. `learn` learns a new map from the
    contents. `drain` removes all partitions from a node. `join` gives a drained node its share again. `move`
    moves one partition to another node. One of `balance`, `learn`, `drain`, `join`, `move`; others may come
    with a later release.
    """

    dry_run: bool | None = None
    """Whether to only report what the request would do."""

    node: int | None = None
    """Number of the node to drain, to join, or to move the partition to. The first node is 0."""

    partition: int | None = None
    """Id of the partition to move."""


class RebalanceOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Outcome of a request to change the partition map, with the fields of the request."""

    action: str
    """Action that was requested. One of `balance`, `learn`, `drain`, `join`, `move`; others may come with a
    later release.
    """

    cancelled: bool
    """Whether the request was cancelled."""

    copied: int
    """Number of contents that were copied."""

    failed: str | None
    """Reason why the request was not carried out. Null if it was carried out."""

    node: int | None = None
    """Node to drain, to join, or to move the partition to. Absent if the action concerned all nodes."""

    partition: int | None = None
    """Partition to move. Absent if the request named no partition."""

    plan_version: int
    """Version of the plan that was in force when the request ended."""

    seconds: float
    """Duration of the request in seconds."""


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A planned or running change of the mapping, with its effects."""

    contents: int
    """Number of all contents."""

    contents_moved: int
    """Approximate number of contents that change their node. The progress of the change counts more, because it
    includes the contents of partitions that are split or joined on their node.
    """

    fan_out_saved_after: float | None = None
    """Share of fan-out saved after the change, from 0 to 1. Null unless the map is learned anew."""

    fan_out_saved_before: float | None = None
    """Share of fan-out saved before the change, from 0 to 1, relative to comparing every content on every
    serving node. Null unless the map is learned anew.
    """

    imbalance_after: float
    """Imbalance after the change, over the nodes that serve then."""

    imbalance_before: float
    """Imbalance before the change: the largest number of contents on a serving node, divided by the mean."""

    joins: int
    """Number of pairs of partitions that are joined into one."""

    moves: list[PartitionMove]
    """The partitions that move to another node, in the order of the map."""

    nothing_to_do: str | None = None
    """Why there is nothing to do; null if there is something to do."""

    plan_version: int
    """Version of the present plan."""

    splits: int
    """Number of partitions that are cut in two."""

    started: bool
    """Whether the change is being carried out."""


class RebalanceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to change the mapping of partitions to nodes."""

    action: str
    """One of `balance`; others may come with a later release."""

    node: int | None = None
    """Number of the node, counted from 0."""

    partition: int | None = None
    """Id of the partition."""


class Standby(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that has a replica of a range and does not own the range."""

    follows: bool
    """Whether the node sent a beat in the last seconds and follows the log of the range."""

    lag: int | None = None
    """Records of the range's log that the owner has and the standby lacks. Null if the owner or the standby has
    not reported.
    """

    node: str
    """Name of the tier-1 node."""

    reason: str | None = None
    """Why the standby does not follow the log."""


class TakeOverBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to move the ownership of a range to a node."""

    range: int
    """Number of the range."""

    to: str
    """Name of the tier-1 node that takes over the range. The node must have a replica of the range."""
