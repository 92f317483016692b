"""What `doppel.dedup` reads beside the usual, and what it refuses."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
from pathlib import Path
from typing import Any, cast

import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import doppel
from texts import text

GIVEN: list[dict[str, Any]] = [{"id": f"r{n}", "text": text("a" if n < 2 else "b"), "n": n} for n in range(3)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in GIVEN)
DUPLICATES = [None, "r0", None]


def duplicates(source: Any, **parameters: Any) -> list[Any]:
    return doppel.dedup(source, **parameters)["duplicate_of"].to_pylist()


def zstd(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


@pytest.mark.parametrize(
    ("name", "pack"), [("gz", gzip.compress), ("zst", zstd), ("bz2", bz2.compress), ("xz", lzma.compress), ("", zstd)]
)
def test_files_may_be_compressed(name: str, pack: Any, tmp_path: Path) -> None:
    path = tmp_path / f"rows.jsonl.{name}".rstrip(".")
    at = LINES.index(b"\n") + 1
    path.write_bytes(pack(LINES[:at]) + pack(LINES[at:]))
    assert duplicates(path) == DUPLICATES
    torn = tmp_path / f"torn.jsonl.{name}".rstrip(".")
    torn.write_bytes(pack(LINES)[:-9])
    with pytest.raises(ValueError, match=torn.name):
        doppel.dedup(torn)
    with pa.ipc.new_stream(pa.OSFile(str(tmp_path / "plain"), "wb"), pa.Table.from_pylist(GIVEN).schema) as stream:
        stream.write_table(pa.Table.from_pylist(GIVEN))
    packed = tmp_path / "rows.arrows"
    packed.write_bytes(pack((tmp_path / "plain").read_bytes()))
    assert duplicates(packed) == DUPLICATES


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_first_row_of_csv_shows_its_separator(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = ['"id"', "text"], ["7", '"one\r\ntwo, and; three\t"'], ["8", ""], ["9"], ["10", "four"], ["11", '"four"']
    path.write_bytes(b"\xef\xbb\xbf" + "".join(separator.join(row) + "\r\n" for row in rows).encode() + b"\n")
    with pytest.warns(doppel.BadRows, match='"text": missing\nrow 2: rows.csv, line 5: 1 cells under 2 names'):
        found = doppel.dedup(path)
    assert found["status"].to_pylist() == ["unique", "bad", "bad", "winner", "duplicate"]
    assert found["duplicate_of"].to_pylist() == [None, None, None, None, "10"]


def test_ids_of_csv_are_numbers_where_all_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,one\n22,two\n")
    assert doppel.dedup(path)["id"].to_pylist() == [1, 22]
    path.write_text('id,text\n01,one\n22,"two"')
    assert doppel.dedup(path)["id"].to_pylist() == ["01", "22"]


def test_a_stray_quote_costs_one_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,text\n1,one\n2,"two\n3,three\n')
    with pytest.warns(
        doppel.BadRows, match=r"row 1: rows.csv, line 3: the quote that begins in line 3 is never closed"
    ):
        assert doppel.dedup(path)["status"].to_pylist() == ["unique", "bad", "unique"]
    path.write_text('sep=,\nid,text\n1,"one\n2,two\n3,"three ""3"""\n4,"a"b\n5,c "d"\n6,"e\nf"\n')
    behind = "text behind the closing quote of a cell that begins in line 2"
    with pytest.warns(doppel.BadRows, match=f"row 0: rows.csv, line 3: {behind}\nrow 3: rows.csv, line 6: text behind"):
        assert doppel.dedup(path)["id"].to_pylist() == ["row=0", "2", "3", "row=3", "5", "6"]
    path.write_text('id,text\n1,"' + "line\n" * 100_001 + '"\n')
    with pytest.warns(doppel.BadRows, match="the quote that begins in line 2 is not closed within 100,000 lines"):
        assert doppel.dedup(path).num_rows == 100_002
    path.write_text("# made by x\nid,text\n1,one\n")
    with pytest.raises(ValueError, match="begins with a comment"):
        doppel.dedup(path)
    path.write_bytes(b"id,text\n1,one\n2,tw\xff\n")
    with pytest.warns(doppel.BadRows, match='row 1: "text": is not UTF-8'):
        assert doppel.dedup(path)["status"].to_pylist() == ["unique", "bad"]


