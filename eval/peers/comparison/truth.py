"""Exact truth: the Jaccard coefficient of all pairs of rows, from the n-grams themselves.

Every pair that shares an n-gram is counted. The matrix of rows and n-grams, multiplied by its transpose, gives the number of
n-grams that two rows share. N-grams are tuples of words, and numbers are integers, so no figure is estimated and no pair is left
out. Runs in an environment with scipy.
"""

import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from comparison.settings import Settings
from comparison.words import n_grams

ROWS_AT_ONCE = 256


@dataclass
class Pairs:
    """All pairs at the threshold and above it, as `(a, b)` with a < b, ascending."""

    above: np.ndarray
    at: np.ndarray


def pairs(texts: list[str], size: int, threshold: str, padded: bool) -> Pairs:
    """Finds all similar pairs of texts, by the Jaccard coefficient of their sets of n-grams. A text without n-grams is in no pair."""
    tau = Fraction(Decimal(threshold))
    number: dict[tuple[str, ...], int] = {}
    columns: list[np.ndarray] = []
    for text in texts:
        grams = n_grams(text, size, padded)
        columns.append(np.fromiter((number.setdefault(gram, len(number)) for gram in grams), np.int64, len(grams)))
    sizes = np.array([len(row) for row in columns], np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.concatenate(columns) if columns else np.empty(0, np.int64)
    del columns, number
    # An n-gram of a single row is in no pair, so its column is dropped.
    common = np.bincount(entries)[entries] > 1
    ends = np.concatenate([[0], np.cumsum(common)])[ends]
    entries = entries[common]
    matrix = csr_matrix(
        (np.ones(len(entries), np.int32), entries, ends), shape=(len(texts), int(entries.max(initial=0)) + 1)
    )
    transpose = matrix.T.tocsr()
    above, at = [], []
    for begin in range(0, len(texts), ROWS_AT_ONCE):
        counts = (matrix[begin : begin + ROWS_AT_ONCE] @ transpose).tocoo()
        a, b, shared = counts.row + begin, counts.col, counts.data.astype(np.int64)
        once = a < b
        a, b, shared = a[once], b[once], shared[once]
        union = sizes[a] + sizes[b] - shared
        difference = shared * tau.denominator - union * tau.numerator
        found = np.stack([a, b], axis=1)
        above.append(found[difference > 0])
        at.append(found[difference == 0])
    return Pairs(_ascending(above), _ascending(at))


def _ascending(found: list[np.ndarray]) -> np.ndarray:
    all_pairs = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    return all_pairs[np.lexsort((all_pairs[:, 1], all_pairs[:, 0]))]


def _main() -> None:
    settings, out = Settings.read(Path(sys.argv[1])), Path(sys.argv[2])
    texts = settings.texts()
    for name, padded in (("plain", False), ("padded", True)):
        found = pairs(texts, settings.ngram, settings.threshold, padded)
        for which, which_pairs in (("above", found.above), ("at", found.at)):
            lines = "".join(f"{a} {b}\n" for a, b in which_pairs.tolist())
            (out / f"{name}.{which}").write_text(lines)


if __name__ == "__main__":
    _main()
