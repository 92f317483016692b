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
        """The operator's page."""
        return self.ask(Call("GET", "/", str))

    def get_operator_page_file(self, file: str) -> str:
        """A file of the operator's page.

        `file`: Its name
        """
        return self.ask(Call("GET", f"/assets/{segment(file)}", str))

    def get_health(self) -> str:
        """Is the process alive?"""
        return self.ask(Call("GET", "/healthz", str, retried=False))

    def get_metrics(self) -> str:
        """Metrics in the OpenMetrics text form, or in the classic text form of Prometheus where `Accept` prefers
        `text/plain`.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/metrics", str))

    def get_openapi(self) -> dict[str, Any]:
        """This contract as an OpenAPI document."""
        return self.ask(Call("GET", "/openapi.json", dict))

    def get_readiness(self, *, ranges: Literal["any", "served", "all"] | None = None) -> str:
        """Does the service take work?

        `ranges`: What has to be well in a cluster: `any`, the default, is for load balancers, and asks for
        one node of tier 1 that answers; `served` asks for an owner of every range; `all` asks for all
        replicas of every range, too.
        """
        return self.ask(Call("GET", "/readyz", str, query={"ranges": ranges}, retried=False))

    def get_cluster(self) -> ClusterStatus:
        """Which nodes are there, what do they have, and what needs attention?

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/cluster", ClusterStatus))

    def take_over_range(self, range: int, to: str) -> None:
        """Have a node own a range. It begins to take the range over; `GET /v1/cluster` shows when it has.

        `range`: The range.

        `to`: The node of tier 1, which must have a replica of it.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/cluster/takeover", type(None), body={"range": range, "to": to}))

    def flush(self, *, wait: bool | None = None, timeout: int | None = None) -> Flushed:
        """Decide everything accepted before the call.

        The pages of all clients count, so one client's backlog delays the answer to all of them.

        `wait`: Wait until everything accepted before the call is decided.

        `timeout`: Seconds to wait at most, 1 to 3,600; 60 where none is given.

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
        """Is the mapping being changed?

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
        """Change the mapping while everything goes on, or say what that would take.

        While a change is under way a dry run is refused, too.

        `action`: `balance` makes the load even with few moves, `learn` learns the map anew, `drain` takes
        everything from a node, `join` gives a node its part again, and `move` puts one partition on another
        node.

        `dry_run`: Only say what would be done.

        `node`: The node that is drained, joined or moved to, from 0.

        `partition`: The id of the partition that is moved.

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
        """Cancel the present request: what it has begun is given up, and the plan that is served stays.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("DELETE", "/v1/rebalance", RebalanceOutcome))


class AsyncOperationsCalls(AsyncCaller):
    """Operations of the tag `operations`, to be awaited."""

    async def get_operator_page(self) -> str:
        """The operator's page."""
        return await self.ask(Call("GET", "/", str))

    async def get_operator_page_file(self, file: str) -> str:
        """A file of the operator's page.

        `file`: Its name
        """
        return await self.ask(Call("GET", f"/assets/{segment(file)}", str))

    async def get_health(self) -> str:
        """Is the process alive?"""
        return await self.ask(Call("GET", "/healthz", str, retried=False))

    async def get_metrics(self) -> str:
        """Metrics in the OpenMetrics text form, or in the classic text form of Prometheus where `Accept` prefers
        `text/plain`.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/metrics", str))

    async def get_openapi(self) -> dict[str, Any]:
        """This contract as an OpenAPI document."""
        return await self.ask(Call("GET", "/openapi.json", dict))

    async def get_readiness(self, *, ranges: Literal["any", "served", "all"] | None = None) -> str:
        """Does the service take work?

        `ranges`: What has to be well in a cluster: `any`, the default, is for load balancers, and asks for
        one node of tier 1 that answers; `served` asks for an owner of every range; `all` asks for all
        replicas of every range, too.
        """
        return await self.ask(Call("GET", "/readyz", str, query={"ranges": ranges}, retried=False))

    async def get_cluster(self) -> ClusterStatus:
        """Which nodes are there, what do they have, and what needs attention?

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/cluster", ClusterStatus))

    async def take_over_range(self, range: int, to: str) -> None:
        """Have a node own a range. It begins to take the range over; `GET /v1/cluster` shows when it has.

        `range`: The range.

        `to`: The node of tier 1, which must have a replica of it.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("POST", "/v1/cluster/takeover", type(None), body={"range": range, "to": to}))

    async def flush(self, *, wait: bool | None = None, timeout: int | None = None) -> Flushed:
        """Decide everything accepted before the call.

        The pages of all clients count, so one client's backlog delays the answer to all of them.

        `wait`: Wait until everything accepted before the call is decided.

        `timeout`: Seconds to wait at most, 1 to 3,600; 60 where none is given.

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
        """Is the mapping being changed?

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
        """Change the mapping while everything goes on, or say what that would take.

        While a change is under way a dry run is refused, too.

        `action`: `balance` makes the load even with few moves, `learn` learns the map anew, `drain` takes
        everything from a node, `join` gives a node its part again, and `move` puts one partition on another
        node.

        `dry_run`: Only say what would be done.

        `node`: The node that is drained, joined or moved to, from 0.

        `partition`: The id of the partition that is moved.

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
        """Cancel the present request: what it has begun is given up, and the plan that is served stays.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(Call("DELETE", "/v1/rebalance", RebalanceOutcome))
