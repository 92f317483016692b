"""`doppel.dedup` and `doppel.decontaminate` with a reference, against results that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import doppel
from texts import text

COUNT = 300


def reference() -> list[dict[str, Any]]:
    return [{"id": f"question-{n}", "text": text(f"q{n}x", words=60)} for n in range(20)]


def rows() -> list[dict[str, Any]]:
    """Of ten rows, the first is a near-copy of a row of the reference, and the third one of the second."""
    names = [f"q{n // 10 % 20}x" if n % 10 == 0 else f"t{n - 1 if n % 10 == 2 else n}x" for n in range(COUNT)]
    return [
        {"id": f"r{n}", "text": text(name, words=60, changed=int(n % 10 in (0, 2)))} for n, name in enumerate(names)
    ]


def found_of(found: pa.Table) -> list[tuple[Any, ...]]:
    columns = ["id", "kept", "duplicate_of", "duplicate_of_row", "reference_row"]
    return [tuple(row.values()) for row in found.select(columns).to_pylist()]


def expected(*, only: bool) -> list[tuple[Any, ...]]:
    def of(n: int) -> tuple[Any, ...]:
        question = n // 10 % 20
        if n % 10 == 0:
            return (f"r{n}", False, f"question-{question}", None, question)
        if n % 10 == 2 and not only:
            return (f"r{n}", False, f"r{n - 1}", n - 1, None)
        return (f"r{n}", True, None, None, None)

    return [of(n) for n in range(COUNT)]


def test_only_what_the_reference_has_is_a_duplicate() -> None:
    others = [
        (rows(), reference()),
        (pa.Table.from_pylist(rows()), polars.DataFrame(reference())),
        (polars.DataFrame(rows()), iter(reference())),
    ]
    for train, references in others:
        assert found_of(doppel.decontaminate(train, references)) == expected(only=True)


def test_the_rest_is_grouped_unless_only_the_reference_counts() -> None:
    found = doppel.dedup(rows(), reference=reference())
    assert found_of(found) == expected(only=False)
    # The near-copies of one question are in a group with it.
    assert found["winner"].to_pylist()[0] == "question-0"


def test_files_are_references_of_files(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist(rows()), tmp_path / "train.parquet")
    parquet.write_table(pa.Table.from_pylist(reference()), tmp_path / "eval.parquet")
    before = (tmp_path / "eval.parquet").read_bytes()
    found = doppel.decontaminate(str(tmp_path / "train.parquet"), str(tmp_path / "eval.parquet"))
    assert found_of(found.drop_columns("file")) == expected(only=True)
    assert (tmp_path / "eval.parquet").read_bytes() == before


def test_ids_of_another_type_become_texts() -> None:
    numbered = [{**row, "id": n} for n, row in enumerate(reference())]
    found = doppel.decontaminate(rows(), numbered)
    assert found["duplicate_of"].to_pylist()[10] == "1"


def test_numbers_and_texts_can_be_ids() -> None:
    numbered = [{**row, "id": n} for n, row in enumerate(rows())]
    found = doppel.dedup(numbered, reference=reference())
    assert found["duplicate_of"].to_pylist()[10] == "question-1"
    assert found["duplicate_of"].to_pylist()[2] == "1"


def test_a_row_that_only_the_program_refuses_is_an_error() -> None:
    binary = {"id": "binary", "text": "\1\2\3\4" * 100}
    with pytest.raises(ValueError, match="rows of the reference that cannot be read: 1"):
        doppel.decontaminate(rows(), [binary, *reference()])


def test_what_the_program_reads_has_references_that_it_reads(tmp_path: Path) -> None:
    for name, pages in (("train", rows()), ("eval", reference())):
        (tmp_path / name).mkdir()
        for page in pages:
            (tmp_path / name / f"{page['id']}.txt").write_text(page["text"])
    found = doppel.decontaminate(str(tmp_path / "train"), str(tmp_path / "eval"))
    assert found["kept"].to_pylist().count(False) == sum(not row[1] for row in expected(only=True))
    with pytest.raises(ValueError, match="needs a reference that it reads by itself"):
        doppel.decontaminate(str(tmp_path / "train"), reference())


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="give reference="):
        doppel.dedup(rows(), reference_only=True)
    with pytest.raises(ValueError, match="reference= has no use with"):
        doppel.dedup(rows(), reference=reference(), latest=True)
    with pytest.raises(ValueError, match="reference= has no use with"):
        doppel.dedup(rows(), reference=reference(), data="collection")
    with pytest.raises(ValueError, match="the reference has no rows"):
        doppel.decontaminate(rows(), pa.Table.from_pylist(reference()).slice(0, 0))
    with pytest.raises(ValueError, match='rows of the reference that cannot be read: 1; row 0: "text": missing'):
        doppel.decontaminate(rows(), [{"id": "empty", "text": None}, *reference()])
    with pytest.raises(ValueError, match="pairs= is an option of the program that has no use here"):
        doppel.decontaminate(rows(), reference(), pairs="pairs.jsonl")
