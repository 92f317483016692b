"""What the libraries have in common, which find pairs and leave the rest to the caller: pairs are written as they are found."""

import json
from collections.abc import Iterable

from comparison.answer import Answer
from comparison.components import components, keep_first
from comparison.settings import Settings


def n_gram_texts(text: str, size: int) -> list[str]:
    """The n-grams of a text, each as one string; the whole text where it has fewer words."""
    words = text.split(" ")
    return [" ".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))]


def write_pairs(settings: Settings, pairs: Iterable[tuple[int, int]]) -> None:
    """Writes each pair once, as a line `[a, b]`, the smaller row first."""
    with open(settings.result, "w", encoding="utf-8") as out:
        for a, b in pairs:
            if a < b:
                out.write(f"[{a},{b}]\n")


def read_pairs(settings: Settings, version: str, told: str) -> Answer:
    """The answer: groups are components, and a row stays unless it is paired with an earlier one that stays."""
    with open(settings.result, encoding="utf-8") as lines:
        pairs = sorted({tuple(json.loads(line)) for line in lines})
    kept = keep_first(pairs, settings.rows)
    removed = sorted(set(range(settings.rows)) - set(kept))
    return Answer(version, told, pairs, True, components(pairs), None, kept, removed)
