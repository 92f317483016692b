"""Tools that are compared: the command of each tool, and where the tool solves another task."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from comparison.settings import Settings

ADAPTERS = Path(__file__).resolve().parent.parent / "adapters"


@dataclass
class Tool:
    """Tool that is compared. The arguments of its command are the Python of its environment and the file with the settings."""

    name: str
    requirements: str | None
    """Name of the file of its requirements, without `.txt`. `None` if the tool is not a Python program."""
    adapter: str
    command: Callable[[Path, Settings, Path], list[str]]
    differs: list[str]
    """Differences of its task, or of its way to answer."""

    def cannot(self, ngram: int, threshold: str) -> str | None:
        """Returns the reason why the tool cannot take these parameters, or `None` if it can."""
        if self.name == "doppel" and not (3 <= ngram <= 13 and Decimal("0.3") <= Decimal(threshold) <= Decimal("0.9999")):
            return "it takes n-grams of 3 to 13 words, and thresholds from 0.3 to 0.9999"
        return None


def _adapter(name: str) -> Callable[[Path, Settings, Path], list[str]]:
    return lambda python, settings, file: [str(python), "-m", f"adapters.{name}", "run", str(file)]


def _doppel(python: Path, settings: Settings, file: Path) -> list[str]:
    policy = f"jaccard:tau={settings.threshold},words={settings.ngram}"
    return [settings.doppel, "dedup", "--policy", policy, "--out", str(settings.result), settings.input]


def _text_dedup(python: Path, settings: Settings, file: Path) -> list[str]:
    options = {
        "path": "json",
        "data_files": settings.input,
        "split": "train",
        "column": "text",
        "ngram": settings.ngram,
        "num_perm": settings.permutations,
        "threshold": settings.threshold,
        "num_proc": settings.threads,
        "cache_dir": f"{settings.work}/cache",
        "output": f"{settings.work}/output",
    }
    if settings.bands is not None:
        options |= {"b": settings.bands, "r": settings.rows_per_band}
    told = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    # With `--debug`, text-dedup writes its groups, too.
    return [str(python), "-m", "text_dedup.minhash", *told, "--debug"]


_PAIRS_ONLY = "a library: the n-grams are made in Python, pairs are written and not pages, and the first of paired rows stays"

TOOLS = [
    Tool(
        "doppel",
        None,
        "with_doppel",
        _doppel,
        [
            "decides by the exact coefficient, and asks for more than the threshold",
            "four dummy words follow the last word, so a text has as many n-grams as words",
            "pages of fewer than 20 words are near-duplicates of equal ones only",
            "writes a line for each page, without its text",
        ],
    ),
    Tool(
        "gaoya",
        "gaoya",
        "with_gaoya",
        _adapter("with_gaoya"),
        [
            "a library: it makes the n-grams itself, pairs are written and not pages, and the first of paired rows stays",
            "a pair is what shares a band and has an estimated coefficient of the threshold",
        ],
    ),
    Tool(
        "rensa",
        "rensa",
        "with_rensa",
        _adapter("with_rensa"),
        [_PAIRS_ONLY, "a pair is what shares a band and has an estimated coefficient of the threshold"],
    ),
    Tool(
        "rensa-rho",
        "rensa",
        "with_rensa_rho",
        _adapter("with_rensa_rho"),
        ["samples n-grams by their position", "says which rows have a near-duplicate, and not of what: no pairs, no groups"],
    ),
    Tool(
        "datasketch",
        "datasketch",
        "with_datasketch",
        _adapter("with_datasketch"),
        [_PAIRS_ONLY, "a pair is what shares a band, as its index answers, unchecked", "runs on one thread"],
    ),
    Tool(
        "text-dedup",
        "text-dedup",
        "with_text_dedup",
        _text_dedup,
        [
            "what shares a band is one group, unchecked; names no pairs",
            "writes the rows that stay, with their text, as Arrow files",
        ],
    ),
    Tool(
        "datatrove",
        "datatrove",
        "with_datatrove",
        _adapter("with_datatrove"),
        [
            "what shares a bucket is one group, unchecked; names only pairs that follow each other in a bucket",
            "has no setting for a threshold: buckets and hashes are what datasketch takes for it; its default, 14 buckets of 8 hashes, is one of 0.72",
            "its rules for numbers and accents are off, and words are split at spaces",
            "reads one file for each thread; writes signatures, and all rows with their text, as JSON lines",
        ],
    ),
]
"""All tools, in the order of the report."""
