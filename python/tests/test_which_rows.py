"""Which rows the result of `doppel.dedup` names, and what it warns of whole groups."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import doppel
from texts import text


def test_rows_are_numbered_where_ids_are_equal(tmp_path: Path) -> None:
    same = text("a")
    urls = [{"id": "a", "u": f"https://a.example/{n}", "text": text("b") if n == 0 else same} for n in range(3)]
    for source in (urls, pa.Table.from_pylist(urls)):
        found = doppel.dedup(source, url="u")
        assert found["duplicate_of"].to_pylist() == [None, None, "a"]
        assert found["duplicate_of_row"].to_pylist() == [None, None, 1]
        assert found["winner_row"].to_pylist() == [None, 1, 1]
        assert "file" not in found.schema.names
    # Both files have a record 7, and the second begins with a bad row.
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 7, "text": same}) + "\n")
    parquet.write_table(pa.table({"id": [6, 7], "text": [None, same]}), tmp_path / "b.parquet")
    paths = [tmp_path / "a.jsonl", tmp_path / "b.parquet"]
    with pytest.warns(doppel.BadRows):
        found = doppel.dedup(paths)
    assert found["id"].to_pylist() == [7, 6, 7]
    assert found["file"].to_pylist() == [str(paths[0]), str(paths[1]), str(paths[1])]
    assert found["duplicate_of_row"].to_pylist() == [None, None, 0]
    with pytest.warns(doppel.BadRows):
        newest = doppel.dedup(paths, latest=True)
    assert newest["duplicate_of_row"].to_pylist() == [None, None, 0]


def test_rows_of_earlier_calls_have_no_number(tmp_path: Path) -> None:
    given = {"id": "a", "text": text("a")}
    doppel.dedup([given], data=tmp_path / "data")
    found = doppel.dedup([{"id": "bb", "text": text("a")}], data=tmp_path / "data")
    assert found["duplicate_of"].to_pylist() == ["a"]
    assert found["duplicate_of_row"].to_pylist() == [None]


def test_groups_in_quarantine_are_warned_of() -> None:
    """Four texts in a chain: more distinct contents than a group may have."""
    chain = [{"id": f"r{n}", "text": text("a", changed=3 * n)} for n in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", doppel.Quarantined)
        assert doppel.dedup(chain)["kept"].to_pylist().count(False) > 0
        with pytest.raises(doppel.Quarantined):
            doppel.dedup(chain, group_members_max=2)
    with pytest.warns(doppel.Quarantined, match="--group-members-max") as warned:
        found = doppel.dedup(chain, group_members_max=2)
    assert warned[0].filename == __file__
    assert found["kept"].to_pylist() == [True] * 4
    assert set(found["status"].to_pylist()) == {"winner", "secondary"}
    assert json.loads(found.schema.metadata[b"doppel"])["groups"]["quarantined"] == 1
    # Equal texts are never in doubt.
    equal = doppel.dedup([{"text": text("a")}] * 4, group_members_max=2)
    assert equal["kept"].to_pylist() == [True, False, False, False]
