"""The options of the program's commands, so that a misspelt one is refused before anything is read or started.

A test holds these lists against the program. After a change of its options, take the new list from the failing test.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

DEDUP = frozenset(
    {
        "annotate",
        "bad",
        "data",
        "date_field",
        "detect_language",
        "dimensions",
        "format",
        "group_members_max",
        "html_field",
        "id_field",
        "incremental",
        "index_nodes",
        "json",
        "keep_audit",
        "keep_dead",
        "keep_merged",
        "keep_purged",
        "kept",
        "latest",
        "low_cohesion_percent",
        "market",
        "max_bad",
        "out",
        "pairs",
        "partitions",
        "pending_max",
        "policy",
        "policy_tables",
        "prune",
        "ranges",
        "read_again",
        "reference",
        "reference_only",
        "removed",
        "report",
        "separator",
        "shards",
        "snapshot_every",
        "strict",
        "superseded",
        "tau",
        "text_field",
        "top",
        "url_field",
        "winners",
        "zstd_window_max",
    }
)
"""Of `doppel dedup`."""

SERVE = frozenset(
    {
        "allow_host",
        "body_memory",
        "client_body_memory",
        "client_long_polls",
        "client_requests",
        "data",
        "detect_language",
        "dimensions",
        "group_members_max",
        "index_nodes",
        "keep_audit",
        "keep_dead",
        "keep_merged",
        "keep_purged",
        "listen",
        "log_format",
        "low_cohesion_percent",
        "no_tokens_on_any_address",
        "operate_listen",
        "partitions",
        "pending_max",
        "policy",
        "policy_tables",
        "ranges",
        "shards",
        "snapshot_every",
        "tau",
        "tls_cert",
        "tls_client_ca",
        "tls_key",
        "tokens",
        "winners",
    }
)
"""Of `doppel serve`."""


def require_known(function: str, command: str, given: Iterable[str], known: frozenset[str], own: Iterable[str]) -> None:
    """Raises `TypeError` for a parameter of `function` that is neither its own nor an option of the command.

    >>> require_known("dedup", "dedup", ["winers"], DEDUP, ["text"])
    Traceback (most recent call last):
    TypeError: dedup() has no parameter winers=; do you mean winners=? `doppel dedup --help` lists the options of the program
    """
    parameters = sorted({*known, *own})
    for name in given:
        plain = name.strip("_").replace("-", "_")
        if plain in parameters:
            continue
        near = get_close_matches(plain.lower(), parameters, n=3, cutoff=0.6)
        meant = f"; do you mean {' or '.join(f'{one}=' for one in near)}?" if near else "."
        raise TypeError(
            f"{function}() has no parameter {name}={meant} `doppel {command} --help` lists the options of the program"
        )
