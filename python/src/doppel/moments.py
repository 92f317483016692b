"""Dates of rows, as the program takes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import SupportsFloat

_SECONDS_MIN = 100_000_000
_SECONDS_MAX = 100_000_000_000
_AHEAD_MAX = timedelta(hours=24)

NO_DATE = "no date: neither RFC 3339, nor a date or date-time without zone, nor seconds or milliseconds since 1970 from 100,000,000"


def moment(value: object) -> datetime | None:
    """The moment that a value stands for; None for a null, an empty text or NaN.

    A text is RFC 3339, or a date or date-time, which is in UTC where it has no zone. A number, also as a text, is seconds since 1970 from
    100,000,000 to 100,000,000,000, and milliseconds from there on. Raises `ValueError` for what is no date, or is more than 24 hours
    ahead.

    >>> moment("2024-05-01"), moment(1714521600), moment(1714521600000.0)
    (datetime.datetime(2024, 5, 1, 0, 0, tzinfo=datetime.timezone.utc), ..., datetime.datetime(2024, 5, 1, 0, 0, tzinfo=...utc))
    """
    # NaN and NaT differ from themselves.
    if value is None or value == "" or value != value:
        return None
    found = _read(value)
    if found is None:
        raise ValueError(NO_DATE)
    if found > datetime.now(UTC) + _AHEAD_MAX:
        raise ValueError(f"{found.isoformat()} is more than 24 hours ahead")
    return found


def _read(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return None
    if isinstance(value, datetime):
        parts = value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
        return datetime(*parts, tzinfo=value.tzinfo or UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, SupportsFloat) and not isinstance(value, bool) and (number := float(value)) >= _SECONDS_MIN:
        seconds = number if number <= _SECONDS_MAX else number / 1_000
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return None