def test_json_of_python_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "text": "one", "q": NaN}\n{"id": 2, "text": "two", "q": [-Infinity, "\\ud800"]}\n')
    assert doppel.dedup(path)["status"].to_pylist() == ["unique", "unique"]


def test_patterns_name_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "deep/c.jsonl", ".hidden.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"id": name[0], "text": text("a")}) + "\n")
    assert doppel.dedup(str(tmp_path / "*.jsonl"))["id"].to_pylist() == ["a", "b"]
    assert doppel.dedup([tmp_path / "**" / "*.jsonl"])["id"].to_pylist() == ["a", "b", "d"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        doppel.dedup(str(tmp_path / "*.csv"))


def test_ids_of_other_files_may_be_equal(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(LINES)
    found = doppel.dedup([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert found["kept"].to_pylist() == [True, False, True, False, False, False]


def test_the_text_is_where_most_first_rows_have_one(tmp_path: Path) -> None:
    given = [{"text": None, "content": row["text"], "id": row["id"]} for row in GIVEN]
    table = pa.Table.from_pylist(given).cast(
        pa.schema([("text", pa.string()), ("content", pa.string()), ("id", pa.string())])
    )
    parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    others = [given, table, pandas.DataFrame(given), tmp_path / "rows.parquet", tmp_path / "rows.jsonl"]
    for source in others:
        assert duplicates(source) == DUPLICATES, type(source)
    # What is named is read nowhere else; otherwise `text` and HTML are read where the guessed column has nothing.
    mixed = [{"content": text("a"), "text": None, "html": None}] * 2
    mixed += [{"text": text("a")}, {"content": "", "html": f"<p>{text('a')}</p>"}]
    for source in (mixed, pa.Table.from_pylist(mixed), pandas.DataFrame(mixed)):
        assert duplicates(source) == [None, 0, 0, 0]
    with pytest.warns(doppel.BadRows, match="1 rows"):
        found = doppel.dedup(mixed, text="content", html="html")
    assert found["status"].to_pylist() == ["winner", "duplicate", "bad", "duplicate"]


def test_frames_and_columns_of_every_kind() -> None:
    columns = {name: [row[name] for row in GIVEN] for name in ("id", "text", "n")}
    for source in (columns, polars.LazyFrame(columns), polars.DataFrame(columns), pandas.DataFrame(columns)):
        assert duplicates(source) == DUPLICATES, type(source)
    texts = columns["text"]
    for source in (polars.Series(texts), pandas.Series(texts), pa.array(texts), pa.chunked_array([texts])):
        assert duplicates(source) == [None, 0, None], type(source)
    with pytest.warns(doppel.BadRows, match='row 1: "text": is a number'):
        assert doppel.dedup(pandas.DataFrame({"text": ["a", 7, None]}))["kept"].to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"text": "one row"}, r"give one row as \[row\]"),
        ({"text": ["a"], "id": [1, 2]}, "columns are of one length"),
        (["a text", "another"], "Texts are given as dictionaries"),
        ("-", "standard input"),
        (iter(["a text"]), "a row is a dictionary"),
        ([("a", "b")], "a row is a dictionary"),
        (7, "not int"),
        (b"abc", "not bytes"),
        (pa.table({"text": ["a"], "meta": ["b"]}), "there is no column meta.id"),
    ],
)
def test_what_is_no_source_is_refused(source: Any, message: str) -> None:
    parameters: Any = {"id": "meta.id"} if isinstance(source, pa.Table) else {}
    with pytest.raises((ValueError, TypeError), match=message):
        doppel.dedup(source, **parameters)


@pytest.mark.parametrize(
    "option",
    [
        "out",
        "json",
        "bad",
        "kept",
        "removed",
        "annotate",
        "superseded",
        "format",
        "text_field",
        "strict",
        "max_bad",
        "max-bad",
        "prune",
        "zstd_window_max",
    ],
)
def test_options_that_would_collide_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}= is an option of the program that has no use here"):
        doppel.dedup(GIVEN, **cast("Any", {option: True}))
    assert doppel.dedup(GIVEN, **cast("Any", {option: None})).num_rows == 3


