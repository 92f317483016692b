"""Files of rows: which format and compression one has, and its rows."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as parquet

from . import tables
from .chunks import ROWS, Chunk, Fault, columns_of, first_batches, of_arrow, of_dictionaries
from .fields import Fields

_COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")


def rows(path: Path, fields: Fields) -> Iterator[Chunk]:
    """The rows of a file, by the ending of its name. JSON lines, CSV, TSV and Arrow streams may be compressed, whatever their name is.

    Raises `OSError` where it is not there, `ValueError` where its kind is not known or it cannot be read to its end.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = next((one for one in reversed(suffixes) if one not in _COMPRESSIONS), "")
    with _named(path):
        if suffix == ".parquet":
            yield from _parquet(path, fields)
        elif suffix in (".arrow", ".arrows", ".ipc", ".feather"):
            yield from _arrow(path, fields)
        elif suffix in (".csv", ".tsv"):
            with _unpacked(path) as file:
                for chunk in of_dictionaries(_csv(path, file, suffix == ".tsv"), fields):
                    chunk.untyped = True
                    yield chunk
        elif suffix in (".jsonl", ".ndjson", ".json"):
            with _unpacked(path) as file:
                yield from of_dictionaries(_json(path, file), fields)
        else:
            kinds = (
                ".parquet, .arrow, .feather, .csv, .tsv or .jsonl, or what the program reads as pages, such as .warc"
            )
            raise ValueError(f"{path}: not a file of rows: {kinds}. Texts are given as dictionaries: [{{'text': ...}}]")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Names the file in errors of the libraries."""
    try:
        yield
    except (pa.ArrowException, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path}: {error}") from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{path}: {error}") from error


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, whose compression is found by its first bytes."""
    with path.open("rb") as file:
        first = file.peek(6) if isinstance(file, io.BufferedReader) else b""
        if first.startswith(b"\x1f\x8b"):
            unpacked = gzip.GzipFile(fileobj=file)
        elif first.startswith(b"BZh"):
            unpacked = bz2.BZ2File(file)
        elif first.startswith(b"\xfd7zXZ\0"):
            unpacked = lzma.LZMAFile(file)  # noqa: SIM115
        elif first.startswith(b"\x28\xb5\x2f\xfd") or first[1:4] == b"\x2a\x4d\x18":
            unpacked = io.BufferedReader(cast("Any", pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")))
        else:
            unpacked = file
        with unpacked:
            yield cast("BinaryIO", unpacked)


def _parquet(path: Path, fields: Fields) -> Iterator[Chunk]:
    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        # The first rows say which of the columns that may be meant are read.
        head = first_batches(file.iter_batches(batch_size=ROWS, columns=fields.read(names)))
        columns = columns_of(head, names, fields)
        yield from of_arrow(file.iter_batches(columns=columns.names(names)), names, fields, columns)


def _arrow(path: Path, fields: Fields) -> Iterator[Chunk]:
    """A file of Arrow, or a stream, which may be compressed."""
    with pa.memory_map(str(path)) as mapped:
        try:
            reader = pa.ipc.open_file(mapped)
        except pa.ArrowInvalid:
            reader = None
        if reader is not None:
            batches = (reader.get_batch(at) for at in range(reader.num_record_batches))
            yield from of_arrow(batches, reader.schema.names, fields)
            return
    with _unpacked(path) as file, pa.ipc.open_stream(file) as stream:
        yield from of_arrow(stream, stream.schema.names, fields)


def _json(path: Path, lines: Iterable[bytes]) -> Iterator[Mapping[str, Any] | Fault]:
    """The objects of JSON lines; a fault for a line that is none. Blank lines are no rows."""
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # NaN, Infinity and lone surrogates are no JSON, but of Python's.
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                yield Fault(f"{path.name}, line {number}: {error}")
                continue
        if isinstance(record, dict):
            yield cast("Mapping[str, Any]", record)
        else:
            yield Fault(f"{path.name}, line {number}: is no object")


def _csv(path: Path, file: BinaryIO, tabs: bool) -> Iterator[Mapping[str, Any] | Fault]:
    """The rows of CSV or TSV, whose cells are texts. An empty cell is a null. A row of another number of cells than names, or
    with a stray quote, is a fault.

    Raises `ValueError` where the table begins with a comment, or its names cannot be read.
    """
    # What is not UTF-8 is found where a row is written.
    lines = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from _records(path, lines, tabs)
    finally:
        # The file below is closed where it was opened.
        lines.detach()


def _records(path: Path, lines: io.TextIOWrapper, tabs: bool) -> Iterator[Mapping[str, Any] | Fault]:
    """The rows below the first, which has the names."""
    first = next((line for line in lines if line.strip("\r\n")), "")
    said = tables.said_separator(first)
    separator = said or ("\t" if tabs else tables.separator_of(first))
    if said is not None:
        first = next((line for line in lines if line.strip("\r\n")), "")
    if first.startswith("# ") and separator not in first:
        raise ValueError(
            f"{path}: a table that begins with a comment, which CSV does not have; leave out lines that begin with #"
        )
    names: list[str] | None = None
    for number, cells in tables.Rows(chain([first], lines), separator):
        place = f"{path.name}, line {number + (said is not None)}"
        if isinstance(cells, tables.BadRow):
            if names is None:
                raise ValueError(f"{path}: {cells.reason}")
            yield Fault(f"{place}: {cells.reason}")
        elif names is None:
            names = cells
        elif len(cells) != len(names):
            yield Fault(f"{place}: {len(cells)} cells under {len(names)} names")
        else:
            row: dict[str, str | None] = {}
            for name, cell in zip(names, cells, strict=True):
                # Of columns of one name the first counts.
                row.setdefault(name, cell or None)
            yield row
