"""Which column is what: by name, or by a guess from the first rows, as the program guesses (docs/INPUTS.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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

    def names(self) -> list[str]:
        """All of them."""
        named = [name for name in (self.id, self.url, self.date, self.popularity) if name is not None]
        return list(dict.fromkeys([*self.texts, *self.htmls, *named]))


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
        given = (self.text, self.html, self.id, self.url, self.date, self.popularity)
        named = [name for name in given if name is not None]
        for name in named:
            if name not in names and name.split(".")[0] not in names:
                raise ValueError(f"there is no column {name}, only {', '.join(names) or 'none'}")
        contents = [] if self.text or self.html else [name for name in (*_TEXT_NAMES, _HTML) if name in names]
        if not (contents or self.text or self.html):
            raise ValueError(f"name the column with the text: text=... of {', '.join(names) or 'none'}")
        ids = [_ID] if self.id is None and _ID in names else []
        return list(dict.fromkeys([*contents, *named, *ids]))

    def columns(self, names: Sequence[str], values: Callable[[str], Sequence[Any]]) -> Columns:
        """The columns to read, where `values` has those of the first rows of a column. Raises `ValueError` as `looked_at`."""
        looked_at = self.looked_at(names)
        found = {name: [value is not None and value != "" for value in values(name)] for name in looked_at}
        filled = {name: sum(some) for name, some in found.items()}
        texts = () if self.text is None else (self.text,)
        htmls = () if self.html is None else (self.html,)
        if not texts and not htmls:
            htmls = (_HTML,) if _HTML in looked_at else ()
            present = [name for name in _TEXT_NAMES if name in looked_at]
            if present:
                rows = len(found[present[0]])
                most = max(present, key=lambda name: filled[name])
                guess = next((name for name in present if 2 * filled[name] >= rows), most)
                texts = tuple(dict.fromkeys([guess, *(name for name in present if name == _TEXT_NAMES[0])]))
        id = self.id or (_ID if filled.get(_ID) else None)
        return Columns(texts, htmls, id, self.url, self.date, self.popularity)
