"""Operations of the contract: operations.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from typing import Any, Literal

from ...call import AsyncCaller, Call, Caller, segment
from ..types import (
    ClusterStatus,
    Flushed,
    Present,
    RebalanceOutcome,
    RebalancePlan,
)


class OperationsCalls(Caller):
    """Operations of the tag `operations`."""

    def get_operator_page(self) -> str:
        """Open the operator's page."""
        return self.ask(Call("GET", "/", str))

    def get_operator_page_file(self, file: str) -> str:
        """Read a file of the operator's page.

        `file`: Name of the file
        """
        return self.ask(Call("GET", f"/assets/{segment(file)}", str))

    def get_health(self) -> str:
        """Check whether the process is alive."""
        return self.ask(Call("GET", "/healthz", str, retried=False))

    def get_metrics(self) -> str:
        """Read the metrics.

        The answer is in the OpenMetrics text format, or in the classic Prometheus text format if `Accept`
        prefers `text/plain`.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/metrics", str))

    def get_openapi(self) -> dict[str, Any]:
        """Read this contract as an OpenAPI document."""
        return self.ask(Call("GET", "/openapi.json", dict))

    def get_readiness(self, *, ranges: Literal["any", "served", "all"] | None = None) -> str:
        """Check whether the service is ready for requests.

        `ranges`: What must be available in a cluster. `any`, the default, is meant for load balancers: at
        least one node of tier 1 must answer. With `served`, every range must also have an owner that accepts
        writes. With `all`, every range must also have all of its replicas.
        """
        return self.ask(Call("GET", "/readyz", str, query={"ranges": ranges}, retried=False))

    def get_cluster(self) -> ClusterStatus:
        """Show the nodes of the cluster, the ranges, and the faults that need attention.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/cluster", ClusterStatus))

    def take_over_range(self, range: int, to: str) -> None:
        """Make a node the owner of a range.

        The answer means that the node has begun to take over the range. `GET /v1/cluster` shows when the node
        owns it.

        `range`: Number of the range.

        `to`: Name of the tier-1 node that takes over the range. The node must have a replica of the range.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/cluster/takeover", type(None), body={"range": range, "to": to}))

    def flush(self, *, wait: bool | None = None, timeout: int | None = None) -> Flushed:
        """Decide every page that was accepted before the call.

        By default the call does not wait. It starts the decisions, and answers at once with what is left to
        do. With `wait=true` the call waits until every page is decided, or until `timeout` is over. `done`
        says whether every page is decided. A flush waits for the pages of all clients. A large backlog of one
        client therefore delays the flushes of the others.

        `wait`: Whether to wait until every page accepted before the call is decided. Default: false.

        `timeout`: Maximum number of seconds to wait, 1 to 3,600. Default: 60. Without `wait=true` it has no
        effect.

        A server with tokens asks for one with the role `write`.
        """
        return self.ask(
            Call(
                "POST",
                "/v1/flush",
                Flushed,
                query={"wait": wait, "timeout": timeout},
                waits=(timeout or 60) if wait else 0,
            )
        )

    def get_rebalance(self) -> Present:
        """Show the partition plan and the progress of a change.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/rebalance", Present))

    def rebalance(
        self,
        action: Literal["balance", "learn", "drain", "join", "move"],
        *,
        dry_run: bool | None = None,
        node: int | None = None,
        partition: int | None = None,
    ) -> RebalancePlan:
        """Change the partition map, or report what a change would do.

        The service keeps answering during the change. While a change is in progress, the service refuses
        further requests, including dry runs.

        `action`: Action to perform. `balance` evens out the load with few moves. `learn` learns a new map
        from the contents. `drain` removes all partitions from a node. `join` gives a drained node its share
        again. `move` moves one partition to another node.

        `dry_run`: Whether to only report what the request would do.

        `node`: Number of the node to drain, to join, or to move the partition to. The first node is 0.

        `partition`: Id of the partition to move.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(
            Call(
                "POST",
                "/v1/rebalance",
                RebalancePlan,
                body={"action": action, "dry_run": dry_run, "node": node, "partition": partition},
            )
        )

    def cancel_rebalance(self) -> RebalanceOutcome:
        """Cancel the change of the partition map that is in progress.

        The service discards the copies that the change has made, and keeps the plan in force.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("DELETE", "/v1/rebalance", RebalanceOutcome))


