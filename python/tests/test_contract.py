"""The client has the whole contract of the program that it comes with."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import doppel

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = ROOT / "python/src/doppel/contract"
# Streams and sequences, whose parameters are those of the operation and more.
ITERATORS = {"record_pages": {"pages", "lines_max", "bytes_max"}}
# What is said of a body that is one page of HTML or text; the client sends pages, which say it themselves.
OF_BARE_PAGES = {"record_pages": {"url", "fetched_at", "language", "popularity"}}


def operations(client: doppel.Client) -> dict[str, dict[str, Any]]:
    items: list[dict[str, Any]] = list(client.get_openapi()["paths"].values())
    found: list[Any] = [one for item in items for one in item.values()]
    return {one["operationId"]: one for one in found if "operationId" in one}


@pytest.mark.parametrize("kind", [doppel.Client, doppel.AsyncClient])
def test_every_operation_has_a_method_with_its_parameters(client: doppel.Client, kind: type) -> None:
    schemas = client.get_openapi()["components"]["schemas"]
    found = operations(client)
    assert len(found) > 30
    for name, operation in found.items():
        method = getattr(kind, name, None)
        assert method is not None, f"{kind.__name__} has no method {name}"
        wanted = {one["name"] for one in operation.get("parameters", [])}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body and name not in ITERATORS:
            wanted |= schemas[body["schema"]["$ref"].rsplit("/", 1)[1]]["properties"].keys()
        wanted = wanted - OF_BARE_PAGES.get(name, set()) | ITERATORS.get(name, set())
        assert set(inspect.signature(method).parameters) - {"self"} == wanted, name


def test_the_contract_is_that_of_the_program(client: doppel.Client, tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get_openapi()))
    made = tmp_path / "contract"
    subprocess.run([sys.executable, ROOT / "python/make_contract", document, made], check=True)
    expected = {path.relative_to(made): path.read_text() for path in made.rglob("*.py")}
    present = {path.relative_to(CONTRACT): path.read_text() for path in CONTRACT.glob("*/*.py")}
    assert present.keys() == expected.keys()
    other = [str(path) for path, text in expected.items() if present[path] != text]
    assert other == [], "make it anew: python python/make_contract http://HOST:PORT/openapi.json"


def test_every_question_is_answered_in_its_type(client: doppel.Client) -> None:
    assert client.get_health() == "ok\n"
    assert client.get_readiness() == "ready\n"
    assert client.get_readiness(ranges="all") == "ready\n"
    assert client.get_metrics().endswith("# EOF\n")
    assert "<html" in client.get_operator_page()
    assert client.get_cluster().nodes == []
    assert client.get_winner_rules().rules[-1] == "url"
    assert client.get_quality().counters.live == 0
    assert client.get_savings().all.pages == 0
    assert client.get_group_sizes().largest == []
    assert client.get_load_balance().nodes[0].node == 0
    assert client.get_load_balance_what_if().present.nodes == 1
    assert client.get_load_history().points is not None
    assert client.get_rebalance().drained == []
    assert client.list_groups(limit=10).groups == []
    assert client.list_repairs().repairs == []
    assert b"".join(client.get_sample(contents=10)) == b""
    assert client.rebalance("balance", dry_run=True).moves == []
    with pytest.raises(doppel.Conflict, match="nothing-to-cancel"):
        client.cancel_rebalance()
    with pytest.raises(doppel.DoppelError):
        client.take_over_range(0, "record-1")


def test_files_are_short() -> None:
    paths = [*(ROOT / "python").rglob("*.py")]
    assert len(paths) > 20
    long = {str(path): lines for path in paths if (lines := len(path.read_text().splitlines())) > 400}
    assert long == {}
