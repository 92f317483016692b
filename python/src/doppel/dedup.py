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
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from .errors import ProgramError
from .known_options import DEDUP, require_known
from .program import LINES_SHOWN, last_lines, options, program
from .progress import Progress
from .termination import held

if TYPE_CHECKING:
    import pyarrow as pa

    from .sources import Source


_LOOK_SECONDS = 0.2
"""How often progress is looked at while the program runs."""


class BadRows(UserWarning):
    """Some rows could not be read: their status is `bad`, and they are not kept."""


class Quarantined(UserWarning):
    """All rows of some groups are kept, near-duplicates among them, because the groups have too many distinct contents."""


class RepeatedIds(UserWarning):
    """A column that was taken for the ids by its name has a value twice, so rows are called by their numbers. `id=` names the column."""


def dedup(
    source: Source,
    *,
    text: str | None = None,
    html: str | None = None,
    id: str | None = None,
    url: str | None = None,
    date: str | None = None,
    popularity: str | None = None,
    latest: bool = False,
    reference: Source | None = None,
    reference_only: bool = False,
    progress: bool = False,
    tau: float | None = None,
    policy: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    **dedup: Any,
) -> pa.Table:
    """Finds the near-duplicates among rows, and which row of each group to keep.

    `source` is one of

    - a path, a pattern such as `data/**/*.parquet`, or a list of them: Parquet, Arrow IPC (also Feather), CSV, TSV or JSON lines, by the
      ending of the name, those of lines and Arrow streams also packed with gzip, zstd, bzip2 or xz; several are read one after another.
      WARC and WET files, directories, files of HTML, text and Markdown, and stores (`s3://...`) are read by the program itself;
    - a data frame of pandas or polars, an Arrow table, batch or reader, a relation of DuckDB: whatever has `__arrow_c_stream__`; a
      lazy frame of polars, which is collected; a series or an array, which is the texts;
    - an iterable of dictionaries, read once, or a dictionary with a list for each column.

    `text` names the column with what is compared, `html` one that is read where a row has no text. Without both it is the first of
    `text`, `content` and `raw_content` that at least half of the first 1,000 rows have, or else the one that most have; where that is
    null or empty, `text` is read, then `html`. A name with dots leads into nested columns, `messages[].content` into
    lists, and `title,body` names several columns, whose texts are joined by line feeds. A row whose text is null is bad; an empty text
    is kept. `none` in the place of a name says that a column is not read.

    `id` names the column by which rows are called in the result: without it `id` is taken where there is one, or else rows are called
    by their number from 0. Of rows without URLs that have one id in a file, or in a source that is no file, all but the first are bad
    where `id` is named or the rows stay in a collection; otherwise the column is no id, rows are called by their numbers, and a warning
    `RepeatedIds` says so.
    A row whose id is null or empty is called `row=` and its number, and all ids are texts then.

    `url` names a column of URLs, which the usual winner order then reads. Each row is judged on its own, also when several have one URL;
    with `latest=True` the newest of them counts, and the others are `superseded`. A value that is no absolute URL makes a row without
    one. Nothing is taken for a URL by itself. `date` names
    when a row was fetched, as a date, a time (UTC where it has no zone), a text in RFC 3339, or seconds or milliseconds since 1970: who
    was seen on an earlier day wins. What is no date makes a bad row. `popularity` names a column of numbers, finite and not negative: of a
    group the row in the highest class of powers of two wins, before dates and URLs are looked at. A null says nothing, and what is no such
    number makes a bad row. Without URL, date and popularity the first row of a group wins.

    `reference` is a source of rows that are compared with the others, and have no rows in the result: an evaluation set, or older data.
    The parameters that name columns also apply to it. A row that is a near-duplicate of a row of the reference is a `duplicate`, and
    `reference_row` is the number of that row, from 0. With `reference_only=True` nothing else is a duplicate; `decontaminate` is a short
    form of this.

    With `progress=True` lines on standard error say how many rows were read and how long the grouping takes.

    `tau` and `policy` say what is a duplicate (docs/reference/policies.md). Without them, two rows are duplicates if the Jaccard
    coefficient of their shingles of 5 words is above 0.8. Punctuation and case do not count (docs/reference/text.md).
    `policy="jaccard:tokens=code"` compares code, where both count. Other parameters are options of `doppel dedup`, such as
    `winners="winners.toml"` and `report="report.html"`, except options for reading files and for output. An unknown parameter is a
    `TypeError` that names the known ones, and no row is read.

    With `data="DIR"` the rows stay in a collection, and are compared with those of earlier calls. Then they need `url` or ids, which mean
    the same row in each call: a known one is a new version of its row. Ids are texts, and a row without one is called by its URL.

    The result has a row for each row of the source, in order:

    - `id`: how the row is called;
    - `status`: `unique`, `winner`, `duplicate` (verified against a kept row), `secondary` (kept beside the winner of its group),
      `superseded` (with `latest` or `data`: there is a newer row of its URL or id), or `bad` (it could not be read; a warning `BadRows`
      says why);
    - `group`: the name of its group, null for none;
    - `winner`: the id of the row that won the group, null for none;
    - `duplicate_of`: the id of the kept row that it is a duplicate of, null where it is none;
    - `similarity`: how similar the two are, 0 to 1;
    - `kept`: whether to keep it, so that `table.filter(result["kept"])` is what is left;
    - `winner_row` and `duplicate_of_row`: the number, from 0, of the row that `winner` and `duplicate_of` name, also where ids are equal;
      null for a row of an earlier call;
    - `reference_row`, with a reference: the number of its row that `duplicate_of` names;
    - `file`, if the source is files: the path of the row's file, as it was given.

    Of what the program reads by itself it has a row for each record, in the order of the inputs, whose `id` is the URL or the name of a
    record. `record`, `winner_record` and `duplicate_of_record` name the records by `file`, `id` in the file, and `line`, `row` or `byte`,
    in place of the columns behind `kept`. With `latest` or `data` it has a row for each live page, sorted by URL, and none of these
    columns. A redirect is kept there, unless `latest` or `data` is given. The metadata of the schema
    has, under `doppel`, the program's summary as JSON. It begins with `records`: read = kept + removed + bad + skipped, and superseded with
    `latest` or `data`.

    Of the source a batch is in memory at a time, as it comes, and 1,000 rows of it as Python's values; of each row about 170 bytes
    for the result, with ids about 100 more, and with `url` or `data` about 300. The texts are written once, as JSON lines, into a
    temporary file in `scratch`, where the system has its temporary files if none is given. The program, which is a process of its own,
    needs up to 1 kB for a short row (measured with 1,500,000 rows of 30 words), and more for long ones. SIGTERM removes the file, if the
    call is in the main thread and the process has no handler for it.

    Warns of bad rows with `BadRows`, and of groups of which all rows are kept with `Quarantined`. Raises `ProgramError` where the
    program fails; `ValueError` where columns are not there, a file is of no known kind or cannot be read to its end, or an option has
    no use here; `OSError` where a file is not there; `TypeError` where a
    source or a row is of another type, or a parameter is unknown.

    >>> import doppel
    >>> text = " ".join(f"word{n}" for n in range(50))
    >>> rows = [{"id": "a", "text": text}, {"id": "b", "text": "something else"}, {"id": "c", "text": text + " and more"}]
    >>> found = doppel.dedup(rows)
    >>> found.select(["id", "status", "duplicate_of", "kept"]).to_pylist()
    [{'id': 'a', 'status': 'winner', 'duplicate_of': None, 'kept': True},
     {'id': 'b', 'status': 'unique', 'duplicate_of': None, 'kept': True},
     {'id': 'c', 'status': 'duplicate', 'duplicate_of': 'a', 'kept': False}]
    """
    require_known("dedup", "dedup", dedup, DEDUP, (*_PARAMETERS, *_RESULT, *_OF_FILES))
    if reference_only and reference is None:
        raise ValueError("reference_only=True compares rows with a reference: give reference=")
    if reference is not None and (latest or dedup.get("data") is not None or dedup.get("report") is not None):
        raise ValueError("reference= has no use with latest=, data= or report=")
    from . import results, sources, summary
    from .fields import Fields
    from .rows import Rows

    steps = Progress(progress)
    parameters = {"tau": tau, "policy": policy, "latest": latest, **dedup}
    folds = latest or parameters.get("data") is not None
    named = sources.inputs(source)
    beside = None if reference is None else sources.inputs(reference)
    if named is not None and sources.program_reads(named):
        if reference is not None and (beside is None or not sources.program_reads(beside)):
            raise ValueError("what the program reads by itself needs a reference that it reads by itself, too")
        # A pattern stays one reference.
        parameters |= {"reference": _paths(reference), "reference_only": reference_only}
        _refuse(parameters, _RESULT)
        if popularity is not None:
            raise ValueError("popularity= names a column of rows, and what the program reads by itself has none")
        parameters |= {f"{name}_field": field for name, field in zip(_FIELDS, (text, html, id, url, date), strict=True)}
        with held(), tempfile.TemporaryDirectory(prefix="doppel-", dir=scratch) as folder:
            out = Path(folder) / "pages.jsonl"
            told, bad = _run(named, out, parameters, steps)
            _warn_of_bad(sum(_bad_counts(told).values()), bad)
            _warn_of_quarantine(told)
            return results.by_url(out, folds=folds).replace_schema_metadata({"doppel": told})
    _refuse(parameters, _RESULT | _OF_FILES)
    with held(), tempfile.TemporaryDirectory(prefix="doppel-", dir=scratch) as folder:
        out, written, shown = (Path(folder) / name for name in ("pages.jsonl", "rows.jsonl", "report.html"))
        report = parameters.pop("report", None)
        protected = None
        if reference is not None:
            protected = _reference(reference, beside, Fields(text, html, id, url, date, popularity), Path(folder))
            parameters |= {"reference": str(protected[0]), "reference_only": reference_only}
        with written.open("wb", buffering=1 << 20) as file:
            rows = Rows(file, stay=parameters.get("data") is not None, folds=folds)
            for chunk in sources.chunks(source, named, Fields(text, html, id, url, date, popularity)):
                rows.write(chunk)
                steps.going_on(f"{rows.count:,} rows read")
        steps.done(f"{rows.count:,} rows read")
        if rows.written == 0:
            _warn_of_repeated(rows.repeated)
            _warn_of_bad(rows.count, rows.reasons)
            out.touch()
            return results.by_row(out, rows, named, protected)
        # Bad rows are told of, however many there are.
        told, bad = _run([str(written)], out, {**parameters, "report": report and shown, "max_bad": 1}, steps)
        unprotected = sum(one["bad"] for one in msgspec.json.decode(told).get("references", []))
        if unprotected:
            raise ValueError(f"rows of the reference that cannot be read: {unprotected}; {'; '.join(bad)}")
        refused = sum(_bad_counts(told).values())
        said = rows.reasons + (summary.reasons(bad, rows) if refused else [])
        _warn_of_bad(rows.count - rows.written + refused, said)
        _warn_of_quarantine(told)
        _warn_of_repeated(rows.repeated)
        ids = rows.ids()
        if report is not None:
            summary.write_report(shown, Path(report), rows, ids)
        metadata = {"doppel": summary.of_rows(told, rows, ids)}
        return results.by_row(out, rows, named, protected).replace_schema_metadata(metadata)


