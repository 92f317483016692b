"""Texts whose Jaccard coefficients are known."""

from __future__ import annotations


def text(of: str, *, words: int = 100, changed: int = 0) -> str:
    """A text of its own for each `of`; with `changed`, the last so many words are others."""
    kept = [f"{of}{n}" for n in range(words - changed)]
    return " ".join(kept + [f"{of}changed{n}" for n in range(changed)])
