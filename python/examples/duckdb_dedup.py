"""Near-duplicates of what a query of DuckDB gives: `python duckdb_dedup.py FILES KEPT.parquet`. Tried with DuckDB 2.0.

FILES is what DuckDB reads, such as `'crawl/*.parquet'`, with the columns `id` and `text`.
"""

from __future__ import annotations

import sys

import duckdb

import doppel


def main(files: str, target: str) -> None:
    con = duckdb.connect()
    con.sql(f"create view documents as select * from '{files}'")
    # The rows are streamed, and the result is an Arrow table that SQL can name.
    found = doppel.dedup(con.sql("select id, text from documents"))
    con.register("found", found)
    con.sql(f"copy (select d.* from documents d join found using (id) where kept) to '{target}'")
    groups = 'select "group", count(*) as rows, max(similarity) as most from found group by all having rows > 1'
    con.sql(f"{groups} order by rows desc limit 10").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
