"""text-dedup: its own command for MinHash, which groups rows and writes the kept rows. This module only reads the answer."""

import pickle
from importlib.metadata import version
from pathlib import Path

from datasets import load_from_disk
from text_dedup.utils import optimal_param

from adapters.command import main
from comparison.answer import Answer
from comparison.components import components
from comparison.settings import Settings


def answer(settings: Settings) -> Answer:
    """Groups are those of its union-find. A row that is in no group and not written is lost."""
    output = Path(settings.work) / "output"
    row_of_url = settings.row_of_url()
    kept = sorted(row_of_url[url] for url in load_from_disk(str(output))["url"])
    union_find = pickle.loads((output / "uf.pkl").read_bytes())
    groups = components(union_find.parent.items())
    removed = sorted({row for rows in groups for row in rows} - set(kept))
    if settings.bands is None:
        bands, rows = optimal_param(float(settings.threshold), settings.permutations)
    else:
        bands, rows = settings.bands, settings.rows_per_band
    told = f"minhash --threshold {settings.threshold} --num_perm {settings.permutations}: {bands} bands of {rows} rows"
    return Answer(version("text-dedup"), told, None, False, groups, None, kept, removed)


if __name__ == "__main__":
    main(lambda settings: None, answer)
