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
        """How was the load in the last six hours?

        Every front door has its own memory of it, which begins with its start.

        `since`: Only points later than this, in milliseconds since 1970.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/load/history", LoadHistory, query={"since": since}))

    def get_group_sizes(self) -> GroupSizes:
        """How large are the groups?

        The answer may be 10 seconds old, and older where there are very many groups, or while the next one is
        being made: `age_ms` says how old.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/groups", GroupSizes))

    def get_load_balance(self) -> LoadBalance:
        """How evenly is the load spread?

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/load-balance", LoadBalance))

    def get_load_balance_what_if(self) -> WhatIfs:
        """What would other numbers of sub-dictionaries and nodes make of the present contents?

        Takes some seconds, so one is made at a time. The answer may be 10 seconds old, and older where making
        it takes long: `age_ms` says how old. Only policies that bound lengths have one: `jaccard`, `content`
        and `copies`.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/load-balance/what-if", WhatIfs))

    def get_quality(self) -> Quality:
        """How good are the groups, and what is still to be done?

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/quality", Quality))

    def get_savings(self) -> Savings:
        """What does dropping duplicates save, and which hosts mirror which?

        The answer may be 10 seconds old, and older where there are very many pages, or while the next one is
        being made: `age_ms` says how old.

        A server with tokens asks for one with the role `read`.
        """
        return self.ask(Call("GET", "/v1/reports/savings", Savings))


class AsyncReportsCalls(AsyncCaller):
    """Operations of the tag `reports`, to be awaited."""

    async def get_load_history(self, *, since: int | None = None) -> LoadHistory:
        """How was the load in the last six hours?

        Every front door has its own memory of it, which begins with its start.

        `since`: Only points later than this, in milliseconds since 1970.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/load/history", LoadHistory, query={"since": since}))

    async def get_group_sizes(self) -> GroupSizes:
        """How large are the groups?

        The answer may be 10 seconds old, and older where there are very many groups, or while the next one is
        being made: `age_ms` says how old.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/groups", GroupSizes))

    async def get_load_balance(self) -> LoadBalance:
        """How evenly is the load spread?

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/load-balance", LoadBalance))

    async def get_load_balance_what_if(self) -> WhatIfs:
        """What would other numbers of sub-dictionaries and nodes make of the present contents?

        Takes some seconds, so one is made at a time. The answer may be 10 seconds old, and older where making
        it takes long: `age_ms` says how old. Only policies that bound lengths have one: `jaccard`, `content`
        and `copies`.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/load-balance/what-if", WhatIfs))

    async def get_quality(self) -> Quality:
        """How good are the groups, and what is still to be done?

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/quality", Quality))

    async def get_savings(self) -> Savings:
        """What does dropping duplicates save, and which hosts mirror which?

        The answer may be 10 seconds old, and older where there are very many pages, or while the next one is
        being made: `age_ms` says how old.

        A server with tokens asks for one with the role `read`.
        """
        return await self.ask(Call("GET", "/v1/reports/savings", Savings))
