"""The way without code: WARC files are loaded, and the feed says what changed."""

from __future__ import annotations

import json
import subprocess
from io import BytesIO
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import doppel
from changing_site import words

SITE = "https://www.example.org/"


def crawl(path: Path, day: int, pages: list[tuple[str, int, str]]) -> None:
    """Writes a WARC file with pages: path, HTTP status, and text or target."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for name, status, content in pages:
            headers = [("Location", content)] if status == 301 else [("Content-Type", "text/plain; charset=utf-8")]
            body = b"" if status == 301 else content.encode()
            http = StatusAndHeaders(str(status), headers, protocol="HTTP/1.1")
            date = {"WARC-Date": f"2026-01-{day:02}T08:00:00Z"}
            record = writer.create_warc_record(
                SITE + name, "response", payload=BytesIO(body), http_headers=http, warc_headers_dict=date
            )
            writer.write_record(record)


def test_two_crawls(tmp_path: Path) -> None:
    first, second = tmp_path / "segment-001.warc.gz", tmp_path / "segment-002.warc.gz"
    same = words("same", 0)
    crawl(first, 1, [("a", 200, same), ("b", 200, same), ("c", 200, words("c", 0)), ("d", 200, words("d", 0))])
    crawl(second, 2, [("b", 200, words("new", 0)), ("c", 301, SITE + "a"), ("d", 404, "not here")])
    with doppel.Server() as server:

        def run(*command: object) -> str:
            arguments = [doppel.program(), *command, "--server", server.url]
            return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout

        def changes(*options: str) -> tuple[dict[str, str], str]:
            lines = [json.loads(line) for line in run("changes", "--json", *options).splitlines()]
            told = {one["url"].removeprefix(SITE): one["status"] for line in lines for one in line["changes"]}
            return told, lines[-1]["cursor"]

        run("load", "--flush", first)
        told, cursor = changes()
        assert told == {"a": "winner", "b": "duplicate", "c": "unique", "d": "unique"}
        run("load", "--flush", second)
        told, cursor = changes("--cursor", cursor)
        assert told == {"b": "unique", "c": "duplicate", "d": "dead"}
        run("load", "--flush", second)
        assert changes("--cursor", cursor)[0] == {}
        gone = tmp_path / "gone.txt"
        gone.write_text(SITE + "b\n")
        run("delete", "--file", gone)
        assert changes("--cursor", cursor)[0] == {"b": "dead"}
