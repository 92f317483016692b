"""Common code of adapters of libraries. A library only finds pairs, and the adapter writes each pair when it is found."""

import json
from collections.abc import Iterable

from comparison.answer import Answer
from comparison.components import components, keep_first
from comparison.settings import Settings


def n_gram_texts(text: str, size: int) -> list[str]:
    """Returns the n-grams of a text, each as one string. A text with fewer words is one n-gram."""
    words = text.split(" ")
    return [" ".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))]


def write_pairs(settings: Settings, pairs: Iterable[tuple[int, int]]) -> None:
    """Writes each pair once, as a line `[a, b]`, the smaller row first."""
    with open(settings.result, "w", encoding="utf-8") as out:
        for a, b in pairs:
            if a < b:
                out.write(f"[{a},{b}]\n")


def read_pairs(settings: Settings, version: str, told: str) -> Answer:
    """Makes the answer. Groups are components, and a row is kept unless it is paired with an earlier kept row."""
    with open(settings.result, encoding="utf-8") as lines:
        pairs = sorted({tuple(json.loads(line)) for line in lines})
    kept = keep_first(pairs, settings.rows)
    removed = sorted(set(range(settings.rows)) - set(kept))
    return Answer(version, told, pairs, True, components(pairs), None, kept, removed)
