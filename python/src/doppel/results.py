"""What the program found, as a table with a row for each row of the source."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from .rows import Rows, as_texts, called_elsewhere

_LINE = pa.schema(
    [
        ("url", pa.string()),
        ("status", pa.string()),
        ("group", pa.string()),
        ("winner", pa.string()),
        ("duplicate_of", pa.string()),
        ("similarity", pa.float64()),
    ]
)
_PLACES = [(place, pa.int64()) for place in ("line", "row", "byte", "unpacked_byte")]
_RECORD = pa.struct([("file", pa.string()), ("id", pa.string()), *_PLACES])
_RECORDS = ("record", "winner_record", "duplicate_of_record")
# Lines that also name records by their files, ids and places, where each record is judged on its own.
_OF_RECORDS = pa.schema([*_LINE, *((name, _RECORD) for name in _RECORDS)])
_NUMBERED = pa.schema(
    [
        ("row", pa.int64()),
        ("status", pa.string()),
        ("group", pa.string()),
        ("winner", pa.int64()),
        ("duplicate_of", pa.int64()),
        ("similarity", pa.float64()),
        # Of rows of the reference.
        ("winner_reference", pa.int64()),
        ("duplicate_of_reference", pa.int64()),
        # Of rows that are not of this call.
        ("winner_elsewhere", pa.string()),
        ("duplicate_of_elsewhere", pa.string()),
    ]
)
# A line has three URLs of at most 64 kB.
_BLOCK_BYTES = 4 << 20
_REMOVED = pa.array(["duplicate", "superseded", "bad"])


def lines(out: Path, schema: pa.Schema = _LINE) -> Iterator[pa.RecordBatch]:
    """The lines of the program's output, some thousand at a time."""
    if out.stat().st_size > 0:
        read = arrow_json.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False)
        parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        with arrow_json.open_json(out, read_options=read, parse_options=parse) as reader:
            for batch in reader:
                yield batch.select(schema.names)


def by_url(out: Path, *, folds: bool) -> pa.Table:
    """A row for each line, whose id is its URL. Unless the newest version of a URL stands for the others, redirects are kept, and each line
    names its records by their files, ids and places.
    """
    schema = _LINE if folds else _OF_RECORDS
    found = pa.Table.from_batches(lines(out, schema), schema)
    table = _table(found["url"], found["status"], found)
    if folds:
        return table
    for name in _RECORDS:
        table = table.append_column(name, found[name])
    is_redirect = pc.and_(pc.equal(found["status"], "duplicate"), pc.is_null(found["similarity"]))
    return table.set_column(table.schema.get_field_index("kept"), "kept", pc.or_(table["kept"], is_redirect))


def by_row(out: Path, rows: Rows, files: Sequence[str] | None, reference: tuple[Path, Rows] | None = None) -> pa.Table:
    """A row for each row of the source, in order: `out` is what the program wrote, an empty file where it had nothing to do. `files` are
    the files of the source, if it is files. `reference` is the file and the rows of the reference.
    """
    ids = rows.ids()
    beside = None if reference is None else str(reference[0])
    of_rows = (_by_line(batch, beside) for batch in lines(out, _OF_RECORDS))
    numbered = (_numbered(batch, rows) for batch in lines(out)) if rows.folds else of_rows
    found = pa.Table.from_batches(numbered, _NUMBERED)
    every = pa.array(range(rows.count), pa.int64())
    # Where a row is among the pages; null for one that is not there.
    found = found.take(pc.index_in(every, value_set=found["row"]))
    superseded = pc.is_in(every, value_set=pa.array(rows.superseded, pa.int64()))
    status = pc.coalesce(pc.if_else(superseded, "superseded", found["status"]), "bad")
    numbers = {f"{column}_row": found[column] for column in ("winner", "duplicate_of")}
    for column in ("winner", "duplicate_of"):
        at = found.schema.get_field_index(column)
        called = ids.take(found[column])
        if reference is not None:
            others = reference[1].ids().take(found[f"{column}_reference"])
            if others.type != called.type:
                others, called = as_texts(others), as_texts(called)
            called = pc.coalesce(called, others)
        if rows.stay:
            called = pc.coalesce(called, found[f"{column}_elsewhere"].cast(called.type))
        found = found.set_column(at, column, called)
    table = _table(ids, status, found)
    for name, column in numbers.items():
        table = table.append_column(name, column)
    if reference is not None:
        table = table.append_column("reference_row", found["duplicate_of_reference"])
    return table if files is None else table.append_column("file", _files(rows, files))


def _files(rows: Rows, files: Sequence[str]) -> pa.ChunkedArray:
    """The file of each row."""
    kind = pa.dictionary(pa.int32(), pa.string())
    numbers = [pa.repeat(pa.scalar(file, pa.int32()), count) for file, count in rows.counts_of_files()]
    names = pa.array(files, pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk, names) for chunk in numbers], kind)


def _by_line(batch: pa.RecordBatch, reference: str | None) -> pa.RecordBatch:
    """Lines with numbers of rows, where each row is judged on its own: a row is a line of the program's input, or of the file
    `reference`.
    """
    row, winner, duplicate_of = (pc.subtract(pc.struct_field(batch[name], "line"), 1) for name in _RECORDS)
    others = [pa.nulls(len(batch), pa.int64())] * 2
    if reference is not None:
        nothing = pa.nulls(len(batch), pa.int64())
        is_other = [pc.equal(pc.struct_field(batch[name], "file"), reference) for name in _RECORDS[1:]]
        numbers = list(zip(is_other, (winner, duplicate_of), strict=True))
        others = [pc.if_else(other, number, nothing) for other, number in numbers]
        winner, duplicate_of = (pc.if_else(other, nothing, number) for other, number in numbers)
    elsewhere = [pa.nulls(len(batch), pa.string())] * 2
    columns = [row, batch["status"], batch["group"], winner, duplicate_of, batch["similarity"], *others, *elsewhere]
    return pa.RecordBatch.from_arrays(columns, schema=_NUMBERED)


def _numbered(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    """The same with numbers of rows instead of names. Pages of rows that stay may be no rows of this call: they are left out."""
    numbers = {column: rows.rows_of(batch[column]) for column in ("url", "winner", "duplicate_of")}
    winner, duplicate_of = numbers["winner"], numbers["duplicate_of"]
    elsewhere = [_elsewhere(batch[column], numbers[column], rows) for column in ("winner", "duplicate_of")]
    others = [pa.nulls(len(batch), pa.int64())] * 2
    columns = [
        numbers["url"],
        batch["status"],
        batch["group"],
        winner,
        duplicate_of,
        batch["similarity"],
        *others,
        *elsewhere,
    ]
    numbered = pa.RecordBatch.from_arrays(columns, schema=_NUMBERED)
    return numbered.filter(pc.is_valid(numbers["url"])) if rows.stay else numbered


def _elsewhere(names: pa.Array, numbers: pa.Array, rows: Rows) -> pa.Array:
    """What rows of earlier calls are called; null for those of this one."""
    if not rows.stay:
        return pa.nulls(len(names), pa.string())
    pairs = zip(names.to_pylist(), numbers.to_pylist(), strict=True)
    found = [called_elsewhere(name) if name is not None and row is None else None for name, row in pairs]
    return pa.array(found, pa.string())


def _table(ids: Any, status: Any, found: pa.Table) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "status": status,
            "group": found["group"],
            "winner": found["winner"],
            "duplicate_of": found["duplicate_of"],
            "similarity": found["similarity"],
            "kept": pc.invert(pc.is_in(status, value_set=_REMOVED)),
        }
    )
