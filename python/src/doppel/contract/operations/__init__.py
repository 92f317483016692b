"""Operations of the contract: all.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from .advice import AdviceCalls as AdviceCalls
from .advice import AsyncAdviceCalls as AsyncAdviceCalls
from .feed import AsyncFeedCalls as AsyncFeedCalls
from .feed import FeedCalls as FeedCalls
from .groups import AsyncGroupsCalls as AsyncGroupsCalls
from .groups import GroupsCalls as GroupsCalls
from .operations import AsyncOperationsCalls as AsyncOperationsCalls
from .operations import OperationsCalls as OperationsCalls
from .pages import AsyncPagesCalls as AsyncPagesCalls
from .pages import PagesCalls as PagesCalls
from .reports import AsyncReportsCalls as AsyncReportsCalls
from .reports import ReportsCalls as ReportsCalls


class Operations(OperationsCalls, FeedCalls, AdviceCalls, GroupsCalls, ReportsCalls, PagesCalls):
    """Every operation whose answer is one document or text."""


class AsyncOperations(
    AsyncOperationsCalls, AsyncFeedCalls, AsyncAdviceCalls, AsyncGroupsCalls, AsyncReportsCalls, AsyncPagesCalls
):
    """Every operation whose answer is one document or text."""


__all__ = ["AsyncOperations", "Operations"]
