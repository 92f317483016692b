"""Groups of rows: the connected components of the pairs."""

from collections.abc import Iterable


def components(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the components with two rows or more. Rows are ascending, and so are the first rows of the groups."""
    parent: dict[int, int] = {}

    def root(row: int) -> int:
        while (above := parent.setdefault(row, row)) != row:
            parent[row] = parent[above]
            row = above
        return row

    for a, b in pairs:
        # The smallest row is the root, so the result does not depend on the order of the pairs.
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    groups: dict[int, list[int]] = {}
    for row in sorted(parent):
        groups.setdefault(root(row), []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def keep_first(pairs: Iterable[tuple[int, int]], rows: int) -> list[int]:
    """Returns the kept rows, ascending. Rows are tried in order, and a row is removed if it is paired with a kept row."""
    earlier: dict[int, set[int]] = {}
    for a, b in pairs:
        earlier.setdefault(max(a, b), set()).add(min(a, b))
    kept: set[int] = set()
    for row in range(rows):
        if kept.isdisjoint(earlier.get(row, ())):
            kept.add(row)
    return sorted(kept)
