"""rensa's rho pipeline, its fastest: it says which rows have a near-duplicate, but not which row that is."""

import json
from importlib.metadata import version

from rensa import RMinHash, RMinHashLSH

from adapters.command import main
from adapters.libraries import n_gram_texts
from adapters.rensa_bands import bands
from comparison.answer import Answer
from comparison.settings import Settings


def run(settings: Settings) -> None:
    """Sketches all rows into a matrix, and computes all flags at once."""
    sets = (n_gram_texts(text, settings.ngram) for text in settings.texts())
    matrix = RMinHash.digest_matrix_from_token_sets_rho(sets, settings.permutations, 42)
    index = RMinHashLSH(float(settings.threshold), settings.permutations, bands(settings))
    flags = index.query_duplicate_flags_matrix_one_shot(matrix)
    settings.result.write_text(json.dumps([row for row, flag in enumerate(flags) if flag]))


def answer(settings: Settings) -> Answer:
    """Returns the flagged rows."""
    flagged = json.loads(settings.result.read_text())
    number = bands(settings)
    told = f"rho sketch, RMinHashLSH({settings.threshold}, {settings.permutations}, {number})"
    return Answer(version("rensa"), told, flagged=flagged)


if __name__ == "__main__":
    main(run, answer)
