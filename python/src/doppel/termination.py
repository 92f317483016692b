"""SIGTERM while something is to be cleaned up: the process ends as with an exception, so that temporary files and programs go with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_lock = threading.RLock()
_held = 0
_process = os.getpid()


def _end(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _process:
        # A fork has nothing to clean up.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    raise SystemExit(128 + number)


def hold() -> bool:
    """From now on SIGTERM raises `SystemExit(143)` in the main thread, where otherwise it ends the process at once. Gives False, and
    changes nothing, where the caller is another thread or the process has a handler of its own or ignores the signal. Each True is to
    be followed by one `release`.
    """
    global _held, _process
    with _lock:
        if threading.current_thread() is not threading.main_thread():
            return False
        if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, _end):
            return False
        signal.signal(signal.SIGTERM, _end)
        _held, _process = _held + 1, os.getpid()
        return True


def release() -> None:
    """Ends one `hold`; with the last one the signal ends the process as before. From another thread than the main one the handler stays."""
    global _held
    with _lock:
        _held -= 1
        in_main = threading.current_thread() is threading.main_thread()
        if _held == 0 and in_main and signal.getsignal(signal.SIGTERM) is _end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def held() -> Generator[None]:
    """`hold` for the time of a `with`."""
    holds = hold()
    try:
        yield
    finally:
        if holds:
            release()