def test_the_report_and_the_summary_have_ids(tmp_path: Path) -> None:
    given = [{"id": f"<{row['id']}>", "text": row["text"]} for row in GIVEN]
    found = doppel.dedup(given, report=tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "&lt;r0&gt;" in report
    assert "&lt;r1&gt;" in report
    assert "rows#" not in report
    assert json.loads(found.schema.metadata[b"doppel"])["largest"][0]["winner"] == "<r0>"
    numbered = doppel.dedup([{"text": row["text"]} for row in GIVEN])
    assert json.loads(numbered.schema.metadata[b"doppel"])["largest"][0]["winner"] == 0
    with pytest.raises(ValueError, match="report="):
        doppel.dedup(given, report="-")


def test_what_the_program_reads_has_the_names_of_columns_as_options(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    lines = [{"words": row["text"], "key": row["id"]} for row in GIVEN]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    found = doppel.dedup(folder, text="words", id="key", kept=tmp_path / "kept")
    assert found["id"].to_pylist() == [f"record:a.jsonl#r{n}" for n in range(3)]
    assert found["kept"].to_pylist() == [True, False, True]
    assert (tmp_path / "kept").is_dir()
    # Records are named by their own ids and files, too.
    file = str(folder / "a.jsonl")
    places = {"row": None, "byte": None, "unpacked_byte": None}
    named: Any = [{"file": file, "id": f"r{n}", "line": n + 1, **places} for n in range(3)]
    assert found["record"].to_pylist() == named
    assert found["duplicate_of_record"].to_pylist() == [None, named[0], None]
    assert found["winner_record"].to_pylist() == [named[0], named[0], None]
    pages = doppel.dedup(folder, text="words", id="key", latest=True)
    assert pages.schema.names[-1] == "kept"
    with pytest.raises(ValueError, match="out= is an option"):
        doppel.dedup(folder, out="x")
    (tmp_path / "page.md").write_text(text("a"))
    assert doppel.dedup(tmp_path / "page.md")["status"].to_pylist() == ["unique"]
    with pytest.raises(ValueError, match="not read together"):
        doppel.dedup([folder, folder / "a.jsonl"])


def test_rows_that_stay_in_a_collection_have_names(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(ValueError, match="give id= or url="):
        doppel.dedup([{"text": "a"}], data=data)
    assert not data.exists()
    first = doppel.dedup(GIVEN, data=data).to_pylist()
    assert [row["duplicate_of"] for row in first] == DUPLICATES
    # A rerun is the same, and rows of another call are compared with them.
    assert doppel.dedup(GIVEN, data=data).to_pylist() == first
    others = [{"id": 7, "text": text("b")}, {"id": "ü=/ 8", "text": text("c")}, {"id": "9", "text": text("c")}]
    found = doppel.dedup(others, data=data, report=tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "ü=/ 8" in report
    assert "rows#" not in report
    assert found["id"].to_pylist() == ["7", "ü=/ 8", "9"]
    assert found["duplicate_of"].to_pylist()[0] == "r2"
    assert found["kept"].to_pylist() == [False, False, True], "without dates the shorter id wins"
    # A row whose id is known is a new version.
    changed = doppel.dedup([{"id": "r1", "text": text("d")}], data=data)
    assert changed["status"].to_pylist() == ["unique"]
    urls = [{"u": "https://a.example/", "text": text("e")}, {"u": None, "text": text("e")}]
    with pytest.warns(doppel.BadRows, match="row 1: has neither a URL nor an id"):
        found = doppel.dedup(urls, data=data, url="u")
    assert found["id"].to_pylist() == ["https://a.example/", "row=1"]
    again = doppel.dedup([{"u": "https://a.example/longer", "text": text("e")}], data=data, url="u")
    assert again["duplicate_of"].to_pylist() == ["https://a.example/"]


def test_ids_of_several_types_are_texts_where_they_have_to_be(tmp_path: Path) -> None:
    kinds = [pa.int32(), pa.int64(), pa.string()]
    for kind, id in zip(kinds, [1, 2, "3"], strict=True):
        table = pa.table({"id": pa.array([id], kind), "text": [text("a")]})
        parquet.write_table(table, tmp_path / f"{kind}.parquet")
    paths = [tmp_path / f"{kind}.parquet" for kind in kinds]
    assert doppel.dedup(paths[:2])["id"].to_pylist() == [1, 2]
    assert doppel.dedup(paths)["id"].to_pylist() == ["1", "2", "3"]
    ids = pa.array([b"\xff", None], pa.binary())
    assert doppel.dedup(pa.table({"id": ids, "text": ["a", "b"]}))["id"].to_pylist() == [str(b"\xff"), "row=1"]
    categories = pa.array(["x", "y"]).dictionary_encode()
    assert doppel.dedup(pa.table({"id": categories, "text": ["a", "b"]}))["id"].to_pylist() == ["x", "y"]
    numbers = pandas.DataFrame({"id": [1, 2], "text": ["a", "b"]})
    given = [{"id": numbers["id"].iloc[n], "text": numpy.str_("a")} for n in range(2)]
    assert doppel.dedup(given)["id"].to_pylist() == [1, 2]


def test_policies_by_site_need_urls() -> None:
    with pytest.raises(doppel.ProgramError, match="no host"):
        doppel.dedup(GIVEN, policy="by-site")
    given = [{"u": "https://a.example/", "text": text("a")}, {"u": None, "text": text("a")}]
    with pytest.warns(doppel.BadRows, match="row 1: the URL has no host"):
        assert doppel.dedup(given, url="u", policy="by-site")["status"].to_pylist() == ["unique", "bad"]


def test_many_bad_rows_at_the_beginning_do_not_hide_the_others() -> None:
    given = [{"text": None}] * 5_000 + [{"text": text("a")}] * 2
    with pytest.warns(doppel.BadRows, match="5000 rows could not be read(.|\n)*and 4980 more"):
        assert doppel.dedup(given)["status"].to_pylist()[-2:] == ["winner", "duplicate"]


def test_an_earlier_date_changes_nothing_in_a_collection(tmp_path: Path) -> None:
    new, old = ({"id": "a", "text": text(of), "at": at} for of, at in (("a", "2024-05-02"), ("b", "2024-05-01")))
    first = doppel.dedup([new, {"id": "b", "text": text("a")}], data=tmp_path / "data", date="at").to_pylist()
    again = doppel.dedup([old], data=tmp_path / "data", date="at").to_pylist()
    assert again == [first[0]], "what is told is the row on record"


MESSY = [
    {"content": text("a"), "key": "a", "at": "2024-05-02"},
    {"content": text("a"), "key": "b", "at": 1_714_550_400},
    {"content": "", "html": f"<p>{text('a')}</p>", "key": "c"},
    {"text": text("a"), "key": ""},
    {"content": None, "key": "d"},
    {"content": "", "key": "e"},
    {"content": 7, "key": "f", "text": text("a")},
    {"content": text("b"), "key": "a"},
    {"content": text("b"), "key": 7, "at": "yesterday"},
    {"content": text("b"), "key": 8, "at": "1714550400000"},
    {"content": text("b"), "key": 9.5},
    {"content": text("b"), "key": None, "at": ""},
]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_file_is_read_as_the_program_reads_it(kind: str, tmp_path: Path) -> None:
    path, out = tmp_path / f"rows.{kind}", tmp_path / "out.jsonl"
    if kind == "csv":
        names = ["content", "text", "html", "key", "at"]
        cells = [[str(row.get(name) or "") for name in names] for row in MESSY]
        path.write_text("".join(";".join(row) + "\n" for row in [names, *cells, ["too", "few"]]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in MESSY) + "no JSON\n")
    command = [
        doppel.program(),
        "dedup",
        "--max-bad",
        "1",
        "--id-field",
        "key",
        "--date-field",
        "at",
        "--out",
        out,
        path,
    ]
    subprocess.run(command, check=True, capture_output=True)
    pages = {page["url"].partition("#")[2]: page for page in map(json.loads, out.read_text().splitlines())}

    def called(name: str | None) -> str | None:
        """A row as Python calls it: the program counts from 1."""
        if name is None:
            return None
        id = name.partition("#")[2]
        return f"row={int(id.removeprefix('row=')) - 1}" if id.startswith("row=") else id

    with pytest.warns(doppel.BadRows):
        found = doppel.dedup(path, id="key", date="at").to_pylist()
    read = [row for row in found if row["status"] != "bad"]
    assert {row["id"] for row in read} == {called("#" + id) for id in pages}
    of_program = {called("#" + id): (page["status"], called(page["duplicate_of"])) for id, page in pages.items()}
    assert {row["id"]: (row["status"], row["duplicate_of"]) for row in read} == of_program
    assert len(found) == len(MESSY) + 1
