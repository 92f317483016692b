"""Near-duplicates of rows: a file, a data frame, Arrow data or dictionaries in, an Arrow table out."""

# pyright: standard, reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Arrow for Python has no types.
from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from .errors import ProgramError
from .program import LINES_SHOWN, last_lines, options, program
from .termination import held

if TYPE_CHECKING:
    import pyarrow as pa

    from .sources import Source


class BadRows(UserWarning):
    """Some rows could not be read: their status is `bad`, and they are not kept."""


def dedup(
    source: Source,
    *,
    text: str | None = None,
    html: str | None = None,
    id: str | None = None,
    url: str | None = None,
    date: str | None = None,
    tau: float | None = None,
    policy: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    **dedup: Any,
) -> pa.Table:
    """Finds the near-duplicates among rows, and which row of each group to keep.

    `source` is one of

    - a path or several: Parquet, Arrow IPC (also Feather), CSV, TSV or JSON lines (also `.gz`), by the ending of the name; several
      are read one after another. WARC files and directories of pages are read by the program itself;
    - a data frame of pandas or polars, an Arrow table, batch or reader, a relation of DuckDB: whatever has `__arrow_c_stream__`;
    - an iterable of dictionaries, read once.

    `text` or `html` names the column with what is compared: without it `text`, `content`, `raw_content` or `html` is taken. A name
    with dots leads into nested columns. A null counts as an empty text, which is kept.

    `id` names the column by which rows are called in the result: without it `id` is taken, or else rows are called by their
    number from 0. `url` names a column of URLs: the usual winner order then reads them, and of several rows with one URL the newest
    counts, and the others are `superseded`. A value that is no absolute URL makes a row without one. Nothing is taken for a URL by
    itself. `date` names when a row was fetched, as a date, a time (UTC where it has no zone) or a text in RFC 3339: who was seen on an
    earlier day wins. Without URL and date the first row of a group wins.

    `tau` and `policy` say what is a duplicate (docs/POLICIES.md): Jaccard of shingles of 5 words above 0.8 where neither is given. Other
    parameters are options of `doppel dedup`, such as `winners="winners.toml"`.

    The result has a row for each row of the source, in order:

    - `id`: how the row is called;
    - `status`: `unique`, `winner`, `duplicate` (verified against a kept row), `secondary` (kept beside the winner of its group),
      `superseded`, or `bad` (it could not be read; a warning `BadRows` says why);
    - `group`: the name of its group, null for none;
    - `winner`: the id of the row that won the group, null for none;
    - `duplicate_of`: the id of the kept row that it is a duplicate of, null where it is none;
    - `similarity`: how similar the two are, 0 to 1;
    - `kept`: whether to keep it, so that `table.filter(result["kept"])` is what is left.

    Of a directory or WARC files it has a row for each live page, sorted by URL, whose `id` is the URL. The metadata of its schema has,
    under `doppel`, the program's summary as JSON.

    Of the source a batch is in memory at a time, as it comes, and 1,000 rows of it as Python's values; of each row about 150 bytes
    for the result, and with `url` about 300 more. The texts are written once, as JSON lines, into a temporary file in `scratch`, where
    the system has its temporary files if none is given. The program, which is a process of its own, needs up to 1 kB for a short row
    (measured with 1,500,000 rows of 30 words), and more for long ones.

    Raises `ProgramError` where the program fails, `ValueError` where columns are not there or a file is of no known kind.

    >>> import doppel
    >>> text = " ".join(f"word{n}" for n in range(50))
    >>> rows = [{"id": "a", "text": text}, {"id": "b", "text": "something else"}, {"id": "c", "text": text + " and more"}]
    >>> found = doppel.dedup(rows)
    >>> found.select(["id", "status", "duplicate_of", "kept"]).to_pylist()
    [{'id': 'a', 'status': 'winner', 'duplicate_of': None, 'kept': True},
     {'id': 'b', 'status': 'unique', 'duplicate_of': None, 'kept': True},
     {'id': 'c', 'status': 'duplicate', 'duplicate_of': 'a', 'kept': False}]
    """
    from . import results, sources
    from .rows import Rows

    parameters = {"tau": tau, "policy": policy, **dedup}
    with held(), tempfile.TemporaryDirectory(prefix="doppel-", dir=scratch) as folder:
        out = Path(folder) / "pages.jsonl"
        crawls = sources.program_reads(source)
        if crawls is not None:
            summary = _run([str(path) for path in crawls], out, parameters)
            return _with_summary(results.by_url(out), summary)
        written = Path(folder) / "rows.jsonl"
        fields = sources.Fields(text, html, id, url, date)
        ids: list[pa.Array] = []
        with written.open("wb", buffering=1 << 20) as file:
            rows = Rows(file)
            for chunk in sources.chunks(source, fields):
                rows.write(chunk)
                if chunk.ids is not None:
                    ids.append(chunk.ids)
        if rows.count == 0:
            out.touch()
            return results.by_row(out, rows, None)
        summary = _run([str(written)], out, parameters)
        return _with_summary(results.by_row(out, rows, _together(ids)), summary)


def _together(ids: list[pa.Array]) -> pa.ChunkedArray | None:
    """All ids, of one type."""
    import pyarrow as pa

    if not ids:
        return None
    kinds = pa.unify_schemas([pa.schema([("id", chunk.type)]) for chunk in ids], promote_options="permissive")
    kind = kinds.field("id").type
    # Rows of views cannot be picked.
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind
    return pa.chunked_array([chunk.cast(kind) for chunk in ids])


def _run(inputs: list[str], out: Path, parameters: dict[str, Any]) -> bytes:
    """Runs the program. Gives its summary, as JSON."""
    log = out.with_suffix(".log")
    command = [str(program()), "dedup", "--json", "--out", str(out), *options(parameters), "--", *inputs]
    with log.open("wb") as errors:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
    if done.returncode != 0:
        message = f"`doppel dedup` ended with code {done.returncode}"
        raise ProgramError(message, done.returncode, last_lines(log))
    summary = cast("Mapping[str, Any]", msgspec.json.decode(done.stdout))
    bad = sum(summary["input"]["bad"].values())
    if bad:
        said = "\n".join(last_lines(log)[-LINES_SHOWN:])
        warnings.warn(f"{bad} rows could not be read:\n{said}", BadRows, stacklevel=3)
    return done.stdout.strip()


def _with_summary(found: pa.Table, summary: bytes) -> pa.Table:
    return found.replace_schema_metadata({"doppel": summary})
