"""Where rows come from: files, data frames, Arrow data and dictionaries, as columns of some rows at a time."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import pyarrow as pa

from . import files
from .chunks import Chunk, columns_of, of_arrow, of_dictionaries
from .fields import LOOKED_AT, Fields

PathLike = str | os.PathLike[str]

_ADDRESS = re.compile(r"(s3|gs|az|https?)://")
# By themselves, or before what says how they are compressed.
_CRAWLS = (".warc", ".wet", ".arc", ".wacz")
_PAGES = (".html", ".htm", ".xhtml", ".xht", ".txt", ".md", ".markdown")


@runtime_checkable
class ArrowStream(Protocol):
    """What data frames of pandas and polars, tables and results of DuckDB have: Arrow data without a copy."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Source = PathLike | Iterable[PathLike] | ArrowStream | Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]


def inputs(source: Source) -> list[str] | None:
    """The files, directories and addresses that a source names, with patterns expanded; None for everything else.

    Raises `FileNotFoundError` for a pattern that matches nothing, `ValueError` for `-`.
    """
    if isinstance(source, (str, os.PathLike)):
        named = [source]
    elif isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        named = cast("Sequence[PathLike]", source)
    else:
        return None
    return list(chain.from_iterable(_expanded(os.fspath(one)) for one in named))


def _expanded(named: str) -> list[str]:
    if named == "-":
        raise ValueError(
            "standard input is no source: give an iterable of dictionaries, or run the program `doppel dedup -`"
        )
    if _ADDRESS.match(named) or not glob.has_magic(named) or Path(named).exists():
        return [named]
    # Patterns of pathlib are relative, and match hidden files.
    found = sorted(path for path in glob.glob(named, recursive=True) if Path(path).is_file())  # noqa: PTH207
    if not found:
        raise FileNotFoundError(f"no file matches {named}")
    return found


def program_reads(named: list[str]) -> bool:
    """Whether these are crawls, pages, directories or stores, which the program reads by itself: not a row for each of them is known.

    Raises `ValueError` where some are and some are files of rows.
    """
    own = [one for one in named if _is_own(one)]
    if own and len(own) != len(named):
        other = next(one for one in named if one not in own)
        raise ValueError(f"crawls and tables are not read together: {own[0]} and {other}")
    return bool(own)


def _is_own(named: str) -> bool:
    path = Path(named)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    crawl = any(suffix in _CRAWLS for suffix in suffixes[-2:])
    return bool(_ADDRESS.match(named)) or crawl or path.suffix.lower() in _PAGES or path.is_dir()


def chunks(source: Source, named: list[str] | None, fields: Fields) -> Iterator[Chunk]:
    """All rows of a source, in order; `named` are its files. One chunk is in memory at a time.

    Raises `ValueError` where columns are not there or data cannot be read, `TypeError` where a row is no dictionary.
    """
    if named is not None:
        for number, path in enumerate(named):
            for chunk in files.rows(Path(path), fields):
                chunk.file = number
                yield chunk
    elif isinstance(source, Mapping):
        yield from of_dictionaries(_rows_of_columns(cast("Mapping[str, Any]", source)), fields)
    elif isinstance(source, pa.RecordBatch):
        yield from of_arrow([source], source.schema.names, fields)
    elif isinstance(source, (pa.Array, pa.ChunkedArray)):
        yield from _stream(pa.table({fields.text or "text": source}), fields)
    elif type(source).__module__.split(".")[0] in ("pandas", "polars"):
        yield from _frame(source, fields)
    elif isinstance(source, ArrowStream):
        yield from _stream(source, fields)
    elif isinstance(source, (bytes, bytearray)) or not isinstance(source, Iterable):
        kinds = "a path or several, a data frame, Arrow data, or dictionaries"
        raise TypeError(f"a source is {kinds}, not {type(source).__name__}")
    else:
        yield from of_dictionaries(cast("Iterable[Mapping[str, Any]]", source), fields)


def _rows_of_columns(columns: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of columns. Raises `ValueError` where they are not of one length, or one is no sequence."""
    single = [
        name for name, column in columns.items() if isinstance(column, (str, bytes)) or not hasattr(column, "__len__")
    ]
    if single:
        raise ValueError(f"a dictionary has a list for each column, and {single[0]} is none: give one row as [row]")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"columns are of one length, and these are not: {lengths}")
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _stream(source: ArrowStream, fields: Fields) -> Iterator[Chunk]:
    reader = pa.RecordBatchReader.from_stream(source)
    yield from of_arrow(reader, reader.schema.names, fields)


def _frame(source: Any, fields: Fields) -> Iterator[Chunk]:
    """Frames and series of pandas and polars. Of frames only the columns that are needed are converted."""
    if type(source).__name__ == "Series":
        source = source.to_frame(fields.text or "text")
    if type(source).__name__ == "LazyFrame":
        names = source.collect_schema().names()
        source = source.select(_tops(fields.read(names), names)).collect()
    names = [str(name) for name in source.columns]
    looked_at = source[_tops(fields.read(names), names)]
    try:
        head = pa.RecordBatchReader.from_stream(looked_at.head(LOOKED_AT))
        columns = columns_of(head, names, fields)
        reader = pa.RecordBatchReader.from_stream(looked_at[_tops(columns.names(names), names)])
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # A column of pandas may have values of several types.
        rows = looked_at.astype(object).where(looked_at.notna(), None).itertuples(index=False, name=None)
        yield from of_dictionaries((dict(zip(looked_at.columns, row, strict=True)) for row in rows), fields)
    else:
        yield from of_arrow(reader, names, fields, columns)


def _tops(wanted: Iterable[str], names: list[str]) -> list[str]:
    """The columns of these names, or those in which nested ones are."""
    return list(dict.fromkeys(name if name in names else name.split(".")[0] for name in wanted))
