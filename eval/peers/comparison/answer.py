"""Answer of a tool, in numbers of rows: the first line of the input is row 0."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Answer:
    """Answer of a tool. A field is `None` if the tool does not state it."""

    version: str
    """Version of the tool."""
    settings: str
    """Settings of the tool, in the tool's own terms."""
    pairs: list[tuple[int, int]] | None = None
    """Pairs that the tool calls near-duplicates, each once, the smaller row first."""
    all_pairs: bool = False
    """Whether the tool should name every pair. If false, it names some pairs of each group."""
    groups: list[list[int]] | None = None
    """Groups with two rows or more. No row is in two groups."""
    flagged: list[int] | None = None
    """Rows that have a near-duplicate by the tool, if the tool has no groups."""
    kept: list[int] | None = None
    """Rows that the tool keeps."""
    removed: list[int] | None = None
    """Rows that the tool removes. A row in neither list is lost."""

    def write(self, path: Path) -> None:
        """Writes the answer as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Answer":
        """Reads an answer that `write` has written."""
        answer = cls(**json.loads(path.read_text()))
        if answer.pairs is not None:
            answer.pairs = [(a, b) for a, b in answer.pairs]
        return answer