def decontaminate(train: Source, reference: Source, **parameters: Any) -> pa.Table:
    """Finds the rows of `train` that are near-duplicates of a row of `reference`, such as an evaluation set.

    Takes the parameters of `dedup`, and gives its result. Nothing but near-duplicates of the reference has the status `duplicate`; all
    other rows are kept, whether or not they are near-duplicates of each other.

    >>> import doppel
    >>> text = " ".join(f"word{n}" for n in range(50))
    >>> train = [{"id": "a", "text": text + " and more"}, {"id": "b", "text": "something else"}]
    >>> found = doppel.decontaminate(train, [{"id": "question", "text": text}])
    >>> found.select(["id", "kept", "duplicate_of", "reference_row"]).to_pylist()
    [{'id': 'a', 'kept': False, 'duplicate_of': 'question', 'reference_row': 0},
     {'id': 'b', 'kept': True, 'duplicate_of': None, 'reference_row': None}]
    """
    return dedup(train, reference=reference, reference_only=True, **parameters)


def _paths(source: Any) -> list[str]:
    """The paths and patterns of a source that the program reads by itself, as they are given."""
    given = source if isinstance(source, (list, tuple)) else [source]
    return [os.fspath(one) for one in given if one is not None]


def _reference(source: Source, named: Any, fields: Any, folder: Path) -> tuple[Path, Any]:
    """Writes the rows of a reference as lines for the program. Gives the file and the rows. A bad row is an error, because it would
    protect nothing.
    """
    from . import sources
    from .rows import Rows

    written = folder / "reference.jsonl"
    with written.open("wb", buffering=1 << 20) as file:
        rows = Rows(file)
        for chunk in sources.chunks(source, named, fields):
            rows.write(chunk)
    if rows.count == 0:
        raise ValueError("the reference has no rows, so it would protect nothing")
    if rows.written < rows.count:
        raise ValueError(
            f"rows of the reference that cannot be read: {rows.count - rows.written}; {'; '.join(rows.reasons)}"
        )
    _warn_of_repeated(rows.repeated)
    return written, rows


