"""gaoya: an index of MinHashes in memory, which filters the found rows by the estimated similarity."""

from importlib.metadata import version

from gaoya.minhash import MinHashStringIndex

from adapters.command import main
from adapters.libraries import read_pairs, write_pairs
from comparison.answer import Answer
from comparison.settings import Settings


def _index(settings: Settings) -> MinHashStringIndex:
    own = settings.bands is None
    return MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=float(settings.threshold),
        # Without bands gaoya chooses bands that fit the threshold.
        num_bands=settings.bands,
        band_size=settings.rows_per_band,
        num_hashes=settings.permutations if own else None,
        analyzer="word",
        lowercase=False,
        ngram_range=(settings.ngram, settings.ngram),
        id_container="smallvec",
    )


def run(settings: Settings) -> None:
    """Inserts all rows, and queries each row."""
    texts = settings.texts()
    index = _index(settings)
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    found = index.par_bulk_query(texts)
    write_pairs(settings, ((row, other) for row, others in enumerate(found) for other in others))


def answer(settings: Settings) -> Answer:
    """Returns all pairs whose estimated similarity is above the threshold."""
    return read_pairs(settings, version("gaoya"), f"MinHashStringIndex({_index(settings)})")


if __name__ == "__main__":
    main(run, answer)
