"""Settings of the task that every tool gets, passed to its process as a file of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Settings:
    """Parameters of the task and directories. Paths are absolute."""

    input: str
    """File of JSON lines with `url` and `text`."""
    parts: str
    """Directory with the lines of `input`, in one file per thread. The order of the names is the order of the lines."""
    part_rows: list[int]
    """Number of rows in each file of `parts`."""
    work: str
    """Empty directory for the output of the tool."""
    rows: int
    ngram: int
    """Number of words in an n-gram."""
    threshold: str
    """Threshold of the Jaccard coefficient, as a decimal."""
    permutations: int
    """Number of hash functions in a MinHash."""
    bands: int | None
    """Number of bands. If `None`, the tool chooses."""
    rows_per_band: int | None
    fitting: tuple[int, int]
    """Numbers of bands and rows that fit the threshold, for tools without a rule of their own."""
    threads: int
    doppel: str
    """Path of the program `doppel`."""

    @property
    def result(self) -> Path:
        """File from which the answer of the tool is read."""
        return Path(self.work) / "result.jsonl"

    def texts(self) -> list[str]:
        """Reads the texts of the rows."""
        with open(self.input, encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines]

    def row_of_url(self) -> dict[str, int]:
        """Reads the row of each URL."""
        with open(self.input, encoding="utf-8") as lines:
            return {json.loads(line)["url"]: row for row, line in enumerate(lines)}

    def write(self, path: Path) -> None:
        """Writes the settings as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """Reads settings that `write` has written."""
        return cls(**json.loads(path.read_text()))
