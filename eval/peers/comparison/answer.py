"""What a tool answers, in numbers of rows: the first line of the input is row 0."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Answer:
    """An answer. What a tool does not tell is `None`."""

    version: str
    """The version of the tool."""
    settings: str
    """What the tool was set to, in its own words."""
    pairs: list[tuple[int, int]] | None = None
    """Pairs that it names as near-duplicates, each once, the smaller row first."""
    all_pairs: bool = False
    """Whether it is to name every pair; otherwise some for each group."""
    groups: list[list[int]] | None = None
    """Groups with two rows or more; no row is in two of them."""
    flagged: list[int] | None = None
    """Rows that it says have a near-duplicate, where it has no groups."""
    kept: list[int] | None = None
    """Rows that stay."""
    removed: list[int] | None = None
    """Rows that it removes. A row that is in neither list was lost."""

    def write(self, path: Path) -> None:
        """Writes it as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Answer":
        """Reads what `write` wrote."""
        answer = cls(**json.loads(path.read_text()))
        if answer.pairs is not None:
            answer.pairs = [(a, b) for a, b in answer.pairs]
        return answer
