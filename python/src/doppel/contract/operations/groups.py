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

        `suspicious`: Return only groups that are in quarantine, or in which at least this percentage of the
        members differ from the winner; 1 to 100.

        `after`: Return groups after this group id, which an earlier answer gave as `next`.

        `limit`: Maximum number of groups in the answer, 1 to 1,000. Default: 100.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call("GET", "/v1/groups", GroupList, query={"suspicious": suspicious, "after": after, "limit": limit})
        )

    def get_group(
        self, id: str, *, after: str | None = None, limit: int | None = None, market: str | None = None
    ) -> GroupPage:
        """Show a group and its members.

        For a group that was merged into another, the answer has `merged_into` and no members.

        `id`: Id of the group

        `after`: Position at which the list continues: `next` of an earlier answer.

        `limit`: Maximum number of members in the answer, 1 to 1,000, not counting redirects. Default: 100.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(
            Call(
                "GET", f"/v1/groups/{segment(id)}", GroupPage, query={"after": after, "limit": limit, "market": market}
            )
        )

    def repair_group(self, id: str, *, dry_run: bool | None = None, by: str | None = None) -> Repair:
        """Recompute the members of a group by exact comparison.

        `id`: Id of the group

        `dry_run`: Whether to only report what the repair would do.

        `by`: Name of the person who asks for the repair, for the repair trail: at most 100 bytes without
        control characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the
        token, and this parameter is an error.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", f"/v1/groups/{segment(id)}/repair", Repair, query={"dry_run": dry_run, "by": by}))

    def repair_groups(self, groups: list[str], *, by: str | None = None, dry_run: bool | None = None) -> Repairs:
        """Recompute the members of several groups by exact comparison.

        `groups`: Ids of the groups, at most 100.

        `by`: Name of the person who asks for the repair, for the repair trail: at most 100 bytes without
        control characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the
        token, and this parameter is an error.

        `dry_run`: Whether to only report what the repair would do.

        A server with tokens asks for one with the role `operate`.
        """
        return self.ask(Call("POST", "/v1/repair", Repairs, body={"groups": groups, "by": by, "dry_run": dry_run}))

    def list_repairs(self, *, group: str | None = None, before: str | None = None, limit: int | None = None) -> Trail:
        """List applied repairs, and quarantines that began or ended, newest first.

        The list has no dry runs, and no groups that the service recomputed on its own.

        `group`: Return only entries of this group. Entries of a group that was merged into it keep the old
        id.

        `before`: Position at which the list continues: `next` of an earlier answer.

        `limit`: Maximum number of entries in the answer, 1 to 1,000. Default: 100.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/repairs", Trail, query={"group": group, "before": before, "limit": limit}))

    def get_repair(self, id: str) -> AppliedRepairUrls:
        """Show an applied repair with the members before and after it, or a quarantine.

        `id`: Id of the entry

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", f"/v1/repairs/{segment(id)}", AppliedRepairUrls))


class AsyncGroupsCalls(AsyncCaller):
    """Operations of the tag `groups`, to be awaited."""

    async def list_groups(
        self, *, suspicious: int | None = None, after: str | None = None, limit: int | None = None
    ) -> GroupList:
        """List groups.

        `suspicious`: Return only groups that are in quarantine, or in which at least this percentage of the
        members differ from the winner; 1 to 100.

        `after`: Return groups after this group id, which an earlier answer gave as `next`.

        `limit`: Maximum number of groups in the answer, 1 to 1,000. Default: 100.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("GET", "/v1/groups", GroupList, query={"suspicious": suspicious, "after": after, "limit": limit})
        )

    async def get_group(
        self, id: str, *, after: str | None = None, limit: int | None = None, market: str | None = None
    ) -> GroupPage:
        """Show a group and its members.

        For a group that was merged into another, the answer has `merged_into` and no members.

        `id`: Id of the group

        `after`: Position at which the list continues: `next` of an earlier answer.

        `limit`: Maximum number of members in the answer, 1 to 1,000, not counting redirects. Default: 100.

        `market`: Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer
        then prefers winners on hosts of this market.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call(
                "GET", f"/v1/groups/{segment(id)}", GroupPage, query={"after": after, "limit": limit, "market": market}
            )
        )

    async def repair_group(self, id: str, *, dry_run: bool | None = None, by: str | None = None) -> Repair:
        """Recompute the members of a group by exact comparison.

        `id`: Id of the group

        `dry_run`: Whether to only report what the repair would do.

        `by`: Name of the person who asks for the repair, for the repair trail: at most 100 bytes without
        control characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the
        token, and this parameter is an error.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(
            Call("POST", f"/v1/groups/{segment(id)}/repair", Repair, query={"dry_run": dry_run, "by": by})
        )

    async def repair_groups(self, groups: list[str], *, by: str | None = None, dry_run: bool | None = None) -> Repairs:
        """Recompute the members of several groups by exact comparison.

        `groups`: Ids of the groups, at most 100.

        `by`: Name of the person who asks for the repair, for the repair trail: at most 100 bytes without
        control characters. Default: `anonymous`. If the server has tokens, the trail uses the name of the
        token, and this parameter is an error.

        `dry_run`: Whether to only report what the repair would do.

        A server with tokens asks for one with the role `operate`.
        """
        return await self.ask(
            Call("POST", "/v1/repair", Repairs, body={"groups": groups, "by": by, "dry_run": dry_run})
        )

    async def list_repairs(
        self, *, group: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Trail:
        """List applied repairs, and quarantines that began or ended, newest first.

        The list has no dry runs, and no groups that the service recomputed on its own.

        `group`: Return only entries of this group. Entries of a group that was merged into it keep the old
        id.

        `before`: Position at which the list continues: `next` of an earlier answer.

        `limit`: Maximum number of entries in the answer, 1 to 1,000. Default: 100.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(
            Call("GET", "/v1/repairs", Trail, query={"group": group, "before": before, "limit": limit})
        )

    async def get_repair(self, id: str) -> AppliedRepairUrls:
        """Show an applied repair with the members before and after it, or a quarantine.

        `id`: Id of the entry

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", f"/v1/repairs/{segment(id)}", AppliedRepairUrls))
