"""`doppel.dedup` on every kind of source, against results that are known."""

from __future__ import annotations

import gzip
import json
import warnings
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import doppel
from texts import text

COUNT = 2_500
COLUMNS = ["id", "status", "group", "winner", "duplicate_of", "similarity", "kept"]


def rows(count: int = COUNT) -> list[dict[str, Any]]:
    """Rows of which each third one is a near-duplicate of the one before."""
    return [
        {"id": f"r{n}", "text": text(f"t{n - 1 if n % 3 == 2 else n}x", words=60, changed=int(n % 3 == 2)), "n": n}
        for n in range(count)
    ]


def expected(count: int = COUNT) -> list[tuple[str, str, str | None, bool]]:
    status = ["unique", "winner", "duplicate"]
    found = [(f"r{n}", status[n % 3], f"r{n - 1}" if n % 3 == 2 else None, n % 3 != 2) for n in range(count)]
    if count % 3 == 2:
        found[-1] = (f"r{count - 1}", "unique", None, True)
    return found


def told(found: pa.Table) -> list[tuple[Any, ...]]:
    wanted = found.select(["id", "status", "duplicate_of", "kept"]).to_pylist()
    return [tuple(row.values()) for row in wanted]


def test_every_table_gives_the_same() -> None:
    given = rows()
    table = pa.Table.from_pylist(given)
    found = doppel.dedup(table)
    assert told(found) == expected()
    assert found.schema.names == [*COLUMNS, "winner_row", "duplicate_of_row"]
    assert table.filter(found["kept"]).num_rows == sum(row[3] for row in expected())
    summary = json.loads(found.schema.metadata[b"doppel"])
    assert summary["policy"] == "jaccard:tau=0.8"
    others = [
        given,
        iter(given),
        pandas.DataFrame(given),
        polars.DataFrame(given),
        table.to_reader(max_chunksize=70),
        table.combine_chunks().to_batches()[0],
        table.slice(0, 10).to_batches()[0],
    ]
    for other in others[:-1]:
        assert doppel.dedup(other).to_pylist() == found.to_pylist(), type(other)
    assert told(doppel.dedup(others[-1])) == expected(10)


def test_every_file_gives_the_same(tmp_path: Path) -> None:
    given = rows()
    table = pa.Table.from_pylist(given)
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=300)
    with pa.ipc.new_stream(str(tmp_path / "stream.arrow"), table.schema) as stream:
        stream.write_table(table)
    csv.write_csv(table, tmp_path / "rows.csv")
    csv.write_csv(table, tmp_path / "rows.tsv", csv.WriteOptions(delimiter="\t"))
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in given)
    (tmp_path / "rows.jsonl").write_bytes(lines)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines))
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 7
    for path in paths:
        assert told(doppel.dedup(path)) == expected(), path
    both = doppel.dedup([tmp_path / "rows.parquet", str(tmp_path / "rows.jsonl")])
    assert both.num_rows == 2 * COUNT
    assert set(both["status"].to_pylist()[COUNT:]) == {"duplicate"}


