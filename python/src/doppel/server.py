"""A server of one's own: the real program, started and ended with a `with`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .async_client import AsyncClient
from .client import Client
from .errors import DoppelError, ProgramError
from .known_options import SERVE, require_known
from .program import last_lines, options, program
from .termination import hold, release

_LISTENS = "doppel is listening on "
_END_SECONDS = 60


class Server:
    """Runs `doppel serve` on a free port of this machine.

    `data` is the data directory, which is made where it is not there; without one it is a temporary directory that goes with the
    server. All other parameters are options of `doppel serve`: `Server(tau=0.9, index_nodes=2)`. `patience` is how many seconds a
    start may take: a large collection that was not ended well takes long.

    It is started by `with`, or by `start` and ended by `stop`, and ends with the process that started it. For that, while it runs,
    SIGTERM raises `SystemExit` in the main thread, if it was started there and the process has no handler of its own. Raises
    `ProgramError`, with the last lines of its log, where it does not start, and `TypeError` for a parameter that is no option.

    >>> import doppel
    >>> with doppel.Server() as server:
    ...     with server.client() as client:
    ...         client.get_health()
    'ok\\n'
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        patience: float = 120.0,
        **serve: Any,
    ) -> None:
        require_known("Server", "serve", serve, SERVE, ("data", "listen", "patience"))
        self._data = None if data is None else Path(data)
        self._arguments = ["--listen", listen, *options(serve)]
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None
        self._folder: Path | None = None
        self._url: str | None = None
        self._end: weakref.finalize[..., Self] | None = None

    @property
    def url(self) -> str:
        """Where it listens, such as http://127.0.0.1:34567. Raises `ProgramError` before it is started."""
        if self._url is None:
            raise ProgramError("the server is not running")
        return self._url

    @property
    def data(self) -> Path:
        """The data directory. Raises `ProgramError` where it is a temporary one and the server is not running."""
        if self._data is not None:
            return self._data
        if self._folder is None:
            raise ProgramError("the server is not running")
        return self._folder / "data"

    @property
    def log(self) -> list[str]:
        """The last lines of its log."""
        return [] if self._folder is None else last_lines(self._folder / "log")

    def client(self, **parameters: Any) -> Client:
        """A client of it; parameters are those of `Client`."""
        return Client(self.url, **parameters)

    def async_client(self, **parameters: Any) -> AsyncClient:
        """A client of it for asyncio; parameters are those of `AsyncClient`."""
        return AsyncClient(self.url, **parameters)

    def start(self) -> Self:
        """Starts it and waits until it takes work."""
        if self._process is not None:
            raise ProgramError("the server is running already")
        path = program()
        self._folder = Path(tempfile.mkdtemp(prefix="doppel-"))
        end = time.monotonic() + self._patience
        with (self._folder / "log").open("w") as log:
            command = [str(path), "serve", "--data", str(self.data), *self._arguments]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        # Also where nobody stops it, a process that ends takes it along.
        self._end = weakref.finalize(self, _end, self._process, self._folder, hold(), os.getpid())
        try:
            self._url = self._listens(self._process, end)
            self._wait_until_ready(end)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends it: what it has begun is answered, and all that was acknowledged is on disk. A temporary directory is removed."""
        if self._end is not None:
            self._end()
        self._process = self._folder = self._url = self._end = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _listens(self, process: subprocess.Popen[str], end: float) -> str:
        """Waits for the line that says where it listens."""
        said: list[str] = []

        def read() -> None:
            assert process.stdout is not None
            said.append(process.stdout.readline())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(max(0.0, end - time.monotonic()))
        if said and said[0].startswith(_LISTENS):
            return said[0].removeprefix(_LISTENS).strip()
        if not said:
            raise ProgramError(f"the server was not ready within {self._patience:g} s", None, self.log)
        # It has closed its output, so it is about to end.
        code = process.wait(_END_SECONDS)
        raise ProgramError(f"the server ended with code {code}", code, self.log)

    def _wait_until_ready(self, end: float) -> None:
        """Waits until it takes work. Where it speaks TLS it is taken to be ready once it listens, as its authority is not known here."""
        if not self.url.startswith("http://"):
            return
        with self.client(timeout=5.0) as client:
            while True:
                try:
                    client.get_readiness()
                    return
                except DoppelError as error:
                    if time.monotonic() > end:
                        message = f"the server was not ready within {self._patience:g} s: {error}"
                        raise ProgramError(message, None, self.log) from error
                time.sleep(0.05)


def _end(process: subprocess.Popen[str], folder: Path, held: bool, starter: int) -> None:
    """Asks a process to end, and ends it where it does not. A fork of the process that started it leaves it alone."""
    if os.getpid() != starter:
        return
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
    if held:
        release()
