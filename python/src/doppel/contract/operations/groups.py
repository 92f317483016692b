"""Operations of the contract: groups.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from ...call import AsyncCaller, Call, Caller, segment
from ..types import (
    AppliedRepairUrls,
    GroupList,
    GroupPage,
    Repair,
    Repairs,
    Trail,
)


class GroupsCalls(Caller):
    """Operations of the tag `groups`."""

    def list_groups(
        self, *, suspicious: int | None = None, after: str | None = None, limit: int | None = None
    ) -> GroupList:
        """List groups.

        `suspicious`: Only groups that are quarantined or have at least this share of members, in percent,
        dissimilar to their winner; 1 to 100.

        `after`: Go on after this group.

        `limit`: The most groups of the answer, 1 to 1,000; 100 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call("GET", "/v1/groups", GroupList, query={"suspicious": suspicious, "after": after, "limit": limit})
        )

    def get_group(
        self, id: str, *, after: str | None = None, limit: int | None = None, market: str | None = None
    ) -> GroupPage:
        """Show a group and its members.

        The id of a group that was merged away answers with `merged_into` and no members.

        `id`: The group

        `after`: What an earlier answer gave as `next`.

        `limit`: The most members of the answer, 1 to 1,000; 100 where none is given. Redirects come on top.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call(
                "GET", f"/v1/groups/{segment(id)}", GroupPage, query={"after": after, "limit": limit, "market": market}
            )
        )

    def repair_group(self, id: str, *, dry_run: bool | None = None, by: str | None = None) -> Repair:
        """Recompute a group's membership by exact comparison.

        `id`: The group

        `dry_run`: Only say what would be done.

        `by`: Who asks for it; goes to the trail of repairs. At most 100 bytes without control characters;
        `anonymous` where none is given. Where the server has tokens it is the name of the token, and to give
        one is an error.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", f"/v1/groups/{segment(id)}/repair", Repair, query={"dry_run": dry_run, "by": by}))

    def repair_groups(self, groups: list[str], *, by: str | None = None, dry_run: bool | None = None) -> Repairs:
        """Recompute the membership of several groups.

        `groups`: The groups, at most 100.

        `by`: Who asks for it; goes to the trail of repairs. At most 100 bytes without control characters;
        `anonymous` where none is given. Where the server has tokens it is the name of the token, and to give
        one is an error.

        `dry_run`: Only say what would be done.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/repair", Repairs, body={"groups": groups, "by": by, "dry_run": dry_run}))

    def list_repairs(self, *, group: str | None = None, before: str | None = None, limit: int | None = None) -> Trail:
        """List the repairs that were applied and the quarantines that began and ended, newest first.

        A dry run is not among them, nor what the service recomputes by itself.

        `group`: Only entries of this group. Those of a group that was merged into it stay under the old id.

        `before`: What an earlier answer gave as `next`.

        `limit`: The most entries of the answer, 1 to 1,000; 100 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/repairs", Trail, query={"group": group, "before": before, "limit": limit}))

    def get_repair(self, id: str) -> AppliedRepairUrls:
        """Show a repair that was applied, before and after, or a quarantine.

        `id`: The entry

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", f"/v1/repairs/{segment(id)}", AppliedRepairUrls))


class AsyncGroupsCalls(AsyncCaller):
    """Operations of the tag `groups`, to be awaited."""

    async def list_groups(
        self, *, suspicious: int | None = None, after: str | None = None, limit: int | None = None
    ) -> GroupList:
        """List groups.

        `suspicious`: Only groups that are quarantined or have at least this share of members, in percent,
        dissimilar to their winner; 1 to 100.

        `after`: Go on after this group.

        `limit`: The most groups of the answer, 1 to 1,000; 100 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("GET", "/v1/groups", GroupList, query={"suspicious": suspicious, "after": after, "limit": limit})
        )

    async def get_group(
        self, id: str, *, after: str | None = None, limit: int | None = None, market: str | None = None
    ) -> GroupPage:
        """Show a group and its members.

        The id of a group that was merged away answers with `merged_into` and no members.

        `id`: The group

        `after`: What an earlier answer gave as `next`.

        `limit`: The most members of the answer, 1 to 1,000; 100 where none is given. Redirects come on top.

        `market`: A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer
        winners of such hosts.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call(
                "GET", f"/v1/groups/{segment(id)}", GroupPage, query={"after": after, "limit": limit, "market": market}
            )
        )

    async def repair_group(self, id: str, *, dry_run: bool | None = None, by: str | None = None) -> Repair:
        """Recompute a group's membership by exact comparison.

        `id`: The group

        `dry_run`: Only say what would be done.

        `by`: Who asks for it; goes to the trail of repairs. At most 100 bytes without control characters;
        `anonymous` where none is given. Where the server has tokens it is the name of the token, and to give
        one is an error.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(
            Call("POST", f"/v1/groups/{segment(id)}/repair", Repair, query={"dry_run": dry_run, "by": by})
        )

    async def repair_groups(self, groups: list[str], *, by: str | None = None, dry_run: bool | None = None) -> Repairs:
        """Recompute the membership of several groups.

        `groups`: The groups, at most 100.

        `by`: Who asks for it; goes to the trail of repairs. At most 100 bytes without control characters;
        `anonymous` where none is given. Where the server has tokens it is the name of the token, and to give
        one is an error.

        `dry_run`: Only say what would be done.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(
            Call("POST", "/v1/repair", Repairs, body={"groups": groups, "by": by, "dry_run": dry_run})
        )

    async def list_repairs(
        self, *, group: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Trail:
        """List the repairs that were applied and the quarantines that began and ended, newest first.

        A dry run is not among them, nor what the service recomputes by itself.

        `group`: Only entries of this group. Those of a group that was merged into it stay under the old id.

        `before`: What an earlier answer gave as `next`.

        `limit`: The most entries of the answer, 1 to 1,000; 100 where none is given.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("GET", "/v1/repairs", Trail, query={"group": group, "before": before, "limit": limit})
        )

    async def get_repair(self, id: str) -> AppliedRepairUrls:
        """Show a repair that was applied, before and after, or a quarantine.

        `id`: The entry

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", f"/v1/repairs/{segment(id)}", AppliedRepairUrls))
