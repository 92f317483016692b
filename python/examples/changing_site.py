"""A site of 300 pages on this machine that changes between crawls, and knows what was fetched from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 300


class Site:
    """Pages by their paths. Each third page is a near-duplicate of the one before."""

    def __init__(self) -> None:
        self.url = ""
        self.texts = {path(n): original(n) for n in range(PAGES)}
        self.moved: dict[str, str] = {}
        self.fetched: list[str] = []

    def change(self) -> None:
        """Before the second crawl: pages 0 to 29 get new texts, 30 to 59 move, and 60 to 89 die."""
        for n in range(30):
            self.texts[path(n)] = words(f"new{n}x", 0)
        for n in range(30, 60):
            self.texts[f"/moved/{n}"] = self.texts.pop(path(n))
            self.moved[path(n)] = f"/moved/{n}"
        for n in range(60, 90):
            del self.texts[path(n)]

    def change_again(self) -> None:
        """Before the third crawl: the pages that have moved die, and 90 to 119 become copies of page 299."""
        for n in range(30, 60):
            del self.texts[f"/moved/{n}"]
        for n in range(90, 120):
            self.texts[path(n)] = original(PAGES - 1)

    def answer(self, asked: str) -> tuple[int, str, str]:
        """Status, location and body."""
        self.fetched.append(asked)
        if asked == "/":
            links = "".join(f'<a href="{path}">{path}</a> ' for path in self.texts)
            return 200, "", f"<html><body><p>The pages of this site</p>{links}</body></html>"
        if asked in self.moved:
            return 301, self.moved[asked], ""
        if asked not in self.texts:
            return 404, "", "<html><body>not here</body></html>"
        return 200, "", f"<html><body><p>{self.texts[asked]}</p></body></html>"


def path(n: int) -> str:
    return f"/page/{n:03}"


def words(of: str, changed: int) -> str:
    return " ".join([f"{of}{k}" for k in range(80 - changed)] + [f"other{of}{k}" for k in range(changed)])


def original(n: int) -> str:
    """The text of a page at first."""
    return words(f"t{n - 1}x", 2) if n % 3 == 2 else words(f"t{n}x", 0)


@contextmanager
def served(site: Site) -> Iterator[Site]:
    """The site on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            status, location, body = site.answer(self.path)
            content = body.encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
