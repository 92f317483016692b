"""Which column is what: by name, or by a guess from the first rows, as the program guesses (docs/reference/records.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "none"
"""What is said in the place of a name, for a column that is not to be read although it could be guessed."""
LIST = "[]"
"""What stands behind a name in a path that leads into the elements of a list."""

LOOKED_AT = 1_000
"""How many first rows are looked at."""

_TEXT_NAMES = ("text", "content", "raw_content")
_HTML = "html"
_ID = "id"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read. A row has the first text that is not null and not empty, or else such HTML."""

    texts: tuple[str, ...]
    htmls: tuple[str, ...]
    id: str | None
    url: str | None
    date: str | None
    popularity: str | None = None
    id_is_guessed: bool = False

    def names(self, there: Sequence[str]) -> list[str]:
        """All of them, of the columns that are there."""
        given = (*self.texts, *self.htmls, self.id, self.url, self.date, self.popularity)
        named = [name for name in given if name is not None]
        return list(dict.fromkeys(column for name in named for column in columns_in(name, there)))


def parts(name: str) -> list[str]:
    """The parts of a text that is in several columns.

    >>> parts("title, messages[].content")
    ['title', 'messages[].content']
    """
    return [part.strip() for part in name.split(",") if part.strip()]


def columns_in(name: str, there: Sequence[str]) -> list[str]:
    """The columns that a name leads to, of those that are there. One whose own name has dots, commas or brackets comes first.

    >>> columns_in("title,messages[].content", ["title", "messages"]), columns_in("a.b", ["a"])
    (['title', 'messages'], ['a.b'])
    """
    if name in there:
        return [name]
    found = [part if part in there or LIST not in part else _top(part) for part in parts(name)]
    return [column for column in found if column in there or _top(column) in there]


def _top(path: str) -> str:
    return path.split(LIST)[0].split(".")[0]


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of columns; one with dots leads into nested ones. Those of text, HTML and id that are None are guessed."""

    text: str | None = None
    html: str | None = None
    id: str | None = None
    url: str | None = None
    date: str | None = None
    popularity: str | None = None

    def looked_at(self, names: Sequence[str]) -> list[str]:
        """The columns that are named or may be guessed. Raises `ValueError` where one that is named is not among these names, or none
        can be that of the text.
        """
        text, html, id, url, date = self._named()
        named = [name for name in (text, html, id, url, date, self.popularity) if name is not None]
        for name in named:
            for part in [name] if name in names else parts(name) or [name]:
                if part not in names and _top(part) not in names:
                    raise ValueError(f"there is no column {part}, only {', '.join(names) or 'none'}")
        contents = [] if text or html else [name for name in self._guessed_contents() if name in names]
        if not (contents or text or html):
            raise ValueError(f"name the column with the text: text=... of {', '.join(names) or 'none'}")
        ids = [_ID] if self.id is None and _ID in names else []
        return list(dict.fromkeys([*contents, *named, *ids]))

    def read(self, names: Sequence[str]) -> list[str]:
        """The columns that have to be read for `looked_at`."""
        return list(dict.fromkeys(column for name in self.looked_at(names) for column in columns_in(name, names)))

    def _named(self) -> list[str | None]:
        """The names of text, HTML, id, URL and date; None for one that is not to be read."""
        return [None if name == NONE else name for name in (self.text, self.html, self.id, self.url, self.date)]

    def _guessed_contents(self) -> list[str]:
        texts: list[str] = [] if self.text == NONE else [*_TEXT_NAMES]
        return texts if self.html == NONE else [*texts, _HTML]

    def columns(self, names: Sequence[str], values: Callable[[str], Sequence[Any]]) -> Columns:
        """The columns to read, where `values` has those of the first rows of a column. Raises `ValueError` as `looked_at`."""
        looked_at = self.looked_at(names)
        found = {name: [value is not None and value != "" for value in values(name)] for name in looked_at}
        filled = {name: sum(some) for name, some in found.items()}
        text, html, id, url, date = self._named()
        texts = () if text is None else (text,)
        htmls = () if html is None else (html,)
        if not texts and not htmls:
            htmls = (_HTML,) if _HTML in looked_at else ()
            present = [name for name in _TEXT_NAMES if name in looked_at]
            if present:
                rows = len(found[present[0]])
                most = max(present, key=lambda name: filled[name])
                guess = next((name for name in present if 2 * filled[name] >= rows), most)
                texts = tuple(dict.fromkeys([guess, *(name for name in present if name == _TEXT_NAMES[0])]))
        guessed = self.id is None and bool(filled.get(_ID))
        return Columns(texts, htmls, _ID if guessed else id, url, date, self.popularity, guessed)
