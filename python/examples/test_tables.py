"""The examples for datatrove, datasets and DuckDB, each with the real package."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader

import datasets_dedup
import datatrove_dedup
import duckdb_dedup
from changing_site import original

COUNT = 3_000


def rows() -> list[dict[str, Any]]:
    """Rows of which each third one is a near-duplicate of the one before."""
    return [{"id": f"r{n}", "text": original(n), "score": n / 2} for n in range(COUNT)]


KEPT = [f"r{n}" for n in range(COUNT) if n % 3 != 2]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.Table.from_pylist(rows()), path, row_group_size=500)
    return path


def test_datatrove(tmp_path: Path) -> None:
    source = tmp_path / "input"
    source.mkdir()
    for part in range(3):
        lines = "".join(json.dumps(row) + "\n" for row in rows()[part * 1_000 : (part + 1) * 1_000])
        (source / f"{part}.jsonl").write_text(lines)
    datatrove_dedup.main(str(source), str(tmp_path / "out"))

    def written(folder: str) -> list[dict[str, Any]]:
        paths = sorted((tmp_path / "out" / folder).glob("*.jsonl.gz"))
        return [json.loads(line) for path in paths for line in gzip.open(path)]

    kept, removed = written("kept"), written("removed")
    assert [row["id"] for row in kept] == KEPT
    assert kept[0]["metadata"]["score"] == 0
    assert [(row["id"], row["metadata"]["duplicate_of"]) for row in removed] == [
        (f"r{n}", f"r{n - 1}") for n in range(2, COUNT, 3)
    ]
    assert all(row["metadata"]["similarity"] > 0.8 for row in removed)
    assert all(row["text"] == original(int(row["id"][1:])) for row in kept + removed)


def test_datatrove_with_several_tasks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    for part in range(2):
        (tmp_path / "input" / f"{part}.jsonl").write_text('{"id": "a", "text": "a"}\n')
    pipeline = [JsonlReader(str(tmp_path / "input")), datatrove_dedup.DoppelDedup()]
    with pytest.raises(ValueError, match="tasks=1"):
        LocalPipelineExecutor(pipeline, tasks=2, logging_dir=str(tmp_path / "logs")).run()


def test_datasets(table: Path, tmp_path: Path) -> None:
    datasets_dedup.main(str(table), str(tmp_path / "kept.parquet"))
    kept = parquet.read_table(tmp_path / "kept.parquet")
    assert kept["id"].to_pylist() == KEPT
    assert kept.schema.names == ["id", "text", "score"]
    # Of one that is a choice of rows itself, the chosen rows are read.
    chosen = datasets.Dataset.from_list(rows()).select(range(2, 9))
    assert datasets_dedup.without_duplicates(chosen)["id"] == ["r2", "r3", "r4", "r6", "r7"]


def test_duckdb(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "kept.parquet"
    duckdb_dedup.main(str(table), str(target))
    found = duckdb.sql(f"select id from '{target}' order by score").fetchall()
    assert [row[0] for row in found] == KEPT
    assert "most" in capsys.readouterr().out
