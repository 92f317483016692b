"""Splits a text into the words that all tools compare: the tokens of Doppel (ARCHITECTURE.md).

The words are written back with one space between two words, and every tool splits this text into the same words again.
"""

import re

# Scripts without spaces between words, by Unicode block: Han, Kana, Thai, Lao, Khmer, Myanmar.
_UNSPACED = [
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    r"\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    r"\u0e00-\u0e7f",
    r"\u0e80-\u0eff",
    r"\u1780-\u17ff",
    r"\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
]
_PIECES = re.compile("|".join(f"(?P<u{at}>[{block}]+)" for at, block in enumerate(_UNSPACED)) + f"|[^{''.join(_UNSPACED)}]+")
_RUNS = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Returns the words of a text, in order: runs of letters and digits in lower case.

    A run of a script without spaces gives one word for each two adjacent characters.
    """
    found: list[str] = []
    for run in _RUNS.findall(text.lower()):
        if run.isascii():
            found.append(run)
            continue
        for piece in _PIECES.finditer(run):
            characters = piece.group()
            if piece.lastgroup is None or len(characters) == 1:
                found.append(characters)
            else:
                found.extend(characters[at : at + 2] for at in range(len(characters) - 1))
    return found


def n_grams(text: str, size: int, padded: bool = False) -> set[tuple[str, ...]]:
    """Returns the distinct n-grams of a text whose words are separated by one space.

    With `padded`, size - 1 dummy words follow the last word, as in Doppel, so each word begins an n-gram.
    """
    sequence = text.split(" ") if text else []
    if padded and sequence:
        sequence = sequence + [""] * (size - 1)
    return {tuple(sequence[at : at + size]) for at in range(len(sequence) - size + 1)}