def test_rows_without_ids_are_called_by_their_numbers() -> None:
    given = [{"content": row["text"]} for row in rows(6)]
    found = doppel.dedup(given)
    assert found["id"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert found["duplicate_of"].to_pylist() == [None, None, 1, None, None, 4]
    assert found["winner"].to_pylist() == [None, 1, 1, None, 4, 4]
    similar = found["similarity"][2].as_py()
    assert similar == pytest.approx(55 / 65, abs=0.03)
    strict = doppel.dedup(given, tau=0.95)
    assert strict["status"].to_pylist() == ["unique"] * 6
    other = doppel.dedup(given, policy="simhash")
    assert json.loads(other.schema.metadata[b"doppel"])["policy"].startswith("simhash")


def test_columns_are_named_also_nested_ones() -> None:
    given = [{"body": {"main": row["text"], "key": row["n"]}} for row in rows(6)]
    for source in (given, pa.Table.from_pylist(given)):
        found = doppel.dedup(source, text="body.main", id="body.key")
        assert found["duplicate_of"].to_pylist() == [None, None, 1, None, None, 4]
    pages = [{"page": f"<p>{row['text']}</p>"} for row in rows(3)]
    assert doppel.dedup(pages, html="page")["kept"].to_pylist() == [True, True, False]
    with pytest.raises(ValueError, match="there is no column words"):
        doppel.dedup(given, text="words")
    with pytest.raises(ValueError, match="name the column with the text"):
        doppel.dedup([{"words": "a"}])


def test_urls_have_versions_and_win() -> None:
    a, b = text("a"), text("b")
    given = [
        {"u": "https://a.example/long/path", "text": a, "at": "2024-05-01T08:00:00Z"},
        {"u": "https://a.example/x#part", "text": b, "at": "2024-05-01T08:00:00Z"},
        {"u": "https://a.example/x", "text": a, "at": "2024-05-01T08:00:00Z"},
        {"u": "https://a.example/x", "text": b, "at": "2023-05-01T08:00:00Z"},
        {"u": None, "text": a, "at": "2024-05-01T08:00:00Z"},
        {"u": "not a URL", "text": b, "at": None},
    ]
    for source in (given, pa.Table.from_pylist(given), pandas.DataFrame(given)):
        found = doppel.dedup(source, url="u", date="at", latest=True)
        status = found["status"].to_pylist()
        assert status == ["duplicate", "superseded", "winner", "superseded", "duplicate", "unique"]
        assert found["winner"].to_pylist() == [2, None, 2, None, 2, None]
        assert found["kept"].to_pylist() == [False, False, True, False, False, True]
        records = json.loads(found.schema.metadata[b"doppel"])["records"]
        assert records == {"read": 6, "kept": 2, "removed": {"duplicate": 2}, "superseded": 2, "bad": 0, "skipped": 0}


def test_rows_of_one_url_are_judged_each_on_its_own() -> None:
    a, b = text("a"), text("b")
    given = [{"u": "https://a.example/x", "text": words} for words in (a, b, a, None)]
    with pytest.warns(doppel.BadRows):
        found = doppel.dedup(given, url="u")
    assert found["status"].to_pylist() == ["winner", "unique", "duplicate", "bad"]
    assert found["duplicate_of"].to_pylist() == [None, None, 0, None]
    records = json.loads(found.schema.metadata[b"doppel"])["records"]
    assert records == {"read": 4, "kept": 2, "removed": {"duplicate": 1}, "bad": 1, "skipped": 0}


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("2024-05-01T08:00:00Z", "2024-05-02T08:00:00+02:00"),
        ("2024-05-01", "2024-05-02"),
        (date(2024, 5, 1), date(2024, 5, 2)),
        (datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC)),
        (datetime(2024, 5, 1), datetime(2024, 5, 2)),
        (1_714_521_600, 1_714_608_000),
        (1_714_521_600_000, 1_714_608_000_000),
        (1_714_521_600.5, 1_714_608_000.5),
        ("1714521600", "1714608000"),
        (pandas.Timestamp("2024-05-01 00:00:00.000000001"), pandas.Timestamp("2024-05-02")),
    ],
)
def test_the_earlier_day_wins(early: object, late: object) -> None:
    given = [{"text": text("a"), "seen": late}, {"text": text("a"), "seen": early}]
    for source in (given, pa.Table.from_pylist(given), pandas.DataFrame(given)):
        assert doppel.dedup(source, date="seen")["winner"].to_pylist() == [1, 1], type(source)
        assert doppel.dedup(source)["winner"].to_pylist() == [0, 0]


@pytest.mark.parametrize("wrong", [5, -1, True, "yesterday", "2999-01-01", 1e300])
def test_what_is_no_date_makes_a_bad_row(wrong: object) -> None:
    given = [{"text": "a", "seen": wrong}, {"text": "b", "seen": None}, {"text": "c", "seen": float("nan")}]
    with pytest.warns(doppel.BadRows, match="1 rows could not be read"):
        assert doppel.dedup(given, date="seen")["status"].to_pylist() == ["bad", "unique", "unique"]


def test_what_cannot_be_read_is_one_bad_row(tmp_path: Path) -> None:
    given = [{"text": text("a")}, {"text": None}, {"text": 7}, {"text": text("a")}, {"n": 1}, {"text": ""}]
    with pytest.warns(
        doppel.BadRows, match='3 rows could not be read:\nrow 1: "text": missing\nrow 2: "text": is a number'
    ):
        found = doppel.dedup(given)
    assert found["status"].to_pylist() == ["winner", "bad", "bad", "duplicate", "bad", "unique"]
    assert found["kept"].to_pylist() == [True, False, False, False, False, True]
    summary = json.loads(found.schema.metadata[b"doppel"])
    assert summary["input"]["bad"] == {"row that is no page": 3}
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "one"}\nno JSON\n\n[1]\n{"text": "two\xff"}\n{"text": "\\ud800"}\n{"text": "two"}\n')
    with pytest.warns(doppel.BadRows, match="3 rows could not be read:\nrow 1: rows.jsonl, line 2: ") as told:
        assert doppel.dedup(path)["status"].to_pylist() == ["unique", "bad", "bad", "bad", "unique", "unique"]
    assert "row 3: rows.jsonl, line 5: 'utf-8' codec can't decode" in str(told[0].message)
    with pytest.warns(doppel.BadRows, match="is not UTF-8"):
        assert doppel.dedup([{"text": "\ud800"}, {"text": b"\xff"}, {"text": b"a"}])["kept"].to_pylist() == [1, 0, 1]