_FIELDS = ("text", "html", "id", "url", "date")
_PARAMETERS = (*_FIELDS, "popularity", "latest", "reference", "reference_only", "progress", "tau", "policy", "scratch")
_RESULT = {
    "out": "the result is the table",
    "json": "the summary is in the metadata of the table",
}
_OF_FILES = {
    **{f"{name}_field": f"give {name}=" for name in _FIELDS},
    "bad": "bad rows have the status `bad`, and a warning says why",
    "strict": "`warnings.simplefilter('error', doppel.BadRows)` makes bad rows an error",
    "max_bad": "`warnings.simplefilter('error', doppel.BadRows)` makes bad rows an error",
    "kept": "`table.filter(found['kept'])` is what is kept",
    "removed": "`table.filter(pyarrow.compute.invert(found['kept']))` is what is removed",
    "superseded": "the result has the status `superseded`",
    "annotate": "the result has these columns",
    "pairs": "the result names the first such row of the reference",
    "separator": "the first row of a file shows it, or a line such as sep=; in front",
    "format": "the ending of a file's name says what it is",
    "prune": "it is for directories of pages",
    "read_again": "rows are read each time",
    "zstd_window_max": "files of rows are read by pyarrow, which takes windows of up to 128 MiB: recompress the file",
}


def _refuse(parameters: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Raises `ValueError` for options that mean nothing here."""
    for name, value in parameters.items():
        why = refused.get(name.strip("_").replace("-", "_"))
        if why is not None and value is not None and value is not False:
            raise ValueError(f"{name}= is an option of the program that has no use here: {why}")
    if parameters.get("report") == "-":
        raise ValueError("report= is the path of a file to write")


def _run(inputs: list[str], out: Path, parameters: dict[str, Any], steps: Progress) -> tuple[bytes, list[str]]:
    """Runs the program. Gives its summary, as JSON, and the last lines that it wrote."""
    log = out.with_suffix(".log")
    command = [str(program()), "dedup", "--json", "--out", str(out), *options(parameters), "--", *inputs]
    with log.open("wb") as errors:
        code, told = _wait(command, errors, steps)
    if code != 0:
        raise ProgramError(f"`doppel dedup` ended with code {code}", code, last_lines(log))
    steps.done("grouped")
    return told.strip(), last_lines(log)


def _wait(command: list[str], errors: BinaryIO, steps: Progress) -> tuple[int, bytes]:
    """Runs a command to its end. Gives its code and what it wrote on standard output."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            while True:
                try:
                    told, _ = process.communicate(timeout=_LOOK_SECONDS if steps.shown else None)
                    return process.returncode, told
                except subprocess.TimeoutExpired:
                    steps.going_on(f"grouping, {steps.seconds:.0f} s")
        except BaseException:
            # As `subprocess.run` does: nobody waits for it any more.
            process.kill()
            raise


def _bad_counts(told: bytes) -> Mapping[str, int]:
    return cast("Mapping[str, Any]", msgspec.json.decode(told))["input"]["bad"]


def _warn_of_quarantine(told: bytes) -> None:
    """Warns of groups of which all rows are kept, if there are any."""
    summary = cast("Mapping[str, Any]", msgspec.json.decode(told))
    if summary.get("groups", {}).get("quarantined"):
        warnings.warn("\n".join(summary["warnings"]), Quarantined, stacklevel=3)


def _warn_of_repeated(repeated: Mapping[int, str]) -> None:
    """Warns of files in which a guessed id repeats."""
    if repeated:
        first = next(iter(repeated.values()))
        more = f", and so it is in {len(repeated) - 1} more files" if len(repeated) > 1 else ""
        text = f"the column id is no id, and rows are called by their numbers: {first}{more}. id= names the column of the ids"
        warnings.warn(text, RepeatedIds, stacklevel=3)


def _warn_of_bad(count: int, reasons: list[str]) -> None:
    """Warns of bad rows, if there are any."""
    if count:
        more = [f"and {count - LINES_SHOWN} more"] if count > LINES_SHOWN else []
        said = "\n".join([*reasons[:LINES_SHOWN], *more])
        warnings.warn(f"{count} rows could not be read:\n{said}", BadRows, stacklevel=3)
