"""Rows as pages: the name under which the program knows a row, the line that it reads, and the way back.

A row without a URL is named by its number. Such names are of one length and in the order of the rows, so that under the usual winner
order the first row of a group wins. Where rows stay in a collection they have names that mean the same in a later call: the URL, or
else the id.
"""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

import json
from array import array
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .chunks import Chunk, described, shown
from .moments import moment
from .program import LINES_SHOWN

PREFIX = "record:rows#"
"""What a name begins with that is no URL."""
DIGITS = 12
"""Of the number of a row in its name."""
_MILLISECOND = timedelta(milliseconds=1)
_PAGE_BYTES_MAX = 16 << 20
# These stay as they are in a name (docs/reference/records.md), with letters and digits.
_UNQUOTED = "-._~!$&'()*+,;:@/"


class _Bad(Exception):
    """Why a row cannot be read."""


class _Version(NamedTuple):
    """The newest row of a URL or an id: its date, the date that the program is told, and its number."""

    given: datetime
    told: datetime
    row: int


class Rows:
    """Writes rows as lines for the program, a blank one for a bad row, and knows afterwards which row each of its lines is.

    `stay`: whether the rows stay in a collection. Then each has a URL or an id: `write` raises `ValueError` where no column has any.
    Of a row about 100 bytes are held where rows have ids, and 300 where they have URLs or stay; otherwise nothing is.
    """

    def __init__(self, out: BinaryIO, *, stay: bool = False, folds: bool = False) -> None:
        self.count = 0
        """Rows so far."""
        self.written = 0
        """Those of them that are not bad."""
        self.reasons: list[str] = []
        """Why rows are bad, of the first that are."""
        self.superseded = array("q")
        """Rows that have the name of another row with a later date, or with the same date and further down."""
        self.stay = stay
        self.folds = folds
        """Whether the newest row of a URL or an id stands for the others. Otherwise each row is judged on its own."""
        self._out = out
        self._encoder = msgspec.json.Encoder()
        self._newest: dict[str, _Version] = {}
        self._names: list[str] = []
        self._ids: list[pa.Array] = []
        self._files: list[int] = []
        self._untyped = True
        self._file = 0
        self._seen: set[int] = set()
        self.repeated: dict[int, str] = {}
        """Why a guessed id is none, by the numbers of files in which a value repeats."""
        self._now = datetime.now(UTC)

    def write(self, chunk: Chunk) -> None:
        """Writes the rows of a chunk."""
        if self.stay and chunk.contents and chunk.ids is None and chunk.urls is None and len(chunk.faults) < chunk.rows:
            raise ValueError(
                "rows that stay in a collection (data=) need names that mean the same in the next call: give id= or url="
            )
        if chunk.file != self._file:
            self._file, self._seen = chunk.file, set()
        ids = None if chunk.ids is None else chunk.ids.to_pylist()
        self._ids.append(pa.nulls(chunk.rows) if chunk.ids is None else chunk.ids)
        self._files.append(chunk.file)
        self._untyped &= chunk.untyped
        for at in range(chunk.rows):
            name = ""
            try:
                name, line = self._line(chunk, at, None if ids is None else ids[at])
                self._out.write(line)
                self.written += 1
            except _Bad as bad:
                self._out.write(b"\n")
                if len(self.reasons) < LINES_SHOWN:
                    self.reasons.append(f"row {self.count}: {bad}")
            if self.stay:
                self._names.append(name)
            self.count += 1

    def _line(self, chunk: Chunk, at: int, id: Any) -> tuple[str, bytes]:
        """The name of a row and the line that the program reads."""
        if at in chunk.faults:
            raise _Bad(chunk.faults[at])
        url = None if chunk.urls is None else chunk.urls[at]
        has_url = isinstance(url, str) and url[:8].lower().startswith(("http://", "https://", "file://"))
        has_id = id is not None and id != ""
        # A row with a URL is named by that, and its versions may have one id.
        if has_id and not has_url and chunk.file not in self.repeated and hash(str(id)) in self._seen:
            if self.stay or not chunk.id_is_guessed:
                raise _Bad(f"an earlier row has the id {id}")
            self.repeated[chunk.file] = f"row {self.count} has the id of an earlier row, {id}"
        content = self._content(chunk, at)
        try:
            fetched = None if chunk.dates is None else moment(chunk.dates[at])
        except ValueError as error:
            raise _Bad(f"the date is {error}") from None
        popularity = None if chunk.popularities is None else _popularity(chunk.popularities[at])
        versions = True
        if has_url:
            # As the program does: all else is taken as it is spelt.
            name = str(url).partition("#")[0]
        elif not self.stay:
            name, versions = f"{PREFIX}{self.count:0{DIGITS}d}", False
        elif has_id:
            name = PREFIX + quote(str(id), safe=_UNQUOTED, errors="replace")
        else:
            raise _Bad("has neither a URL nor an id, and is to stay in a collection")
        try:
            begin = self._encoder.encode(name)
        except UnicodeEncodeError:
            raise _Bad("the URL is not UTF-8") from None
        # From here on the row is taken.
        if versions and self.folds:
            fetched = self._version(name, fetched)
        if has_id and not has_url:
            self._seen.add(hash(str(id)))
        date = b"" if fetched is None else b'"fetched_at":' + self._encoder.encode(fetched) + b","
        if popularity is not None:
            date += b'"popularity":' + self._encoder.encode(popularity) + b","
        return name, b'{"url":' + begin + b"," + date + content[1:] + b"\n"

    def _content(self, chunk: Chunk, at: int) -> bytes:
        """The text or HTML of a row, as an object of JSON."""
        content = chunk.contents[at]
        name = shown(chunk.name)
        # What is not UTF-8 in bytes is no text of another charset here.
        is_bytes = isinstance(content, (bytes, bytearray))
        if is_bytes:
            content = content.decode(errors="surrogateescape")
        if content is None:
            raise _Bad(f"{name}: missing")
        if isinstance(content, (list, tuple)):
            raise _Bad(
                f"{name}: is a list, and has to be text; text={chunk.name}[] takes the texts in it, and "
                f"text={chunk.name}[].NAME a field of the dictionaries in it"
            )
        if not isinstance(content, str):
            raise _Bad(f"{name}: is a {described(content)}, and has to be text")
        if type(content) is not str:
            # One of numpy, which cannot be encoded.
            content = str(content)
        page = {"html" if at in chunk.html else "text": content}
        try:
            encoded = self._encoder.encode(page)
        except UnicodeEncodeError:
            if is_bytes or chunk.untyped:
                raise _Bad(f"{name}: is not UTF-8") from None
            # The program reads U+FFFD for a lone surrogate, and counts such texts.
            encoded = json.dumps(page).encode()
        if len(encoded) > _PAGE_BYTES_MAX and (size := len(content.encode(errors="replace"))) > _PAGE_BYTES_MAX:
            raise _Bad(f"a page of {size} bytes; at most {_PAGE_BYTES_MAX} are taken")
        return encoded

    def _version(self, name: str, fetched: datetime | None) -> datetime:
        """The date of a row that may be a version of another. A later row of the same date gets a date one millisecond later, so that it
        is clear which is the newest.
        """
        given = told = fetched or self._now
        before = self._newest.get(name)
        if before is not None:
            if given < before.given:
                self.superseded.append(self.count)
                return given
            told = max(given, before.told + _MILLISECOND)
            self.superseded.append(before.row)
        self._newest[name] = _Version(given, told, self.count)
        return told

    def ids(self) -> pa.ChunkedArray:
        """What each row is called: by its id, or else by its number from 0, or `row=` and this where others have ids. Of rows that stay
        these are texts, and a row without an id is called by its URL.
        """
        numbers = pa.array(range(self.count), pa.int64())
        text = pa.large_string()
        if self.stay:
            ids = [str(id) if id is not None else "" for chunk in self._ids for id in chunk.to_pylist()]
            called = zip(ids, self._names, range(self.count), strict=True)
            return pa.chunked_array([pa.array([id or name or f"row={row}" for id, name, row in called], text)])
        # A column that repeats in a file is none of its ids.
        ids = zip(self._ids, self._files, strict=True)
        self._ids = [pa.nulls(len(chunk)) if file in self.repeated else chunk for chunk, file in ids]
        kind = _kind([chunk.type for chunk in self._ids])
        if pa.types.is_null(kind):
            return pa.chunked_array([numbers])
        found = pa.chunked_array([_cast(chunk, kind) for chunk in self._ids], kind)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found = pc.if_else(pc.equal(found, ""), pa.scalar(None, kind), found)
        if found.null_count:
            names = pc.binary_join_element_wise(pa.scalar("row=", text), numbers.cast(text), pa.scalar("", text))
            found = pa.chunked_array([_cast(chunk, text) for chunk in found.chunks], text)
            return pc.coalesce(found, names)
        return _whole_numbers(found) if self._untyped else found

    def counts_of_files(self) -> list[tuple[int, int]]:
        """The numbers of files in the order of their rows, each with a number of rows; a file may be there several times."""
        return [(file, len(chunk)) for file, chunk in zip(self._files, self._ids, strict=True)]

    def rows_of(self, names: pa.Array) -> pa.Array:
        """The number of the row of each page, by its name; null for a null, and for a page that is no row of this call."""
        if not self._newest and not self.stay:
            return pc.cast(pc.utf8_slice_codeunits(names, start=len(PREFIX)), pa.int64())
        return pa.array([None if name is None else self._row(name) for name in names.to_pylist()], pa.int64())

    def _row(self, name: str) -> int | None:
        known = self._newest.get(name)
        if known is not None:
            return known.row
        return None if self.stay else int(name.removeprefix(PREFIX))