@pytest.mark.parametrize("good", [0, 10])
def test_however_many_rows_are_bad_there_is_a_result(good: int) -> None:
    given = [{"text": text(f"a{n}")} for n in range(good)] + [{"text": 3}] * 30
    with pytest.warns(doppel.BadRows, match="30 rows could not be read"):
        found = doppel.dedup(given)
    assert found["status"].to_pylist() == ["unique"] * good + ["bad"] * 30
    with warnings.catch_warnings():
        warnings.simplefilter("error", doppel.BadRows)
        with pytest.raises(doppel.BadRows):
            doppel.dedup(given)


def test_ids_name_one_row() -> None:
    """As the program has it: a repeated id is a bad record, and a record without one is named by its row."""
    same = text("a")
    given = [{"id": id, "text": same} for id in ("a", None, "b", "a", "")]
    for source in (given, pa.Table.from_pylist(given), polars.DataFrame(given)):
        with pytest.warns(doppel.BadRows, match="row 3: an earlier row has the id a"):
            found = doppel.dedup(source, id="id")
        assert found["id"].to_pylist() == ["a", "row=1", "b", "a", "row=4"]
        assert found["status"].to_pylist() == ["winner", "duplicate", "duplicate", "bad", "duplicate"]
        # A column that is guessed is no id then.
        with pytest.warns(doppel.RepeatedIds, match="row 3 has the id of an earlier row, a"):
            found = doppel.dedup(source)
        assert found["id"].to_pylist() == [0, 1, 2, 3, 4]
        assert found["status"].to_pylist() == ["winner", *["duplicate"] * 4]
    found = doppel.dedup([{"id": id, "text": same} for id in (None, 7)])
    assert (found["id"].to_pylist(), found["duplicate_of"].to_pylist()) == (["row=0", "7"], [None, "row=0"])
    mixed = doppel.dedup([{"id": id, "text": same} for id in (1, "a", 2**70)])
    assert mixed["id"].to_pylist() == ["1", "a", str(2**70)]
    urls = [{"id": "a", "u": f"https://a.example/{n}", "text": same} for n in (1, 1, 2)]
    assert doppel.dedup(urls, url="u")["status"].to_pylist() == ["winner", "duplicate", "duplicate"]
    with pytest.warns(doppel.BadRows, match='"id": is a list, and has to be text or a whole number'):
        assert doppel.dedup([{"id": [1], "text": same}, {"id": "a", "text": same}])["kept"].to_pylist() == [False, True]


def test_odd_values_cost_their_rows_alone() -> None:
    same = text("a")
    good = {"id": "b", "text": same}
    for id, reason in (
        ("a\udcff", "is text with a lone surrogate"),
        (b"a", "is a bytes"),
        (1.5, "is a number"),
        (True, "is a boolean"),
        (10**2000, "more than 1000 digits"),
    ):
        with pytest.warns(doppel.BadRows, match=f'row 0: "id": .*{reason}'):
            found = doppel.dedup([{"id": id, "text": same}, good])
        assert found["status"].to_pylist() == ["bad", "unique"], id
    for id in (float("nan"), None, "", "a\0b", 2**70, -(2**80)):
        assert doppel.dedup([{"id": id, "text": same}, good])["kept"].to_pylist() == [True, False], id
    odd = {"id": "a", "text": same, "te\udcffxt": "\ud800", "x": float("nan"), "y": {"z": "\ud800"}}
    assert doppel.dedup([odd, good])["kept"].to_pylist() == [True, False]
    # A lone surrogate in a text is read as U+FFFD, which is no part of a word, and counted.
    found = doppel.dedup([{"id": "a", "text": f"\ud800 {same}"}, good])
    assert found["kept"].to_pylist() == [True, False]
    assert json.loads(found.schema.metadata[b"doppel"])["input"]["mended_texts"] == 1
    with pytest.warns(doppel.BadRows, match="the URL is not UTF-8"):
        found = doppel.dedup(
            [{"u": "https://a.example/\ud800", "text": same}, {"u": "https://a.example/", "text": same}], url="u"
        )
    assert found["status"].to_pylist() == ["bad", "unique"]
    with pytest.warns(doppel.BadRows, match="the date is"):
        assert doppel.dedup([{"d": "\ud800", "text": same}, {"d": "2024-01-01", "text": same}], date="d")[
            "status"
        ].to_pylist() == ["bad", "unique"]


