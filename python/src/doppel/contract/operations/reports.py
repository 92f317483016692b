"""Operations of the contract: reports.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from ...call import AsyncCaller, Call, Caller
from ..types import (
    GroupSizes,
    LoadBalance,
    LoadHistory,
    Quality,
    Savings,
    WhatIfs,
)


class ReportsCalls(Caller):
    """Operations of the tag `reports`."""

    def get_load_history(self, *, since: int | None = None) -> LoadHistory:
        """Report the load of the last six hours.

        Every coordinator records its own history, which begins when the coordinator starts.

        `since`: Return only points after this time, in milliseconds since 1970.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/load/history", LoadHistory, query={"since": since}))

    def get_group_sizes(self) -> GroupSizes:
        """Report the sizes of the groups.

        The answer may be 10 seconds old. It may be older if the collection has very many groups, or while the
        next report is being made. `age_ms` gives the age.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/groups", GroupSizes))

    def get_load_balance(self) -> LoadBalance:
        """Report how evenly the load is spread over partitions and nodes.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/load-balance", LoadBalance))

    def get_load_balance_what_if(self) -> WhatIfs:
        """Estimate the load balance for other numbers of sub-dictionaries and nodes.

        The estimate is computed for the current contents. Making it takes some seconds, so the service makes
        one at a time. The answer may be 10 seconds old, or older if making the report takes long; `age_ms`
        gives its age. The report exists only for policies that bound lengths: `jaccard`, `content` and
        `copies`.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/load-balance/what-if", WhatIfs))

    def get_quality(self) -> Quality:
        """Report counters of pages, groups and comparisons, and the backlog.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/quality", Quality))

    def get_savings(self) -> Savings:
        """Report what dropping duplicates saves, and which hosts mirror each other.

        The answer may be 10 seconds old. It may be older if the collection has very many pages, or while the
        next report is being made. `age_ms` gives the age.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/savings", Savings))


class AsyncReportsCalls(AsyncCaller):
    """Operations of the tag `reports`, to be awaited."""

    async def get_load_history(self, *, since: int | None = None) -> LoadHistory:
        """Report the load of the last six hours.

        Every coordinator records its own history, which begins when the coordinator starts.

        `since`: Return only points after this time, in milliseconds since 1970.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/load/history", LoadHistory, query={"since": since}))

    async def get_group_sizes(self) -> GroupSizes:
        """Report the sizes of the groups.

        The answer may be 10 seconds old. It may be older if the collection has very many groups, or while the
        next report is being made. `age_ms` gives the age.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/groups", GroupSizes))

    async def get_load_balance(self) -> LoadBalance:
        """Report how evenly the load is spread over partitions and nodes.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/load-balance", LoadBalance))

    async def get_load_balance_what_if(self) -> WhatIfs:
        """Estimate the load balance for other numbers of sub-dictionaries and nodes.

        The estimate is computed for the current contents. Making it takes some seconds, so the service makes
        one at a time. The answer may be 10 seconds old, or older if making the report takes long; `age_ms`
        gives its age. The report exists only for policies that bound lengths: `jaccard`, `content` and
        `copies`.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/load-balance/what-if", WhatIfs))

    async def get_quality(self) -> Quality:
        """Report counters of pages, groups and comparisons, and the backlog.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/quality", Quality))

    async def get_savings(self) -> Savings:
        """Report what dropping duplicates saves, and which hosts mirror each other.

        The answer may be 10 seconds old. It may be older if the collection has very many pages, or while the
        next report is being made. `age_ms` gives the age.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/savings", Savings))
