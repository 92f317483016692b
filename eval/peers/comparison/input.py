"""Input of the comparison: pages of crawls as text, in the words that all tools compare."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from comparison.words import words


@dataclass
class Input:
    """Pages as JSON lines with `url` and `text`, in one file and in several files."""

    file: Path
    parts: Path
    """Directory with the lines of `file`, in one file per thread."""
    part_rows: list[int]
    rows: int
    bytes: int
    words: int
    digest: str
    """SHA-256 of the file, in hex."""


def from_crawls(doppel_eval: Path, crawls: list[Path], pages: int | None, seed: int, folder: Path, threads: int) -> Input:
    """Extracts the text of crawls with `doppel-eval pages`, and writes the input into the folder.

    If `pages` is more than the crawls have, families of pages are made from them. `None` means all pages of the crawls.
    """
    raw = folder / "pages.jsonl"
    command = [doppel_eval, "pages", "--seed", str(seed), "--out", raw, "--from", *crawls]
    if pages is not None:
        command += ["--pages", str(pages)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    try:
        return from_lines(raw, folder, threads, pages)
    finally:
        raw.unlink()


def from_lines(lines: Path, folder: Path, threads: int, pages: int | None = None) -> Input:
    """Writes the input from JSON lines with `text`, at most `pages` of them. A line without a URL gets one made from its number.

    Blank lines are left out. Raises `ValueError` if a line has no text, or if a URL occurs twice.
    """
    written: list[str] = []
    urls: set[str] = set()
    count = 0
    with lines.open(encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            if pages is not None and len(written) == pages:
                break
            record = json.loads(line)
            if not isinstance(record, dict) or not isinstance(record.get("text"), str):
                raise ValueError(f"{lines}: line {number} has no text")
            url = record.get("url") or f"https://example.org/row/{number}"
            if url in urls:
                raise ValueError(f"{lines}: line {number} has the URL of an earlier line, {url}")
            urls.add(url)
            sequence = words(record["text"])
            count += len(sequence)
            written.append(json.dumps({"url": url, "text": " ".join(sequence)}, ensure_ascii=False) + "\n")
    file, parts = folder / "input.jsonl", folder / "parts"
    file.write_text("".join(written), encoding="utf-8")
    parts.mkdir(exist_ok=True)
    for old in parts.iterdir():
        old.unlink()
    part_rows = []
    for part in range(threads):
        own = written[len(written) * part // threads : len(written) * (part + 1) // threads]
        (parts / f"{part:05d}.jsonl").write_text("".join(own), encoding="utf-8")
        part_rows.append(len(own))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Input(file, parts, part_rows, len(written), file.stat().st_size, count, digest)
