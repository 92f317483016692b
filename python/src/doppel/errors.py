"""What can go wrong: one exception for each thing that a caller may want to do about it."""

from __future__ import annotations

import msgspec

from .contract.types import Problem

PREFIX = "urn:doppel:problem:"


class DoppelError(Exception):
    """Anything that this module raises of its own."""


class Unreachable(DoppelError):
    """No answer came: the server is not there, is not trusted, or was too slow."""


class Incomplete(DoppelError):
    """An answer broke off. What came of it is no whole export, backup or sample."""


class Unexpected(DoppelError):
    """An answer that is not as the contract says: perhaps of something else that listens there."""


class ProgramError(DoppelError):
    """The program did not start, or failed. The message ends with the last lines that it wrote."""

    def __init__(self, message: str, code: int | None = None, lines: list[str] | None = None) -> None:
        super().__init__("\n".join([message, *(lines or [])]))
        self.code = code
        """Its exit code: 1 failed, 2 wrong arguments, 5 an input could not be read. None where it was ended or is not there."""
        self.lines = lines or []
        """The last lines that it wrote to standard error."""


class Refused(DoppelError):
    """The server refused a request, and says why (RFC 9457). Its subclasses tell what can be done about it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        """The answer."""
        field = f" ({problem.field})" if problem.field else ""
        super().__init__(f"{problem.status} {self.kind}{field}: {problem.detail}")

    @property
    def status(self) -> int:
        """The HTTP status, such as 404."""
        return self.problem.status

    @property
    def kind(self) -> str:
        """The stable name of the problem, such as `not-found`: docs/reference/http-conventions.md lists them."""
        return self.problem.type.removeprefix(PREFIX)

    @property
    def detail(self) -> str:
        """What is wrong, in words that may change."""
        return self.problem.detail

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the same request may succeed; None where it will not by itself."""
        return self.problem.retry_after


class BadRequest(Refused):
    """400 and others below 500 without a class of their own: `problem.field` names what is wrong."""


class Unauthorized(Refused):
    """401: no token came that the server knows and that has not expired."""


class Forbidden(Refused):
    """403: the token has a lesser role than is needed."""


class NotFound(Refused):
    """404: what is named is not there."""


class Conflict(Refused):
    """409: something else is under way."""


class CursorGone(Refused):
    """410: the feed cannot go on at this cursor. Export again, and go on with the cursor of the export."""


class TooLarge(Refused):
    """413: the body is over a limit."""


class Overloaded(Refused):
    """429, also after all retries: too many pages are pending, or this client has too much in work."""


class Failed(Refused):
    """500 and others without a class of their own: an error inside the service."""


class Unavailable(Refused):
    """503 and 507, also after all retries: the service, or a part of it, does not answer now or takes nothing."""


_CLASSES: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: CursorGone,
    413: TooLarge,
    429: Overloaded,
    503: Unavailable,
    507: Unavailable,
}


def refusal(status: int, content: bytes, retry_after: str | None) -> DoppelError:
    """The exception for an answer that is no success. A problem type that is not known means what its status means."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        # A proxy, or what never was a request: such answers have no problem document.
        shown = content[:200].decode(errors="replace").strip()
        problem = Problem(type="about:blank", title="", status=status, detail=shown or "no reason was given")
    if problem.retry_after is None and retry_after is not None and retry_after.isdecimal():
        problem = msgspec.structs.replace(problem, retry_after=int(retry_after))
    kind = _CLASSES.get(status, BadRequest if status < 500 else Failed)
    return kind(problem)
