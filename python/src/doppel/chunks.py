"""Some rows in a row, column by column: made from dictionaries and from Arrow data."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from numbers import Integral
from types import NoneType
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from .fields import LIST, LOOKED_AT, Columns, Fields, columns_in, parts

ROWS = 1_000
"""Rows of a chunk at most."""
_ID_DIGITS = 1_000
_ID_MAX = 10**_ID_DIGITS
"""Above every id that is a number: Python does not write much larger ones as text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that could not be read."""

    reason: str


@dataclass(slots=True)
class Chunk:
    """Some rows. A column that nobody asked for is None."""

    rows: int
    name: str
    """Of the column with the contents."""
    contents: list[Any]
    html: set[int]
    """Rows whose content is HTML, counted from 0 in the chunk."""
    urls: list[Any] | None
    dates: list[Any] | None
    ids: pa.Array | None
    """Null where a row has none."""
    faults: dict[int, str] = field(default_factory=dict[int, str])
    """Why a row cannot be read."""
    file: int = 0
    """The number of its file: in each, ids name one row."""
    popularities: list[Any] | None = None
    id_is_guessed: bool = False
    """Whether nobody has named the column of the ids, so that it is none where a value repeats."""
    untyped: bool = False
    """Whether the ids are texts because the file knows nothing else."""


def _chunk(rows: int, columns: Columns, values: Callable[[str], list[Any]], ids: pa.Array | None) -> Chunk:
    """A chunk, with the columns that `values` gives."""
    contents: list[Any] = [None] * rows
    html: set[int] = set()
    for name in (*columns.texts, *columns.htmls):
        is_html = name in columns.htmls
        for at, value in enumerate(values(name)):
            before = contents[at]
            if value is None or not (before is None or (isinstance(before, (str, bytes)) and not before)):
                continue
            contents[at] = value
            if is_html:
                html.add(at)
    urls = None if columns.url is None else values(columns.url)
    dates = None if columns.date is None else values(columns.date)
    popularities = None if columns.popularity is None else values(columns.popularity)
    name = (columns.texts or columns.htmls)[0]
    guessed = columns.id_is_guessed
    return Chunk(rows, name, contents, html, urls, dates, ids, popularities=popularities, id_is_guessed=guessed)


def columns_of(head: Iterable[pa.RecordBatch], names: Sequence[str], fields: Fields) -> Columns:
    """The columns to read, by the first batches of a source."""
    batches = list(head)
    return fields.columns(names, lambda name: _first(batches, name))


def first_batches(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """As many batches as have the rows that are looked at."""
    head: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in head) < LOOKED_AT and (batch := next(batches, None)) is not None:
        head.append(batch)
    return head


def of_arrow(
    found: Iterable[pa.RecordBatch], names: Sequence[str], fields: Fields, columns: Columns | None = None
) -> Iterator[Chunk]:
    """The rows of batches of one schema, of the columns that are given or else guessed."""
    batches = iter(found)
    head = first_batches(batches)
    columns = columns or columns_of(head, names, fields)
    for batch in chain(head, batches):
        # A batch may be a whole table, whose texts are not to be in memory twice.
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            ids = None if columns.id is None else _column(part, columns.id)

            def values(name: str, part: pa.RecordBatch = part) -> list[Any]:
                return _values_at(part, name)

            yield _chunk(part.num_rows, columns, values, ids)


def _first(batches: list[pa.RecordBatch], name: str) -> list[Any]:
    found = chain.from_iterable(_values_at(batch.slice(0, LOOKED_AT), name) for batch in batches)
    return list(islice(found, LOOKED_AT))


def _values_at(batch: pa.RecordBatch, name: str) -> list[Any]:
    """The values of a column, or of several that are joined."""
    if name in batch.schema.names or not _is_joined(name):
        return _values(_column(batch, name))
    there = columns_in(name, batch.schema.names)
    columns = [_values(batch.column(column)) for column in there]
    return [_joined(dict(zip(there, row, strict=True)), name) for row in zip(*columns, strict=True)]


def _is_joined(name: str) -> bool:
    return "," in name or LIST in name


def _joined(row: Mapping[str, Any], name: str) -> Any:
    """The texts in several columns or in lists, joined by line feeds; the first value that is no text, if there is one."""
    found: list[Any] = []
    for part in parts(name):
        if part in row or LIST not in part:
            found.append(_value(row, part))
        else:
            _gather(row, part.split("."), found)
    found = [value for value in found if value is not None]
    other = next((value for value in found if not isinstance(value, str)), None)
    if other is not None:
        return other
    return "\n".join(text for text in found if text) if found else None


def _gather(value: Any, steps: Sequence[str], found: list[Any]) -> None:
    """Adds the values to which the steps of a path lead. A text in the place of a list or a dictionary is taken as if it were in that."""
    if isinstance(value, (str, NoneType)) or not steps:
        found.append(value)
        return
    name, *rest = steps
    own = name.removesuffix(LIST)
    if not isinstance(value, Mapping):
        found.append(value)
    elif own == name:
        _gather(cast("Mapping[str, Any]", value).get(name), rest, found)
    else:
        inside = cast("Mapping[str, Any]", value).get(own.removesuffix(LIST))
        for element in _elements(inside, name.count(LIST), found):
            _gather(element, rest, found)


def _elements(value: Any, depth: int, found: list[Any]) -> Iterator[Any]:
    """The elements of lists in lists. What is no list, and no text either, is found as it is."""
    if depth == 0 or isinstance(value, (str, NoneType)):
        yield value
    elif isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, Mapping)):
        for element in cast("Iterable[Any]", value):
            yield from _elements(element, depth - 1, found)
    else:
        found.append(value)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Python has microseconds.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column.to_pylist()


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(name)
    first, *rest = name.split(".")
    column = batch.column(first)
    for part in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(part) < 0:
            raise ValueError(f"there is no column {name}: {first} is {column.type}")
        column = pc.struct_field(column, part)
    return column


def of_dictionaries(rows: Iterable[Mapping[str, Any] | Fault], fields: Fields) -> Iterator[Chunk]:
    """The rows, of which a `Fault` is a bad one. Raises `TypeError` for what is neither."""
    columns: Columns | None = None
    given = iter(rows)
    while some := list(islice(given, ROWS)):
        faults = {at: row.reason for at, row in enumerate(some) if isinstance(row, Fault)}
        records = [_record(row) for row in some]
        if columns is None and len(faults) < len(some):
            names = list(dict.fromkeys(name for row in records for name in row))
            good = [row for at, row in enumerate(records) if at not in faults]
            columns = fields.columns(names, lambda name, good=good: [_value(row, name) for row in good])
        if columns is None:
            yield Chunk(len(some), "", [None] * len(some), set(), None, None, None, faults)
            continue
        ids = None if columns.id is None else _ids([_value(row, columns.id) for row in records], columns.id, faults)
        chunk = _chunk(len(some), columns, lambda name, rows=records: [_value(row, name) for row in rows], ids)
        chunk.faults = faults
        yield chunk


def _record(row: object) -> Mapping[str, Any]:
    if isinstance(row, Fault):
        return {}
    if not isinstance(row, Mapping):
        raise TypeError(f"a row is a dictionary such as {{'text': ...}}, not {type(row).__name__}")
    return cast("Mapping[str, Any]", row)


def _value(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        value = row[name]
    elif _is_joined(name):
        value = _joined(row, name)
    else:
        value = row
        for part in name.split("."):
            value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
    # NaN is how pandas has a null.
    return None if isinstance(value, float) and value != value else value


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(name: str) -> str:
    """The name of a column in a message.

    >>> print(shown("a\\udcff"))
    "a?"
    """
    return '"' + name.encode(errors="replace").decode() + '"'


def described(value: object) -> str:
    """The kind of a value in a message.

    >>> described(1.5), described([]), described({}), described(True)
    ('number', 'list', 'dictionary', 'boolean')
    """
    kinds = {bool: "boolean", int: "number", float: "number", dict: "dictionary"}
    return kinds.get(type(value), type(value).__name__)


def _ids(values: list[Any], name: str, faults: dict[int, str]) -> pa.Array:
    """Ids as whole numbers, or as texts where there are texts. One of another type or with a lone surrogate makes a bad row."""
    for at, value in enumerate(values):
        if isinstance(value, str):
            if not value.isascii() and not is_unicode(value):
                faults.setdefault(
                    at, f"{shown(name)}: is text with a lone surrogate, and has to be text or a whole number"
                )
                values[at] = None
        elif isinstance(value, bool) or not isinstance(value, (Integral, NoneType)):
            faults.setdefault(at, f"{shown(name)}: is a {described(value)}, and has to be text or a whole number")
            values[at] = None
        elif value is not None and abs(int(value)) > _ID_MAX:
            faults.setdefault(at, f"{shown(name)}: is a whole number of more than {_ID_DIGITS} digits")
            values[at] = None
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
