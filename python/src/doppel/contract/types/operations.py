"""Types of the contract: operations.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

import msgspec

from .shared import Backlog, RebalanceProgress


class Attention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is not as it should be."""

    remedy: str
    """What to do about it."""

    what: str
    """What it is."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node."""

    address: str
    """Where the others reach it."""

    answers: bool
    """Whether it has answered, within three seconds."""

    contents: int | None = None
    """The contents of a node of tier 2; null when it does not say."""

    lag: int | None = None
    """Orders that a node of tier 2 has not applied, of the range that is furthest ahead; null when it is still
    to be told what it has, or does not say.
    """

    name: str
    """Its name in the description of the cluster."""

    partitions: list[int] | None = None
    """The partitions of a node of tier 2; null when the router does not say."""

    reason: str | None = None
    """Why not."""

    role: str
    """Its tier. One of `tier1`, `tier2`; others may come with a later release."""

    router: bool
    """Whether it has the router of the index."""


class ClusterRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A range."""

    epoch: int | None = None
    """Number of this ownership: it grows with every start of the owner, and with every other owner."""

    first_shard: int
    """Its first shard."""

    last_shard: int
    """Its last shard."""

    live: int | None = None
    """Live pages."""

    live_replicas: int
    """Replicas whose nodes are there: that of an owner who answers, and those of standbys that follow."""

    owner: str | None = None
    """The node of tier 1 that owns it; null where none is known to."""

    pending: int | None = None
    """Pages that are not decided yet."""

    range: int
    """The range."""

    replicas: int
    """Replicas that are to be there, that of the owner among them."""

    served: bool
    """Whether the owner answers for it and takes writes."""

    standbys: list[Standby]
    """The other nodes that have a replica; empty where ranges are not replicated."""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The nodes, the ranges, and what is not as it should be."""

    attention: list[Attention]
    """What is not as it should be; empty when all is well."""

    cluster: str | None = None
    """The name of the cluster; null for a single process, which has no nodes."""

    engine: EngineStatus | None = None
    """The log; null where nothing is replicated."""

    nodes: list[ClusterNode]
    """The nodes of both tiers. Front doors are not known to each other."""

    orders_waiting: int | None = None
    """Orders that wait in the index; null when its router does not answer."""

    ranges: list[ClusterRange]
    """Every range, in order."""

    replicated: bool
    """Whether other nodes have copies of a range."""


class EngineServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server of the log."""

    address: str
    """Where it is reached."""

    answers: bool
    """Whether it has answered, within three seconds."""

    name: str | None = None
    """The name that it gives itself; null when it does not answer."""

    reason: str | None = None
    """Why not."""

    version: str | None = None
    """Its version; null when it does not answer."""


class EngineStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log of a cluster."""

    servers: list[EngineServer]
    """The servers that the file of the cluster names, in its order."""

    streams: list[EngineStream]
    """The stream of every range, in order."""


class EngineStream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stream of a range. What its leader has not said is null."""

    behind: list[str]
    """The servers whose copies do not."""

    bytes: int | None = None
    """Bytes in it."""

    copies: int
    """Copies that are to be there."""

    current_copies: int | None = None
    """Copies that are there and have all but the newest entries."""

    first: int | None = None
    """The sequence of its first entry; one more than that of the last where it is empty."""

    last: int | None = None
    """The sequence of its last entry."""

    leader: str | None = None
    """The server that orders its entries; null also in a log of a single server."""

    limit: int | None = None
    """Bytes past which it takes nothing; null also where there is no limit."""

    range: int
    """The range."""

    reason: str | None = None
    """Why its leader says nothing."""

    stream: str
    """Its name at the servers."""


class Flushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is left after a flush."""

    backlog: Backlog
    """Accepted work that is not yet done, including pages that came during the call."""

    done: bool
    """Whether everything accepted before the call is decided."""


class PartitionMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """A partition that moves to another node."""

    contents: int
    """About how many contents it has."""

    from_: int
    """The node that has it now."""

    partition: int
    """The partition's id in the new plan."""

    to: int
    """The node that it moves to."""


class Present(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The present mapping."""

    drained: list[int]
    """The drained nodes, which get no partitions."""

    nodes: int
    """The number of nodes, including drained ones."""

    outcome: RebalanceOutcome | None = None
    """The outcome of the last request that ended since the service started, or null."""

    plan_version: int
    """The version of the plan in force."""

    progress: RebalanceProgress | None = None
    """The change that is under way, or null."""

    request: RebalanceRequest | None = None
    """The request that is being carried out or is next, or null."""


class RebalanceBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is requested."""

    action: str
    """`balance` makes the load even with few moves, `learn` learns the map anew, `drain` takes everything from a
    node, `join` gives a node its part again, and `move` puts one partition on another node. One of `balance`,
    `learn`, `drain`, `join`, `move`; others may come with a later release.
    """

    dry_run: bool | None = None
    """Only say what would be done."""

    node: int | None = None
    """The node that is drained, joined or moved to, from 0."""

    partition: int | None = None
    """The id of the partition that is moved."""


class RebalanceOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a request to change the mapping ended: the fields of the request, and what became of it."""

    action: str
    """What was requested. One of `balance`, `learn`, `drain`, `join`, `move`; others may come with a later
    release.
    """

    cancelled: bool
    """Whether it was not carried out because somebody cancelled it."""

    copied: int
    """The number of contents copied."""

    failed: str | None
    """Why it was not carried out; null if it was."""

    node: int | None = None
    """The node that was to be drained, joined or moved to; absent where all nodes were meant."""

    partition: int | None = None
    """The partition that was to be moved; absent where none was named."""

    plan_version: int
    """The version of the plan in force when the request ended."""

    seconds: float
    """Seconds from the beginning to the end."""


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a change of the mapping would do, or is doing."""

    contents: int
    """The number of all contents."""

    contents_moved: int
    """About how many contents change their node. [`RebalanceProgress`] counts more, because the contents of a
    partition that is split or joined on its node are copied as well.
    """

    fan_out_saved_after: float | None = None
    """The same after the change."""

    fan_out_saved_before: float | None = None
    """Share of fan-out saved before the change, 0 to 1, in relation to comparing every content on every serving
    node; null unless the map is learned anew.
    """

    imbalance_after: float
    """Imbalance after the change, over the nodes that serve then."""

    imbalance_before: float
    """Imbalance before the change: the largest number of contents on a serving node, divided by the mean."""

    joins: int
    """The number of pairs of partitions that are joined into one."""

    moves: list[PartitionMove]
    """The partitions that move to another node, in the order of the map."""

    nothing_to_do: str | None = None
    """Why there is nothing to do; null if there is something to do."""

    plan_version: int
    """The version of the present plan."""

    splits: int
    """The number of partitions that are cut in two."""

    started: bool
    """Whether the change is being carried out."""


class RebalanceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A requested change of the mapping."""

    action: str
    """One of `balance`; others may come with a later release."""

    node: int | None = None
    """The node, from 0."""

    partition: int | None = None
    """The partition's id."""


class Standby(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that has a replica of a range that it does not own."""

    follows: bool
    """Whether it was heard of in the last seconds, and follows."""

    lag: int | None = None
    """Records of the range's log that the owner has and it has not; null when one of the two was not heard of."""

    node: str
    """The node of tier 1."""

    reason: str | None = None
    """Why it does not follow."""


class TakeOverBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who is to own a range."""

    range: int
    """The range."""

    to: str
    """The node of tier 1, which must have a replica of it."""
