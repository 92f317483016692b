"""rensa, full-set R-MinHash: LSH in memory; pairs that share a band are filtered by the estimated similarity."""

from importlib.metadata import version

from rensa import RMinHash, RMinHashLSH

from adapters.command import main
from adapters.libraries import n_gram_texts, read_pairs, write_pairs
from adapters.rensa_bands import bands
from comparison.answer import Answer
from comparison.settings import Settings


def run(settings: Settings) -> None:
    """Inserts all rows, and queries each row."""
    sets = (n_gram_texts(text, settings.ngram) for text in settings.texts())
    hashes = RMinHash.from_token_sets(sets, settings.permutations, 42)
    index = RMinHashLSH(float(settings.threshold), settings.permutations, bands(settings))
    index.insert_many(hashes)

    def pairs():
        for row, others in enumerate(index.query_all(hashes)):
            for other in others:
                if row < other and index.is_similar(hashes[row], hashes[other]):
                    yield row, other

    write_pairs(settings, pairs())


def answer(settings: Settings) -> Answer:
    """Returns all pairs whose estimated similarity is at the threshold or above."""
    number = bands(settings)
    told = f"RMinHashLSH({settings.threshold}, {settings.permutations}, {number}): {number} bands of {settings.permutations // number} rows"
    return read_pairs(settings, version("rensa"), told)


if __name__ == "__main__":
    main(run, answer)
