"""Scores of an answer against the exact truth.

Tools differ in whether a pair exactly at the threshold is a near-duplicate. Such a pair is therefore right if the tool names it,
and no mistake if the tool does not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from comparison.answer import Answer
from comparison.components import components


@dataclass
class Truth:
    """All pairs above the threshold, and all pairs at the threshold."""

    above: set[tuple[int, int]]
    at: set[tuple[int, int]]

    @classmethod
    def read(cls, folder: Path, name: str) -> "Truth":
        """Reads the files that `comparison.truth` has written."""
        return cls(*({tuple(map(int, line.split())) for line in (folder / f"{name}.{which}").open()} for which in ("above", "at")))


@dataclass
class Score:
    """Precision, recall and F1, each from 0 to 1. A figure is `None` if there is nothing to measure."""

    precision: float | None
    recall: float | None

    @property
    def f1(self) -> float | None:
        """Returns the harmonic mean of precision and recall."""
        if self.precision is None or self.recall is None:
            return None
        sum_of_both = self.precision + self.recall
        return 2 * self.precision * self.recall / sum_of_both if sum_of_both else 0.0


@dataclass
class Scores:
    """Scores of an answer. A score is `None` if the tool does not state what it needs."""

    pairs_named: int | None
    pairs: Score | None
    """Score of the named pairs. Recall exists only if the tool should name all pairs."""
    groups: int | None
    grouped_pairs: int | None
    """Number of pairs of rows that are in one group."""
    group_pairs: Score | None
    """Score of the pairs in one group, against the pairs in one component of the truth."""
    rows: Score | None
    """Score of the rows that have a near-duplicate."""
    kept: int | None
    removed: int | None
    removed_wrongly: int | None
    """Number of removed rows of which no kept row is a near-duplicate."""
    left_in: int | None
    """Number of kept rows of which an earlier kept row is a near-duplicate."""
    lost: int | None
    """Number of rows that the tool neither keeps nor removes."""


def score(answer: Answer, truth: Truth, rows: int) -> Scores:
    """Scores an answer about `rows` rows."""
    either = truth.above | truth.at
    pairs_named = pairs = groups = grouped_pairs = group_pairs = None
    if answer.pairs is not None:
        named = set(answer.pairs)
        pairs_named = len(named)
        recall = _share(len(named & truth.above), len(truth.above)) if answer.all_pairs else None
        pairs = Score(_share(len(named & either), len(named)), recall)
    if answer.groups is not None:
        groups = len(answer.groups)
        grouped_pairs = _pairs_within(map(len, answer.groups))
        strict, lenient = components(truth.above), components(either)
        group_pairs = Score(
            _share(_pairs_in_both(answer.groups, lenient), grouped_pairs),
            _share(_pairs_in_both(answer.groups, strict), _pairs_within(map(len, strict))),
        )
    flagged = answer.flagged if answer.groups is None else [row for group in answer.groups for row in group]
    row_score = None if flagged is None else _row_score(set(flagged), truth)
    kept = removed = wrongly = left_in = lost = None
    if answer.kept is not None and answer.removed is not None:
        stay = set(answer.kept)
        kept, removed = len(answer.kept), len(answer.removed)
        lost = rows - len(stay | set(answer.removed))
        covered = {a for pair in either for a, b in (pair, pair[::-1]) if b in stay}
        wrongly = len(set(answer.removed) - covered)
        left_in = len({b for a, b in truth.above if a in stay and b in stay})
    return Scores(
        pairs_named, pairs, groups, grouped_pairs, group_pairs, row_score, kept, removed, wrongly, left_in, lost
    )


def _row_score(flagged: set[int], truth: Truth) -> Score:
    strict, lenient = ({row for pair in pairs for row in pair} for pairs in (truth.above, truth.above | truth.at))
    return Score(_share(len(flagged & lenient), len(flagged)), _share(len(flagged & strict), len(strict)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _pairs_within(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def _pairs_in_both(groups: list[list[int]], others: list[list[int]]) -> int:
    """Counts the pairs of rows that are in one group on both sides."""
    other_of = {row: at for at, rows in enumerate(others) for row in rows}
    total = 0
    for rows in groups:
        within: dict[int, int] = {}
        for row in rows:
            if row in other_of:
                within[other_of[row]] = within.get(other_of[row], 0) + 1
        total += _pairs_within(within.values())
    return total
