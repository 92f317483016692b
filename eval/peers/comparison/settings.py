"""What is asked of every tool, handed to its process as a file of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Settings:
    """The question and the place to work in. Paths are absolute."""

    input: str
    """JSON lines with `url` and `text`."""
    parts: str
    """A directory with the same lines, in one file for each thread, in order of their names."""
    part_rows: list[int]
    """Rows in each of these files."""
    work: str
    """An empty directory for all that the tool writes."""
    rows: int
    ngram: int
    """Words in an n-gram."""
    threshold: str
    """Jaccard coefficient, as a decimal."""
    permutations: int
    """Hash functions in a MinHash."""
    bands: int | None
    """Bands, or `None` for the choice of the tool."""
    rows_per_band: int | None
    fitting: tuple[int, int]
    """Bands and rows that fit the threshold, for tools that have no rule for them."""
    threads: int
    doppel: str
    """The program `doppel`."""

    @property
    def result(self) -> Path:
        """The file that the tool's answer is taken from."""
        return Path(self.work) / "result.jsonl"

    def texts(self) -> list[str]:
        """The texts of the rows."""
        with open(self.input, encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines]

    def row_of_url(self) -> dict[str, int]:
        """The row of each URL."""
        with open(self.input, encoding="utf-8") as lines:
            return {json.loads(line)["url"]: row for row, line in enumerate(lines)}

    def write(self, path: Path) -> None:
        """Writes them as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """Reads what `write` wrote."""
        return cls(**json.loads(path.read_text()))
