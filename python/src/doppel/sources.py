"""Where rows come from: files, data frames, Arrow data and dictionaries, as columns of some rows at a time."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec
import pyarrow as pa

ROWS = 1_000
"""Rows of one chunk of dictionaries; Arrow data comes in the batches that it has."""

NO_TEXT = False
"""The text of a row that could not be read, which the program refuses as every value that is no text."""

TEXT_NAMES = ("text", "content", "raw_content")
HTML_NAMES = ("html",)
ID_NAMES = ("id",)

PathLike = str | os.PathLike[str]


@runtime_checkable
class ArrowStream(Protocol):
    """What data frames of pandas and polars, tables and results of DuckDB have: Arrow data without a copy."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Source = PathLike | Iterable[PathLike] | ArrowStream | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of columns; one with dots leads into nested ones. Those of text, html and id that are None are guessed."""

    text: str | None = None
    html: str | None = None
    id: str | None = None
    url: str | None = None
    date: str | None = None

    def resolved(self, names: list[str]) -> Fields:
        """The fields, with guesses among these names. Raises `ValueError` where there is no text or a column is not there."""
        text, html = self.text, self.html
        if text is not None and html is not None:
            raise ValueError("a row has either a text or a page in HTML: give `text` or `html`")
        if text is None and html is None:
            text = _first(TEXT_NAMES, names)
            html = None if text else _first(HTML_NAMES, names)
            if text is None and html is None:
                raise ValueError(f"name the column with the text: text=... of {', '.join(names) or 'none'}")
        for name in (self.text, self.html, self.id, self.url, self.date):
            if name is not None and name not in names and name.split(".")[0] not in names:
                raise ValueError(f"there is no column {name}, only {', '.join(names)}")
        return Fields(text, html, self.id or _first(ID_NAMES, names), self.url, self.date)

    def wanted(self) -> list[str]:
        """The columns to read."""
        return [name for name in (self.text, self.html, self.id, self.url, self.date) if name is not None]


def _first(wanted: tuple[str, ...], names: list[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows in a row, column by column. A column that nobody asked for is None."""

    rows: int
    texts: list[Any]
    is_html: bool
    urls: list[Any] | None
    dates: list[Any] | None
    ids: pa.Array | None


def program_reads(source: Source) -> list[Path] | None:
    """The paths, where they are crawls or directories that the program reads by itself; None for everything else."""
    paths = _paths(source)
    if paths is None:
        return None
    crawls = [path for path in paths if path.is_dir() or ".warc" in path.suffixes]
    if crawls and len(crawls) != len(paths):
        raise ValueError("crawls and tables are not read together: give one kind of file")
    return crawls or None


def chunks(source: Source, fields: Fields) -> Iterator[Chunk]:
    """All rows of a source, in order. One chunk is in memory at a time."""
    paths = _paths(source)
    if paths is not None:
        for path in paths:
            yield from _file(path, fields)
    elif isinstance(source, pa.RecordBatch):
        yield from _arrow([source], source.schema.names, fields)
    elif isinstance(source, ArrowStream):
        yield from _stream(source, fields)
    else:
        yield from _dictionaries(iter(cast("Iterable[Mapping[str, Any]]", source)), fields)


def _paths(source: Source) -> list[Path] | None:
    if isinstance(source, (str, os.PathLike)):
        return [Path(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        return [Path(cast("PathLike", one)) for one in source]
    return None


def _file(path: Path, fields: Fields) -> Iterator[Chunk]:
    """The rows of a file, by the ending of its name. Raises `ValueError` for one that is not known."""
    suffix = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    if suffix == ".parquet":
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            found = fields.resolved(names)
            yield from _arrow(file.iter_batches(columns=found.wanted()), names, fields)
    elif suffix in (".arrow", ".ipc", ".feather"):
        with pa.memory_map(str(path)) as mapped:
            try:
                reader = pa.ipc.open_file(mapped)
                found = (reader.get_batch(at) for at in range(reader.num_record_batches))
            except pa.ArrowInvalid:
                mapped.seek(0)
                reader = found = pa.ipc.open_stream(mapped)
            yield from _arrow(found, reader.schema.names, fields)
    elif suffix in (".csv", ".tsv"):
        from pyarrow import csv

        parsed = csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",", newlines_in_values=True)
        reader = csv.open_csv(path, parse_options=parsed)
        yield from _arrow(reader, reader.schema.names, fields)
    elif suffix in (".jsonl", ".ndjson", ".json"):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from _dictionaries((_record(line) for line in file if not line.isspace()), fields)
    else:
        raise ValueError(f"{path}: not a file of rows: .parquet, .arrow, .csv, .tsv or .jsonl, or a crawl (.warc)")


def _record(line: bytes) -> Mapping[str, Any] | None:
    """A line of JSON; None for what is no object."""
    try:
        record = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return cast("Mapping[str, Any]", record) if isinstance(record, dict) else None


def _stream(source: ArrowStream, fields: Fields) -> Iterator[Chunk]:
    """Data frames and tables. Of frames only the columns that are needed are converted."""
    if type(source).__module__.split(".")[0] in ("pandas", "polars"):
        frame = cast("Any", source)
        names = [str(name) for name in frame.columns]
        needed = list(dict.fromkeys(name.split(".")[0] for name in fields.resolved(names).wanted()))
        source = cast("ArrowStream", frame[needed])
    reader = pa.RecordBatchReader.from_stream(source)
    yield from _arrow(reader, reader.schema.names, fields)


def _arrow(found: Iterable[pa.RecordBatch], names: list[str], fields: Fields) -> Iterator[Chunk]:
    fields = fields.resolved(names)
    for batch in found:
        # A batch may be a whole table, whose texts are not to be in memory twice.
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)

            def values(name: str | None, part: pa.RecordBatch = part) -> list[Any] | None:
                return None if name is None else _column(part, name).to_pylist()

            texts = values(fields.html or fields.text)
            assert texts is not None
            ids = None if fields.id is None else _column(part, fields.id)
            yield Chunk(part.num_rows, texts, fields.html is not None, values(fields.url), values(fields.date), ids)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(name)
    first, *rest = name.split(".")
    column = batch.column(first)
    for part in rest:
        column = pa.compute.struct_field(column, part)  # type: ignore[attr-defined]
    return column


def _dictionaries(rows: Iterator[Mapping[str, Any] | None], fields: Fields) -> Iterator[Chunk]:
    """The rows, of which None is a bad one."""
    found: Fields | None = None
    while some := list(islice(rows, ROWS)):
        if found is None:
            found = fields.resolved(list(dict.fromkeys(name for row in some if row is not None for name in row)))
        texts = [NO_TEXT if row is None else _value(row, found.html or found.text) for row in some]
        urls = None if found.url is None else [_value(row, found.url) for row in some]
        dates = None if found.date is None else [_value(row, found.date) for row in some]
        ids = None if found.id is None else pa.array([_value(row, found.id) for row in some])
        yield Chunk(len(some), texts, found.html is not None, urls, dates, ids)


def _value(row: Mapping[str, Any] | None, name: str | None) -> Any:
    if row is None or name is None:
        return None
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
    return value