def test_texts_may_be_in_several_columns_and_lists() -> None:
    words = text("a").split()
    talk = [{"role": "user", "content": " ".join(words[:9])}, {"role": "tool"}, {"content": " ".join(words[9:])}]
    rows = [
        {
            "id": "a",
            "title": words[0],
            "body": " ".join(words[1:]),
            "messages": talk,
            "tags": [" ".join(words[:5]), None, " ".join(words[5:])],
        },
        {
            "id": "b",
            "title": None,
            "body": " ".join(words),
            "messages": [{"content": " ".join(words)}],
            "tags": [" ".join(words)],
        },
    ]
    for source in (rows, pa.Table.from_pylist(rows), pandas.DataFrame(rows)):
        for name in ("title,body", "messages[].content", "tags[]", "title, body"):
            found = doppel.dedup(source, text=name)
            assert found["kept"].to_pylist() == [True, False], (type(source), name)
    with pytest.warns(
        doppel.BadRows, match=r'"tags": is a list, and has to be text; text=tags\[\] takes the texts in it'
    ):
        assert doppel.dedup(rows, text="tags")["status"].to_pylist() == ["bad", "bad"]
    with pytest.raises(ValueError, match="there is no column bodi, only"):
        doppel.dedup(rows, text="title,bodi")
    whole = [{"title,body": words[0], "title": "x", "body": "y"}, {"title,body": words[0], "title": "z", "body": "w"}]
    assert doppel.dedup(whole, text="title,body")["kept"].to_pylist() == [True, False]
    none = doppel.dedup([{"id": n, "text": text("a"), "url": "x"} for n in (7, 7)], id="none", url="none", date="none")
    assert none["id"].to_pylist() == [0, 1]


def test_nothing_gives_an_empty_table() -> None:
    assert doppel.dedup([]).num_rows == 0
    assert doppel.dedup(pandas.DataFrame({"text": []})).schema.names[:-2] == COLUMNS


def test_the_program_s_refusal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(doppel.ProgramError, match="tau") as raised:
        doppel.dedup([{"text": "a"}], tau=7)
    assert raised.value.code == 2
    with pytest.raises(ValueError, match="not a file of rows"):
        doppel.dedup(tmp_path / "rows.xlsx")
    with pytest.raises(FileNotFoundError):
        doppel.dedup(tmp_path / "rows.jsonl")


def test_directories_are_read_by_the_program(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(text("same"))
    found = doppel.dedup(tmp_path)
    assert found["kept"].to_pylist() == [True, False, False]
    assert found["id"][0].as_py() == (tmp_path / "a.txt").as_uri()


def test_the_most_popular_row_of_a_group_wins(tmp_path: Path) -> None:
    words = text("p", words=60)
    given = [{"id": "a", "text": words, "links": 3}, {"id": "b", "text": words, "links": 4_000.5}]
    given.append({"id": "c", "text": words, "links": None})
    frame = pandas.DataFrame(given)
    parquet.write_table(pa.Table.from_pylist(given), tmp_path / "rows.parquet")
    csv.write_csv(pa.Table.from_pylist(given), tmp_path / "rows.csv")
    nested = [{"id": row["id"], "text": words, "meta": {"links": row["links"]}} for row in given]
    for source, name in [
        (given, "links"),
        (frame, "links"),
        (tmp_path / "rows.parquet", "links"),
        (tmp_path / "rows.csv", "links"),
        (nested, "meta.links"),
    ]:
        found = doppel.dedup(source, popularity=name)
        assert set(found["winner"].to_pylist()) == {"b"}, source
    assert set(doppel.dedup(given)["winner"].to_pylist()) == {"a"}
    with pytest.raises(ValueError, match="there is no column linx"):
        doppel.dedup(given, popularity="linx")
    with pytest.raises(ValueError, match="popularity= names a column"):
        doppel.dedup(tmp_path, popularity="links")


@pytest.mark.parametrize(
    ("popularity", "reason"),
    [
        (-1, "the popularity is -1, and has to be finite"),
        (float("inf"), "the popularity is inf, and has to be finite"),
        (10**400, "has to be a number"),
        ("many", "the popularity is 'many', and has to be a number"),
        (True, "the popularity is a boolean"),
        ([1], "the popularity is a list"),
    ],
)
def test_what_is_no_popularity_makes_a_bad_row(popularity: Any, reason: str) -> None:
    words = text("q", words=60)
    given = [{"text": words, "links": popularity}, {"text": words, "links": 0}, {"text": words, "links": float("nan")}]
    with pytest.warns(doppel.BadRows, match=reason):
        found = doppel.dedup(given, popularity="links")
    assert found["status"].to_pylist() == ["bad", "winner", "duplicate"]


def test_progress_is_told_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = doppel.dedup(rows(300))
    assert capsys.readouterr() == ("", "")
    shown = doppel.dedup(rows(300), progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()
    assert first.startswith("doppel: 300 rows read in ")
    assert second.startswith("doppel: grouped in ")
    assert shown.to_pylist() == quiet.to_pylist()
