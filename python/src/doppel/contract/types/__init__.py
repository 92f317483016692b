"""Types of the contract: all.

Made from the OpenAPI document by python/make_contract; not to be edited.
"""

from __future__ import annotations

from .advice import Advice as Advice
from .advice import Content as Content
from .advice import Criterion as Criterion
from .advice import Explanation as Explanation
from .advice import KeptBefore as KeptBefore
from .advice import LeftOut as LeftOut
from .advice import MainContent as MainContent
from .advice import Measures as Measures
from .advice import Probed as Probed
from .advice import ProbeRequest as ProbeRequest
from .advice import Shingles as Shingles
from .advice import Side as Side
from .advice import StatusAnswer as StatusAnswer
from .advice import StatusAnswers as StatusAnswers
from .advice import StatusRequest as StatusRequest
from .advice import Winners as Winners
from .feed import ChangeLine as ChangeLine
from .feed import ChangesAnswer as ChangesAnswer
from .feed import ExportLine as ExportLine
from .groups import AppliedRepair as AppliedRepair
from .groups import AppliedRepairUrls as AppliedRepairUrls
from .groups import GroupList as GroupList
from .groups import GroupPage as GroupPage
from .groups import Member as Member
from .groups import Repair as Repair
from .groups import RepairRequest as RepairRequest
from .groups import Repairs as Repairs
from .groups import Trail as Trail
from .load import LengthBox as LengthBox
from .load import LoadBalance as LoadBalance
from .load import LoadHistory as LoadHistory
from .load import LoadPoint as LoadPoint
from .load import LoadReport as LoadReport
from .load import LoadSample as LoadSample
from .load import NodeLoad as NodeLoad
from .load import PartitionLoad as PartitionLoad
from .load import PartitionSample as PartitionSample
from .load import ShardAssignment as ShardAssignment
from .load import WhatIf as WhatIf
from .load import WhatIfs as WhatIfs
from .operations import Attention as Attention
from .operations import ClusterNode as ClusterNode
from .operations import ClusterRange as ClusterRange
from .operations import ClusterStatus as ClusterStatus
from .operations import EngineServer as EngineServer
from .operations import EngineStatus as EngineStatus
from .operations import EngineStream as EngineStream
from .operations import Flushed as Flushed
from .operations import PartitionMove as PartitionMove
from .operations import Present as Present
from .operations import RebalanceBody as RebalanceBody
from .operations import RebalanceOutcome as RebalanceOutcome
from .operations import RebalancePlan as RebalancePlan
from .operations import RebalanceRequest as RebalanceRequest
from .operations import Standby as Standby
from .operations import TakeOverBody as TakeOverBody
from .pages import LineAnswer as LineAnswer
from .pages import LineError as LineError
from .pages import NotTaken as NotTaken
from .pages import Page as Page
from .pages import Purged as Purged
from .pages import PurgeRequest as PurgeRequest
from .pages import Taken as Taken
from .reports import Counters as Counters
from .reports import DecisionClass as DecisionClass
from .reports import Decisions as Decisions
from .reports import GroupSizes as GroupSizes
from .reports import Mirror as Mirror
from .reports import Quality as Quality
from .reports import Saving as Saving
from .reports import Savings as Savings
from .reports import SizeClass as SizeClass
from .shared import Backlog as Backlog
from .shared import Examples as Examples
from .shared import Group as Group
from .shared import Problem as Problem
from .shared import RebalanceProgress as RebalanceProgress

__all__ = [
    "Advice",
    "AppliedRepair",
    "AppliedRepairUrls",
    "Attention",
    "Backlog",
    "ChangeLine",
    "ChangesAnswer",
    "ClusterNode",
    "ClusterRange",
    "ClusterStatus",
    "Content",
    "Counters",
    "Criterion",
    "DecisionClass",
    "Decisions",
    "EngineServer",
    "EngineStatus",
    "EngineStream",
    "Examples",
    "Explanation",
    "ExportLine",
    "Flushed",
    "Group",
    "GroupList",
    "GroupPage",
    "GroupSizes",
    "KeptBefore",
    "LeftOut",
    "LengthBox",
    "LineAnswer",
    "LineError",
    "LoadBalance",
    "LoadHistory",
    "LoadPoint",
    "LoadReport",
    "LoadSample",
    "MainContent",
    "Measures",
    "Member",
    "Mirror",
    "NodeLoad",
    "NotTaken",
    "Page",
    "PartitionLoad",
    "PartitionMove",
    "PartitionSample",
    "Present",
    "ProbeRequest",
    "Probed",
    "Problem",
    "PurgeRequest",
    "Purged",
    "Quality",
    "RebalanceBody",
    "RebalanceOutcome",
    "RebalancePlan",
    "RebalanceProgress",
    "RebalanceRequest",
    "Repair",
    "RepairRequest",
    "Repairs",
    "Saving",
    "Savings",
    "ShardAssignment",
    "Shingles",
    "Side",
    "SizeClass",
    "Standby",
    "StatusAnswer",
    "StatusAnswers",
    "StatusRequest",
    "TakeOverBody",
    "Taken",
    "Trail",
    "WhatIf",
    "WhatIfs",
    "Winners",
]
