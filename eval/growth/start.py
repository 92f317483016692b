"""Measures how soon after its start a server answers and decides.

    python3 eval/growth/start.py DIR URL [--program doppel] [--starts 2]

DIR is a data directory, and URL a page in it. For each start, one line is printed: the seconds until the first answer
to a question for the status of the page, those until a new page is decided, and the server's memory 60 s after the
start. The question is asked every 20 ms, and then for the new page every 50 ms. A start takes at least 60 s. The
server is stopped after each one, so that the next start finds the files of a clean stop.
"""

import argparse
import json
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from server import free_port, resident_megabytes, running


def ask(base: str, url: str) -> str | None:
    """The status of a page, or nothing while the server does not answer."""
    try:
        question = f"{base}/v1/status?url={urllib.parse.quote(url, safe='')}"
        with urllib.request.urlopen(question, timeout=60) as answer:
            return json.load(answer)["status"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        raise SystemExit(f"the question is refused: {error.read().decode()}") from error
    except OSError:
        return None


def push(base: str, number: int) -> str:
    """Pushes a page without near-duplicates. Returns its URL."""
    url = f"http://new.example/{time.time_ns()}"
    text = " ".join(f"new{number}word{place}{time.time_ns()}" for place in range(150))
    body = json.dumps({"url": url, "text": text}).encode()
    request = urllib.request.Request(f"{base}/v1/pages", body, {"content-type": "application/json"})
    while True:
        try:
            urllib.request.urlopen(request, timeout=60).close()
            return url
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise SystemExit(f"the page is refused: {error.read().decode()}") from error
            time.sleep(0.05)


def measure(program: str, folder: Path, url: str, number: int) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    start = time.monotonic()
    with tempfile.TemporaryFile() as log, running(program, folder, port, log, []) as server:
        while ask(base, url) is None:
            if server.poll() is not None:
                log.seek(0)
                raise SystemExit(f"the server ended:\n{log.read().decode()}")
            time.sleep(0.02)
        status = time.monotonic() - start
        new = push(base, number)
        while ask(base, new) in (None, "pending"):
            if server.poll() is not None:
                raise SystemExit(f"the server ended with exit code {server.returncode}")
            time.sleep(0.05)
        decision = time.monotonic() - start
        time.sleep(max(0.0, 60 - decision))
        print(f"{status:>12.1f} {decision:>14.1f} {resident_megabytes(server.pid):>12}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path, help="data directory")
    arguments.add_argument("url", help="URL of a page in it")
    arguments.add_argument("--program", default="doppel", help="the program to measure (default: doppel)")
    arguments.add_argument("--starts", type=int, default=2, help="number of starts (default: 2)")
    options = arguments.parse_args()
    print(f"{'first status':>12} {'first decision':>14} {'MB after 60s':>12}")
    for number in range(options.starts):
        measure(options.program, options.folder, options.url, number)


if __name__ == "__main__":
    main()