class AsyncOperationsCalls(AsyncCaller):
    """Operations of the tag `operations`, to be awaited."""

    async def get_operator_page(self) -> str:
        """Open the operator's page."""
        return await self.ask(Call("GET", "/", str))

    async def get_operator_page_file(self, file: str) -> str:
        """Read a file of the operator's page.

        `file`: Name of the file
        """
        return await self.ask(Call("GET", f"/assets/{segment(file)}", str))

    async def get_health(self) -> str:
        """Check whether the process is alive."""
        return await self.ask(Call("GET", "/healthz", str, retried=False))

    async def get_metrics(self) -> str:
        """Read the metrics.

        The answer is in the OpenMetrics text format, or in the classic Prometheus text format if `Accept`
        prefers `text/plain`.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/metrics", str))

    async def get_openapi(self) -> dict[str, Any]:
        """Read this contract as an OpenAPI document."""
        return await self.ask(Call("GET", "/openapi.json", dict))

    async def get_readiness(self, *, ranges: Literal["any", "served", "all"] | None = None) -> str:
        """Check whether the service is ready for requests.

        `ranges`: What must be available in a cluster. `any`, the default, is meant for load balancers: at
        least one node of tier 1 must answer. With `served`, every range must also have an owner that accepts
        writes. With `all`, every range must also have all of its replicas.
        """
        return await self.ask(Call("GET", "/readyz", str, query={"ranges": ranges}, retried=False))

    async def get_cluster(self) -> ClusterStatus:
        """Show the nodes of the cluster, the ranges, and the faults that need attention.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/cluster", ClusterStatus))

    async def take_over_range(self, range: int, to: str) -> None:
        """Make a node the owner of a range.

        The answer means that the node has begun to take over the range. `GET /v1/cluster` shows when the node
        owns it.

        `range`: Number of the range.

        `to`: Name of the tier-1 node that takes over the range. The node must have a replica of the range.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("POST", "/v1/cluster/takeover", type(None), body={"range": range, "to": to}))

    async def flush(self, *, wait: bool | None = None, timeout: int | None = None) -> Flushed:
        """Decide every page that was accepted before the call.

        By default the call does not wait. It starts the decisions, and answers at once with what is left to
        do. With `wait=true` the call waits until every page is decided, or until `timeout` is over. `done`
        says whether every page is decided. A flush waits for the pages of all clients. A large backlog of one
        client therefore delays the flushes of the others.

        `wait`: Whether to wait until every page accepted before the call is decided. Default: false.

        `timeout`: Maximum number of seconds to wait, 1 to 3,600. Default: 60. Without `wait=true` it has no
        effect.

        A server with tokens asks for one with the role `write`.
        """
        return await self.ask(
            Call(
                "POST",
                "/v1/flush",
                Flushed,
                query={"wait": wait, "timeout": timeout},
                waits=(timeout or 60) if wait else 0,
            )
        )

    async def get_rebalance(self) -> Present:
        """Show the partition plan and the progress of a change.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/rebalance", Present))

    async def rebalance(
        self,
        action: Literal["balance", "learn", "drain", "join", "move"],
        *,
        dry_run: bool | None = None,
        node: int | None = None,
        partition: int | None = None,
    ) -> RebalancePlan:
        """Change the partition map, or report what a change would do.

        The service keeps answering during the change. While a change is in progress, the service refuses
        further requests, including dry runs.

        `action`: Action to perform. `balance` evens out the load with few moves. `learn` learns a new map
        from the contents. `drain` removes all partitions from a node. `join` gives a drained node its share
        again. `move` moves one partition to another node.

        `dry_run`: Whether to only report what the request would do.

        `node`: Number of the node to drain, to join, or to move the partition to. The first node is 0.

        `partition`: Id of the partition to move.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(
            Call(
                "POST",
                "/v1/rebalance",
                RebalancePlan,
                body={"action": action, "dry_run": dry_run, "node": node, "partition": partition},
            )
        )

    async def cancel_rebalance(self) -> RebalanceOutcome:
        """Cancel the change of the partition map that is in progress.

        The service discards the copies that the change has made, and keeps the plan in force.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("DELETE", "/v1/rebalance", RebalanceOutcome))