def called_elsewhere(name: str) -> str:
    """What a row of an earlier call is called, by its name."""
    return unquote(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else name


def _kind(kinds: list[pa.DataType]) -> pa.DataType:
    """A type that ids of all these can have; null where there are no ids."""
    # Values of dictionaries and views cannot be compared or picked.
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    plain = [pa.large_string() if pa.types.is_string_view(kind) else kind for kind in plain]
    try:
        schemas = [pa.schema([("id", kind)]) for kind in dict.fromkeys(plain)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("id").type if schemas else pa.null()
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.large_string()


def _cast(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return ids.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if id is None else str(id) for id in ids.to_pylist()], kind)


def as_texts(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as texts, whatever they are."""
    return pa.chunked_array([_cast(chunk, pa.large_string()) for chunk in ids.chunks], pa.large_string())


def _whole_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as whole numbers where each of them is one as it is usually written."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return texts
    return numbers if numbers.cast(texts.type).equals(texts) else texts


def _popularity(value: Any) -> float | None:
    """The popularity of a row; None for a null, which is NaN in pandas, and for an empty cell of CSV."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise _Bad(f"the popularity is a {described(value)}, and has to be a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _Bad(f"the popularity is {value!r}, and has to be a number") from None
    if not 0 <= number < inf:
        raise _Bad(f"the popularity is {value}, and has to be finite and not negative")
    return number
